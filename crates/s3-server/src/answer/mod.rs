//! The response that an operation returns: a status, headers, and content.

pub(crate) mod checksum;
pub(crate) mod encryption;
pub(crate) mod rfc2047;

use std::fmt::Write;

use bytes::Bytes;
use haul_file_store::Etag;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::body::send::ObjectBody;
use crate::events::listeners::EventStream;
use crate::memory::Reserved;

/// The response that an operation returns.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) content: Content,
}

/// A response's content.
#[derive(Debug)]
pub(crate) enum Content {
    /// A document, or nothing.
    Bytes(Bytes),
    /// A part of an object.
    Object(ObjectBody),
    /// Events, for as long as the client is connected.
    Events(EventStream),
    /// No body: `Content-Length` is what a GET would return.
    Head(u64),
}

impl Answer {
    /// Returns a response without content.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), content: Content::Bytes(Bytes::new()) }
    }

    /// Returns `200 OK` without content.
    pub(crate) fn ok() -> Self {
        Self::empty(StatusCode::OK)
    }

    pub(crate) fn no_content() -> Self {
        Self::empty(StatusCode::NO_CONTENT)
    }

    /// Returns `200 OK` with an XML document.
    pub(crate) fn xml(document: String) -> Self {
        Self::document(document.into())
    }

    /// Returns `200 OK` with an XML document that may be long. Memory for it is reserved until the
    /// client has received it.
    pub(crate) fn xml_reserved(document: String, mut memory: Reserved) -> Self {
        // Boxing frees the unused capacity, which is large for a long document.
        let document = Bytes::from(document.into_boxed_str().into_boxed_bytes());
        memory.shrink_to(document.len() as u64);
        Self::document(memory.guard(document))
    }

    fn document(document: Bytes) -> Self {
        let answer = Self { content: Content::Bytes(document), ..Self::ok() };
        answer.with(CONTENT_TYPE.as_str(), "application/xml")
    }

    /// Returns this response with a header, whose name is in lower case. A value that is invalid in
    /// a header is omitted.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.add(name, value);
        self
    }

    /// Returns this response with a header if it has a value.
    pub(crate) fn with_some(self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a header, unless the value is invalid in a header.
    pub(crate) fn add(&mut self, name: &str, value: impl AsRef<str>) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value.as_ref().as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            self.headers.insert(name, value);
        }
    }
}

/// Returns an ETag in quotation marks, as headers have it.
pub(crate) fn quoted(etag: &Etag) -> String {
    // Space for the digits of the MD5, the number of parts and the marks.
    let mut text = String::with_capacity(40);
    // Writing to memory does not fail.
    write!(text, "\"{etag}\"").unwrap_or_default();
    text
}
