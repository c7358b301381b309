//! Access to files beyond the plain calls of [`crate::File`]: memory for direct I/O, options of a
//! single call, concurrent reads through io_uring, and memory mappings.

mod buffer;
mod map;
mod per_call;
mod ring;

pub use buffer::AlignedBuf;
pub use map::Map;
pub use per_call::{read_uncached, read_uncached_fd, write_durable, write_out};
pub use ring::{ReadRing, RingCompletion, RingRead};
