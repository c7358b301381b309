//! File access methods besides the calls in [`crate::File`]: aligned memory for direct I/O, options
//! for a single call, concurrent requests through io_uring, and memory mappings.

mod buffer;
mod map;
mod per_call;
mod ring;

pub use buffer::{AlignedBuf, HUGE_PAGE_BYTES};
pub use map::Map;
pub use per_call::{read_uncached, read_uncached_fd, write_durable, write_out};
pub use ring::{Ring, RingCompletion, RingOp, RingRequest};
