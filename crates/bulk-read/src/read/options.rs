//! Defines the options of a run, that is, of one call of `read`.

use std::sync::atomic::AtomicBool;

use haul_disk::DeviceKind;

use super::plan::Order;

/// The effect of a run on the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheMode {
    /// The bytes read stay in the page cache, as after an ordinary read.
    #[default]
    Normal,
    /// Pages that were not cached before are not cached afterwards, so that the hot pages of other
    /// processes are not evicted.
    Preserve,
}

/// Options of a run (one call of `read`). By default the order, the number of threads and the depth
/// depend on the device.
#[derive(Clone)]
pub struct ReadOptions<'a> {
    /// The order in which files are read.
    pub order: Order,
    /// The kind of every device that is not listed in [`ReadOptions::kinds`]; `None` to detect it.
    pub kind: Option<DeviceKind>,
    /// The kind of individual devices, by device number (`st_dev`).
    pub kinds: &'a [(u64, DeviceKind)],
    /// The number of threads per device; by default one per CPU, and one for a rotational device.
    pub threads: Option<usize>,
    /// The queue depth per thread for uncached data; by default 32, and 16 for a rotational
    /// device.
    pub depth: Option<usize>,
    /// The maximum memory of all buffers, in bytes. Each thread receives at least 2 MiB even if the
    /// total then exceeds the maximum.
    pub memory_bytes_max: usize,
    /// The effect of the run on the page cache.
    pub cache: CacheMode,
    /// `true` to use io_uring if available, `false` for plain system calls.
    pub ring: bool,
    /// A flag that cancels the run: the remaining requests end with
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub stop: Option<&'a AtomicBool>,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self {
            order: Order::Auto,
            kind: None,
            kinds: &[],
            threads: None,
            depth: None,
            memory_bytes_max: 64 << 20,
            cache: CacheMode::Normal,
            ring: true,
            stop: None,
        }
    }
}
