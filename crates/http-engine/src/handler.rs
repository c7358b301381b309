//! Defines the trait that a server implements.

use std::net::IpAddr;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haul_http1::{HeadLimits, HttpError};
use http::{Request, Response};

use crate::request_body::RequestBody;
use crate::response::body::{BoxError, ResponseBody};
use crate::response::head::{PreparedHead, ResponseHead};

/// The response to a request, when it is ready. An error closes the connection.
pub type ResponseFuture<B> = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

/// A response whose head is written already, when it is ready. An error closes the connection.
pub(crate) type PreparedFuture<B> =
    Pin<Box<dyn Future<Output = Result<PreparedResponse<B>, BoxError>> + Send>>;

/// A response whose head is written already.
#[derive(Debug)]
pub struct PreparedResponse<B> {
    /// The status.
    pub status: u16,
    /// All fields but those of the date and of the connection. If there is a body, they declare its
    /// length.
    pub fields: PreparedHead,
    /// The body, whose length is known. Empty for HEAD.
    pub body: B,
}

/// The source of the bytes of a handler's responses.
pub(crate) type SourceOf<H> = <<H as Handler>::Body as ResponseBody>::Source;

/// The outcome of [`Handler::respond_inline`].
pub enum Inline<B: ResponseBody> {
    /// [`Handler::respond`] is to respond. No head was written.
    Deferred,
    /// The head was written; the body is these bytes.
    Bytes(Bytes, B::Source),
    /// The head was written, and declares the length of this body.
    Body(B),
    /// The response will be ready later. No head was written.
    Future(PreparedFuture<B>),
}

/// The meaning of a server: what it responds to requests. Each thread has a handler of its own.
pub trait Handler: 'static {
    /// The body of a response.
    type Body: ResponseBody;
    /// State that the connections of a peer share.
    type Peer: Clone + Send + Sync + 'static;
    /// State of one connection.
    type Connection: Default + 'static;

    /// Responds to a request at once, if possible. Writes the head with `head`. It may not block.
    ///
    /// If the request has a body, of a declared length or chunked, a response discards it: up to
    /// [`ConnectionLimits::discard_bytes_max`], the connection stays open.
    fn respond_inline(
        &mut self,
        request: &haul_http1::Request<'_>,
        origin: &Origin<'_, Self::Peer>,
        connection: &mut Self::Connection,
        head: &mut ResponseHead<'_>,
    ) -> Inline<Self::Body> {
        let _ = (request, origin, connection, head);
        Inline::Deferred
    }

    /// Responds to a request like [`Self::respond`], without the conversion of its head to the types
    /// of the crate `http`. Returns the body of a request to which [`Self::respond`] is to respond.
    ///
    /// It is called directly after [`Self::respond_inline`] has deferred the same request, which can
    /// leave what it has found out in `connection`.
    ///
    /// # Errors
    /// The body: this is no failure.
    fn respond_parsed(
        &mut self,
        request: &haul_http1::Request<'_>,
        body: RequestBody,
        origin: &Origin<'_, Self::Peer>,
        connection: &mut Self::Connection,
    ) -> Result<ResponseFuture<Self::Body>, RequestBody> {
        let _ = (request, origin, connection);
        Err(body)
    }

    /// Responds to a request to which [`Self::respond_inline`] did not. The thread of the connection
    /// polls the future and the body of the response, so neither may block. The response may have a
    /// [`RequestIdentity`](crate::RequestIdentity) among its extensions.
    fn respond(
        &mut self,
        request: Request<RequestBody>,
        origin: &Origin<'_, Self::Peer>,
    ) -> ResponseFuture<Self::Body> {
        let _ = (request, origin);
        Box::pin(async { Err("the server responds to no such request".into()) })
    }

    /// Responds to bytes that are not a request; the connection is then closed. Writes the head
    /// with `head`, and returns the body.
    fn respond_to_malformed(&mut self, error: &HttpError, head: &mut ResponseHead<'_>) -> Bytes {
        let mut head = head.begin(error.status);
        head.number("content-length", 0);
        // The head has no fields of a client.
        head.end().unwrap_or_default();
        Bytes::new()
    }

    /// Receives each response when it has ended, for the statistics.
    fn on_response(&mut self, response: &SentResponse<SourceOf<Self>>) {
        let _ = response;
    }
}

/// A response that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentResponse<S> {
    /// The index of the listener, in the order passed to the reactor.
    pub listener: usize,
    /// The status; [`NO_RESPONSE`](crate::NO_RESPONSE) if the connection ended before there was one.
    pub status: u16,
    /// The bytes of the body that the kernel took.
    pub body_bytes: u64,
    /// `false` if the connection ended before the response.
    pub is_complete: bool,
    /// The source of its bytes.
    pub source: S,
}

/// The connection of a request.
#[derive(Debug)]
pub struct Origin<'a, P> {
    /// The index of the listener, in the order passed to the reactor.
    pub listener: usize,
    /// The address of the peer; `None` for a unix socket.
    pub peer: Option<IpAddr>,
    /// The state that the connections of this peer share.
    pub peer_state: &'a P,
    /// The head of the request as it was received.
    pub head: &'a [u8],
    /// The time at which the head was received.
    pub received: Instant,
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
    /// The interval in which the progress of a response is checked; the body of a request has twice
    /// that time, in which a handler that waits for it can respond.
    pub stall_time: Duration,
    /// The bytes a second that a client must take of a response, on average in that interval.
    pub send_rate_min: u64,
    /// The number of requests of one connection.
    pub requests_max: u32,
    /// The longest body of a request that is discarded after an inline response. A connection with
    /// a longer one is closed.
    pub discard_bytes_max: u64,
    /// The time for which the rest of a request is received after an early response.
    pub linger_time: Duration,
    /// The bytes of it.
    pub linger_bytes_max: usize,
    /// The response to a connection of a peer that has too many.
    pub too_many: &'static [u8],
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            head: HeadLimits::default(),
            head_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(60),
            stall_time: Duration::from_secs(30),
            send_rate_min: 1 << 10,
            requests_max: 100_000,
            discard_bytes_max: 64 << 10,
            linger_time: Duration::from_secs(10),
            linger_bytes_max: 1 << 20,
            too_many: b"HTTP/1.1 503 Service Unavailable\r\n\
                content-length: 0\r\nconnection: close\r\n\r\n",
        }
    }
}
