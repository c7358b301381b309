//! A request for a file. Performs no I/O.

use std::borrow::Cow;

use haul_http1::{HeadLimits, Request, parse_request};

use super::fields::RequestFields;
use super::path::{InvalidPath, decoded, merged, split};
use crate::file::cache_key::KeyRef;

/// A GET or HEAD request for a path.
#[derive(Debug)]
pub(crate) struct FileRequest<'a> {
    pub(crate) fields: RequestFields<'a>,
    /// The decoded path.
    pub(crate) path: Cow<'a, [u8]>,
    pub(crate) query: Option<&'a [u8]>,
    pub(crate) is_head: bool,
}

impl<'a> FileRequest<'a> {
    /// Parses the target and the fields of a request. `buffer` holds the path if it is encoded.
    ///
    /// # Errors
    /// If the path is malformed.
    pub(crate) fn parse(
        request: &Request<'a>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Self, InvalidPath> {
        let fields = RequestFields::of(request.fields);
        let (path, query) = split(request.target.path().as_bytes());
        // A target with a host may have no path.
        let path = if path.is_empty() { b"/" } else { path };
        let path = merged(decoded(path, buffer)?);
        Ok(Self { fields, path, query, is_head: request.method == "HEAD" })
    }
}

impl FileRequest<'_> {
    /// Returns the key of the file in the caches.
    pub(crate) fn key(&self) -> KeyRef<'_> {
        KeyRef { accepted: self.fields.accepted, path: &self.path }
    }
}

/// A copy of the head of a request, which is parsed again after the connection has waited.
#[derive(Debug)]
pub(crate) struct OwnedHead(Box<[u8]>);

impl OwnedHead {
    pub(crate) fn new(head: &[u8]) -> Self {
        Self(head.into())
    }

    /// Parses the head; `None` if it is invalid, which it was not before.
    pub(crate) fn parse(&self) -> Option<Request<'_>> {
        parse_request(&self.0, &HeadLimits::default()).ok()?
    }

    /// Calls `respond` with the request; `None` if it cannot be parsed, which it was before.
    pub(crate) fn with_request<T>(&self, respond: impl FnOnce(&FileRequest<'_>) -> T) -> Option<T> {
        let request = self.parse()?;
        let mut buffer = Vec::new();
        FileRequest::parse(&request, &mut buffer).ok().map(|request| respond(&request))
    }
}
