//! Defines the trait that a server implements.

use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use haul_http1::{Date, HeadLimits, HeadWriter, InvalidHead};
use http::{Request, Response};

use crate::access_log::RequestIdentity;
use crate::body::{BoxError, ResponseBody};
use crate::request_body::RequestBody;

/// The response to a request, when it is ready. An error closes the connection.
pub type ResponseFuture<B> = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

/// The outcome of [`Handler::respond_inline`].
pub enum Inline<B> {
    /// [`Handler::respond`] is to respond. No head was written.
    Deferred,
    /// The head was written; the body is these bytes.
    Bytes(Bytes),
    /// The head was written, and declares the length of this body.
    Body(B),
}

/// The meaning of a server: what it responds to requests. Each thread has a handler of its own.
pub trait Handler: 'static {
    /// The body of a response.
    type Body: ResponseBody;
    /// State that the connections of a peer share.
    type Peer: Clone + Send + Sync + 'static;

    /// Responds to a request without a body at once, if possible. Writes the head with `head`. It
    /// may not block.
    fn respond_inline(
        &mut self,
        request: &haul_http1::Request<'_>,
        origin: &Origin<'_, Self::Peer>,
        head: &mut ResponseHead<'_>,
    ) -> Inline<Self::Body> {
        let _ = (request, origin, head);
        Inline::Deferred
    }

    /// Responds to a request like [`Self::respond`], without the conversion of its head to the types
    /// of the crate `http`. Returns the body of a request to which [`Self::respond`] is to respond.
    ///
    /// # Errors
    /// The body: this is no failure.
    fn respond_parsed(
        &mut self,
        request: &haul_http1::Request<'_>,
        body: RequestBody,
        origin: &Origin<'_, Self::Peer>,
    ) -> Result<ResponseFuture<Self::Body>, RequestBody> {
        let _ = (request, origin);
        Err(body)
    }

    /// Responds to a request. The thread of the connection polls the future and the body of the
    /// response, so neither may block. The response may have a [`RequestIdentity`] among its
    /// extensions.
    fn respond(
        &mut self,
        request: Request<RequestBody>,
        origin: &Origin<'_, Self::Peer>,
    ) -> ResponseFuture<Self::Body>;
}

/// The connection of a request.
#[derive(Debug)]
pub struct Origin<'a, P> {
    /// The index of the listener, in the order passed to the reactor.
    pub listener: usize,
    /// The address of the peer; `None` for a unix socket.
    pub peer: Option<IpAddr>,
    /// The state that the connections of this peer share.
    pub of_peer: &'a P,
}

/// The beginning of the head of a response, which the connection determines.
#[derive(Debug)]
pub struct ResponseHead<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) date: &'a Date,
    pub(crate) connection: Option<&'static str>,
    pub(crate) status: u16,
    pub(crate) identity: Option<RequestIdentity>,
}

impl ResponseHead<'_> {
    /// Sets the identity of the request in the access log.
    pub fn identify(&mut self, identity: RequestIdentity) {
        self.identity = Some(identity);
    }

    /// Starts the head with its status, the date and the state of the connection.
    pub fn begin(&mut self, status: u16) -> HeadWriter<'_> {
        self.status = status;
        let mut head = HeadWriter::response(self.out, status);
        head.date("date", self.date);
        if let Some(connection) = self.connection {
            head.field("connection", connection.as_bytes());
        }
        head
    }

    /// Writes a whole head: its beginning, `fields`, and `prepared`, the end of a head that was
    /// written before.
    ///
    /// # Errors
    /// If a field is invalid.
    pub fn write_prepared<'f>(
        &mut self,
        status: u16,
        fields: impl IntoIterator<Item = (&'f str, &'f [u8])>,
        prepared: &PreparedHead,
    ) -> Result<(), InvalidHead> {
        let mut head = self.begin(status);
        for (name, value) in fields {
            head.field(name, value);
        }
        head.end()?;
        // Without the empty line, which `prepared` has.
        self.out.truncate(self.out.len() - b"\r\n".len());
        self.out.extend_from_slice(&prepared.0);
        Ok(())
    }
}

/// Fields of a head, written once for many responses.
#[derive(Debug, Clone)]
pub struct PreparedHead(Box<[u8]>);

impl PreparedHead {
    /// Writes the fields that `write` adds.
    ///
    /// # Errors
    /// If a field is invalid.
    pub fn new(write: impl FnOnce(&mut HeadWriter<'_>)) -> Result<Self, InvalidHead> {
        let mut out = Vec::new();
        let mut head = HeadWriter::response(&mut out, 200);
        write(&mut head);
        head.end()?;
        let first_line_bytes = out.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        Ok(Self(out.split_off(first_line_bytes).into()))
    }

    /// Returns the length of the fields.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it has at least an empty line")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Limits of every connection.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// Limits of a request head.
    pub head: HeadLimits,
    /// The time for a request head, from its first byte or from the start of the connection.
    pub head_time: Duration,
    /// The time a connection may be idle between two requests.
    pub idle_time: Duration,
    /// The time a response may make no progress; the body of a request has twice that time, in which
    /// a handler that waits for it can respond.
    pub stall_time: Duration,
    /// The time for which the rest of a request is received after an early response.
    pub linger_time: Duration,
    /// The bytes of it.
    pub linger_bytes_max: usize,
    /// The response to a connection of a peer that has too many.
    pub too_many: &'static [u8],
}
