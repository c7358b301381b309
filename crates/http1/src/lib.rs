//! Heads and framing of HTTP/1.1 messages, read strictly and written anew.
//!
//! # What it is
//! Functions on bytes, for servers and gateways with a loop of their own: the head of a request or
//! a response, how long its body is, the frame of a chunked body, and heads to be sent. It does no
//! I/O and keeps no connection.
//!
//! # Example
//! ```
//! use haul_http1::{Framing, HeadLimits, HeadWriter, parse_request};
//!
//! let received = b"GET /a?b HTTP/1.1\r\nHost: example\r\nRange: bytes=0-9\r\n\r\nGET /next";
//! let request = parse_request(received, &HeadLimits::default())?.expect("it is whole");
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
//! - No input makes it panic.
//! - A head is taken only if it can be read in one way: what two readers could take for messages of
//!   different lengths is [`Refused`], and so is everything after it.
//! - How received bytes were split does not matter.
//! - What [`HeadWriter`] has written is one head, whatever it was given.
//!
//! # Cost
//! One pass of `httparse`, one for the ends of lines, and no allocation. [`Fields`] are found anew
//! by whoever goes over them. An unfinished head is parsed again with each call; 16 KiB bound what
//! a sender of single bytes can make of it.
//!
//! # What it is not
//! No client, no server, no HTTP/2, no TLS, no trailers: they are checked and dropped. It does not
//! decode targets; a path with `..` in it is the caller's to deal with.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[RFC9112\] the messages, \[RFC9110\] what they mean,
//! \[HttpGarden\] what other readers made of the same bytes.

mod chunks;
mod date;
mod fields;
mod framing;
mod head;
mod head_writer;
mod limits;
mod refused;
mod request;
mod response;
mod status;
mod target;

pub use chunks::{Chunk, Chunks, LAST_CHUNK, write_chunk_size};
pub use date::{Date, parse_date};
pub use fields::{Field, Fields, members};
pub use framing::{Framing, Version};
pub use head_writer::{HeadWriter, Unwritable};
pub use limits::{ChunkLimits, FIELDS_MAX, HeadLimits};
pub use refused::Refused;
pub use request::{Asked, Request, parse_request};
pub use response::{Response, parse_response};
pub use status::words;
pub use target::Target;
