//! Benchmarks of the page cache in a process whose memory, including page cache, is limited.

mod app_cache;
mod direct_or_cached;

pub use app_cache::AppCacheBench;
pub use direct_or_cached::DirectOrCachedBench;

use crate::options::size;

fn memory_size(text: &str) -> Result<u64, String> {
    size(text, 64 << 20..=u64::MAX, "64MiB or more, which the readers alone need")
}
