//! Defines the options of a writer, and derives the I/O settings of a file from them.

use haul_disk::Storage;

use crate::error::{Error, Result};
use crate::plan::Costs;

/// The maximum length of a buffered write, in bytes. [`SortedWriter`](crate::SortedWriter) splits
/// longer writes; [`PageFile::write`](crate::PageFile::write) rejects them.
pub const WRITE_BYTES_MAX: usize = 1 << 20;

/// The write pattern of a file, which determines when its buffered writes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// The file contains bulk data and is written in each round.
    #[default]
    Bulk,
    /// The file is small and frequently overwritten, such as an index. It is buffered in separate
    /// memory and written after the bulk files: in every [`Options::index_every`]-th round, when
    /// this memory is full, and at barriers.
    Index,
}

/// Options of a [`SortedWriter`](crate::SortedWriter).
#[derive(Debug, Clone)]
pub struct Options {
    /// The memory, in bytes, of each of the two generations of buffers for writes to bulk files:
    /// callers fill one generation while the writing thread writes the other in a round. With more
    /// memory, the writes of a round are closer together. Default: 64 MiB.
    pub generation_bytes: usize,
    /// The memory, in bytes, of each of the two generations of buffers for writes to index files.
    /// Default: 16 MiB.
    pub index_bytes: usize,
    /// The interval, in rounds, at which index files are written. They are written earlier at a
    /// barrier and when `index_bytes` is reached. Default: 4.
    pub index_every: u32,
    /// The number of bytes after which a file is synced even without a barrier. It should be well
    /// below the dirty-page limits at which the kernel throttles writers. Default: 256 MiB.
    pub sync_bytes: u64,
    /// The maximum number of bytes in the write requests of a window, which is a group of
    /// successive requests of a round. All reads of a window are made before its writes. `None`
    /// selects 64 MiB on a rotational device, whose head returns to the start of a window after
    /// reading it, and 16 MiB on other devices.
    pub window_bytes: Option<u64>,
    /// The maximum length of a write request in bytes: a power of two, 4 KiB to 1 GiB. Default: 1
    /// MiB.
    pub request_bytes_max: u64,
    /// The cost model of the device. `None` selects [`Costs::HDD`] if the kernel reports the device
    /// as rotational, and [`Costs::SSD`] if it reports the device as not rotational. If the kernel
    /// reports neither, the gap between two requests is never filled to merge them.
    pub costs: Option<Costs>,
    /// `true` to plan all requests and count them in [`Stats`](crate::Stats) without making them.
    pub is_dry_run: bool,
    /// The number of concurrent requests. `None` selects 8 on an SSD, 4 on a rotational device,
    /// which serves the nearest request first, and 1 if the kind of device is unknown.
    pub queue_depth: Option<u32>,
    /// `true` to sync each window before the next one is read. Without these syncs, a rotational
    /// drive with a write cache delays the writes of a window until it reads the next window, and
    /// seeks back and forth between these windows. `None` selects `true` on a rotational device and
    /// `false` on other devices.
    pub sync_windows: Option<bool>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            generation_bytes: 64 << 20,
            index_bytes: 16 << 20,
            index_every: 4,
            sync_bytes: 256 << 20,
            window_bytes: None,
            request_bytes_max: 1 << 20,
            costs: None,
            is_dry_run: false,
            queue_depth: None,
            sync_windows: None,
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<()> {
        if self.generation_bytes == 0 || self.index_bytes == 0 || self.index_every == 0 {
            return Err(Error::Invalid(
                "generation_bytes, index_bytes and index_every must be greater than 0",
            ));
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

    /// Returns the I/O settings for a storage device; `None` stands for an unknown device.
    pub(crate) fn io_settings(&self, storage: Option<&Storage>) -> IoSettings {
        let is_rotational = storage.and_then(|storage| storage.queue.rotational);
        let (costs, queue_depth) = match is_rotational {
            Some(false) => (Costs::SSD, 8),
            Some(true) => (Costs::HDD, 4),
            None => (Costs { request_us: 0, bytes_per_second: 0 }, 1),
        };
        let window_bytes = if is_rotational == Some(true) { 64 << 20 } else { 16 << 20 };
        IoSettings {
            costs: self.costs.unwrap_or(costs),
            queue_depth: self.queue_depth.unwrap_or(queue_depth),
            window_bytes: self.window_bytes.unwrap_or(window_bytes),
            sync_windows: self.sync_windows.unwrap_or(is_rotational == Some(true)),
        }
    }
}

/// The I/O settings of a file, resolved for its storage device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IoSettings {
    pub(crate) costs: Costs,
    pub(crate) queue_depth: u32,
    pub(crate) window_bytes: u64,
    pub(crate) sync_windows: bool,
}
