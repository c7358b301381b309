//! Connections of an HTTP/1.1 server on the event loop of `haul-reactor`, whose responses are
//! futures.
//!
//! # What it is
//! [`Engine`] is a [`Service`](haul_reactor::Service) that reads the heads and bodies of requests,
//! passes them to a [`Handler`], and writes the responses. A handler responds in one of three ways:
//! - [`Handler::respond_inline`] responds at once, from memory. Head and bytes are sent by one
//!   system call; a body of windows is sent by `sendfile`.
//! - [`Handler::respond`] returns a future, which the thread of the connection polls. Other threads
//!   wake the connection by a message, so a future that waits for nothing causes no switch of
//!   threads.
//! - [`Handler::respond_parsed`] returns a future, too, for requests whose head it reads as it was
//!   parsed, without a map of headers.
//!
//! [`Connections`] limits the number of connections, for each peer and together. Each listener can
//! terminate TLS, and has an [`AccessLog`] or none.
//!
//! # Promises
//! - **A request is executed at most once, and never after the decision to close its connection.**
//! - A response with fewer bytes than it declares is never completed: its connection is closed, or
//!   reset if only its end shows the end of the response.
//! - A client that was answered before it has sent its whole request can read the response: the
//!   rest of the request is discarded within limits, then the connection is closed.
//! - One peer cannot keep others out: see [`Connections`]. Every wait for a client has a limit:
//!   [`ConnectionLimits`].
//! - A panic of a future or a body closes its connection only.
//! - With an [`AccessLog`], each request has exactly one line: also one without a complete response,
//!   a malformed one, and a connection that is refused.
//!
//! # Cost
//! A response from memory is one `recv` and one `sendmsg`. Bodies of requests are copied once, from
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
mod body;
mod connection;
mod convert;
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
    AccessLog, JsonLine, Lines, LogDates, LogFormat, LoggedRequest, LoggedResponse, NO_RESPONSE,
    PendingLine, RequestIdentity,
};
pub use body::{BoxError, Piece, ResponseBody, Window};
pub use connection::Connection;
pub use handler::{
    ConnectionLimits, Handler, Inline, Origin, PreparedHead, ResponseFuture, ResponseHead,
};
pub use limits::{ConnectionStats, Connections, PeerRate};
pub use request_body::{IncompleteBody, RequestBody};
pub use service::{Engine, ListenerOptions};
pub use task::Message;
