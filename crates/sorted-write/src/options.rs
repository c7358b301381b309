//! Defines a writer's options.

use haul_disk::DeviceKind;

use crate::error::{Error, Result};
use crate::plan::Costs;

/// The maximum length of a buffered write, in bytes. [`SortedWriter`](crate::SortedWriter) splits
/// longer writes; [`PageFile::write`](crate::PageFile::write) rejects them.
pub const WRITE_BYTES_MAX: usize = 1 << 20;

/// Options of a [`SortedWriter`](crate::SortedWriter).
#[derive(Debug, Clone)]
pub struct Options {
    /// Each generation's memory, in bytes: callers fill one generation while the writing thread
    /// writes the other in a round. With more memory, the writes in a round are closer together,
    /// and more overwrites are absorbed. `None` selects an eighth of the memory that is available
    /// when the writer starts, at least 64 MiB.
    pub generation_bytes: Option<usize>,
    /// The number of bytes after which a file is synced even without a barrier. It should be well
    /// below the dirty-page limits at which the kernel throttles writers. Default: 256 MiB.
    pub sync_bytes: u64,
    /// The maximum number of bytes in a window's write requests. A window is a group of successive
    /// requests in a round. All its reads are made before its writes. `None` selects 64 MiB on a
    /// rotational device, whose head returns to the start of a window after reading it, and 16 MiB
    /// on other devices.
    pub window_bytes: Option<u64>,
    /// The maximum write request length in bytes: a power of two, 4 KiB to 1 GiB. Default: 1 MiB.
    pub request_bytes_max: u64,
    /// The device kind. `None` determines it: a device is solid-state if the kernel's `rotational`
    /// flag is 0; if the flag is 1, a few timed reads of the file decide, because virtual disks set
    /// it wrongly.
    pub kind: Option<DeviceKind>,
    /// The device's cost model. `None` selects [`Costs::HDD`] on a rotational device, and
    /// [`Costs::SSD`] on a solid-state device. If the kind is unknown, the gap between two requests
    /// is never filled to merge them.
    pub costs: Option<Costs>,
    /// `true` to plan all requests and count them in [`Stats`](crate::Stats) without making them.
    pub is_dry_run: bool,
    /// The maximum number of concurrent requests, at most 128, or 8 without io_uring. `None`
    /// selects 128 on a solid-state device, 32 on a rotational device, which serves the nearest
    /// request first, and 8 if the device kind is unknown.
    pub queue_depth: Option<u32>,
    /// `true` to sync each window before the next one is read. Without these syncs, a rotational
    /// drive with a write cache delays a window's writes until it reads the next window, and seeks
    /// back and forth between these windows. `None` selects `true` on a rotational device and
    /// `false` on other devices.
    pub sync_windows: Option<bool>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            generation_bytes: None,
            sync_bytes: 256 << 20,
            window_bytes: None,
            request_bytes_max: 1 << 20,
            kind: None,
            costs: None,
            is_dry_run: false,
            queue_depth: None,
            sync_windows: None,
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<()> {
        if self.generation_bytes == Some(0) {
            return Err(Error::Invalid("generation_bytes must be greater than 0"));
        }
        let requests = 4096..=1 << 30;
        if !requests.contains(&self.request_bytes_max) || !self.request_bytes_max.is_power_of_two()
        {
            return Err(Error::Invalid(
                "request_bytes_max must be a power of two between 4 KiB and 1 GiB",
            ));
        }
        if self.queue_depth == Some(0) || self.sync_bytes == 0 || self.window_bytes == Some(0) {
            return Err(Error::Invalid(
                "queue_depth, sync_bytes and window_bytes must be greater than 0",
            ));
        }
        Ok(())
    }
}
