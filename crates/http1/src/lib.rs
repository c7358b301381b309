//! Parses HTTP/1.1 message heads and body framing strictly, writes them, and evaluates conditional
//! and range requests.
//!
//! # What it is
//! Functions on bytes, for servers and gateways that have their own event loop. They parse heads
//! (start line and fields) of requests and responses, determine the framing of the body, decode
//! chunked framing, and write heads. They evaluate conditions ([`Conditions`]) and ranges
//! ([`RangeSelection`]). They perform no I/O and store no connection state.
//!
//! # Example
//! ```
//! use haul_http1::{Framing, HeadLimits, HeadWriter, parse_request};
//!
//! let received = b"GET /a?b HTTP/1.1\r\nHost: example\r\nRange: bytes=0-9\r\n\r\nGET /next";
//! let request = parse_request(received, &HeadLimits::default())?.expect("the head is complete");
//! assert_eq!((request.method, request.target.path()), ("GET", "/a?b"));
//! assert_eq!((request.host, request.framing), (Some("example"), Framing::Length(0)));
//! assert_eq!(request.fields.first("range"), Some(&b"bytes=0-9"[..]));
//! assert_eq!(&received[request.head_bytes..], b"GET /next");
//!
//! let mut out = Vec::new();
//! let mut head = HeadWriter::response(&mut out, 204);
//! head.field("Server", b"haul");
//! head.end()?;
//! assert_eq!(out, b"HTTP/1.1 204 No Content\r\nServer: haul\r\n\r\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//! - No input causes a panic.
//! - **No ambiguous message is accepted** (request smuggling): parsing a head that two parsers
//!   could frame differently returns [`HttpError`], and still does if more bytes are appended to
//!   the head.
//! - The results do not depend on how the network split the received bytes.
//! - For any input, [`HeadWriter`] writes either exactly one head or nothing.
//!
//! # Cost
//! Parsing a head takes one pass of `httparse` and one pass over the line ends, and allocates
//! nothing. Each iteration over [`Fields`] parses the lines again. Each call parses an incomplete
//! head from its start; the limit of 16 KiB bounds the CPU time that a peer can cause by sending
//! single bytes.
//!
//! # What it is not
//! The crate is neither a client nor a server, and supports neither HTTP/2 nor TLS. It validates
//! trailers and discards them. It does not decode targets; the caller must handle `..` in paths.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[RFC9112\] for message syntax, \[RFC9110\] for semantics,
//! \[HttpGarden\] for the behaviour of other parsers on ambiguous input.

mod chunked;
mod conditions;
mod date;
mod error;
mod fields;
mod framing;
mod head;
mod head_writer;
mod limits;
mod media_type;
mod range;
mod request;
mod response;
mod status;
mod target;

pub use chunked::{Chunk, ChunkedDecoder, LAST_CHUNK, write_chunk_size};
pub use conditions::{Conditions, EntityTag, IfRange, Modified, TagList, Validators, Verdict};
pub use date::{Date, parse_date};
pub use error::HttpError;
pub use fields::{Field, Fields, list_members};
pub use framing::{Framing, Version};
pub use head_writer::{HeadWriter, InvalidHead};
pub use limits::{ChunkLimits, FIELDS_MAX, HeadLimits};
pub use media_type::media_type;
pub use range::{ByteRange, RangeSelection, content_range, unsatisfied_content_range};
pub use request::{MethodKind, Request, parse_request};
pub use response::{Response, parse_response};
pub use status::{CONNECTION_REFUSED, reason_phrase};
pub use target::Target;
