//! Connections of an HTTP/1.1 server on the event loop of `haul-reactor`. A server supplies the
//! meaning of requests and the source of bytes.
//!
//! # What it is
//! [`Engine`] is a [`Service`](haul_reactor::Service) that reads the heads and bodies of requests,
//! passes them to a [`Handler`], and writes the responses. A handler responds in one of these ways:
//! - [`Handler::respond_inline`] responds at once, with bytes in memory ([`Inline::Bytes`]): one
//!   system call sends head and body, and those of up to 32 pipelined requests together. Or it
//!   returns a body ([`Inline::Body`]), or a future of a response whose head is prepared
//!   ([`Inline::Future`]).
//! - [`Handler::respond_parsed`] returns a future for a request whose head it reads as it was
//!   parsed, without a map of headers.
//! - [`Handler::respond`] returns a future of a response of the crate `http`.
//!
//! The thread of the connection polls futures and bodies. Other threads wake the connection by a
//! message, so a future that waits for nothing causes no switch of threads. A [`ResponseBody`]
//! consists of pieces: bytes in memory, windows of files, which the kernel sends by itself, and
//! bytes that the server splices.
//!
//! [`Connections`] limits the number of connections, for each peer and together. Each listener can
//! terminate TLS, and has an [`AccessLog`] or none. A server with connections of its own writes the
//! same lines by a [`ThreadLog`].
//!
//! # Promises
//! - **A request is executed at most once, and never after the decision to close its connection.**
//! - A response with fewer bytes than it declares is never completed: its connection is closed, or
//!   reset if only its end shows the end of the response.
//! - A client that was answered before it has sent its whole request can read the response: the
//!   rest of the request is discarded within limits, then the connection is closed.
//! - One peer cannot keep others out: see [`Connections`]. Every wait for a client has a limit:
//!   [`ConnectionLimits`]. The rate at which a client takes a response is measured by the bytes that
//!   it acknowledges.
//! - A body can check its file before each part of a window is sent: [`ResponseBody::poll_piece`].
//! - A panic of a future or a body closes its connection only.
//! - With an [`AccessLog`], each request has exactly one line: also one without a complete response,
//!   a malformed one, and a connection that is refused.
//!
//! # Cost
//! A response from memory is one `recv` and one `sendmsg`, without an allocation of the engine, and so
//! are up to 32 pipelined ones, until 256 KiB are to be sent. Bodies of requests are copied once, from
//! the buffer of the thread; at most 256 KiB of them wait for the future, then the connection reads
//! no more. Bodies of responses are not copied.
//!
//! # What it is not
//! It has no HTTP/2, and no meaning of its own: no paths, files or ranges.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[RFC9112\], on persistent connections and on closing them;
//! \[RFC9110\], 10.1.1, on `100 Continue`.

mod access_log;
mod clock;
mod connection;
mod convert;
mod discard;
mod exchange;
mod handler;
mod limits;
mod receive;
mod request_body;
mod requests;
mod response;
mod service;
mod task;
mod transfer;

pub use access_log::{
    AccessLog, JsonLine, Lines, LogFormat, NO_RESPONSE, Record, RequestIdentity, RequestOutcome,
    ThreadLog, without_secrets,
};
pub use connection::Connection;
pub use handler::{
    ConnectionLimits, Handler, Inline, Origin, PreparedResponse, ResponseFuture, SentResponse,
};
pub use limits::{ConnectionStats, Connections, PeerRate};
pub use request_body::{Arrival, IncompleteBody, RequestBody};
pub use response::body::{BodySource, BoxError, Piece, ResponseBody, SplicedPiece, Window};
pub use response::head::{PreparedHead, ResponseHead};
pub use service::{Engine, ListenerOptions};
pub use task::Message;
