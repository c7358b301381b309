//! Benchmarks of the page cache in a process whose memory, including page cache, is limited.

pub mod app_cache;
mod cached_pages;
pub mod direct_or_cached;

use crate::options::size;

const NO_DIRECT_IO: &str = "no direct I/O here";

fn memory_size(text: &str) -> Result<u64, String> {
    size(text, 64 << 20..=u64::MAX, "64MiB or more, which the readers alone need")
}
