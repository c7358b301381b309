//! Defines the statistics of a device.

use haul_disk::{DeviceKind, KindSource};

/// Statistics of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceStats {
    /// The kernel's name of the disk, such as `sda`; for a file system without a disk, its type and
    /// device number.
    pub name: String,
    /// The assumed kind.
    pub kind: DeviceKind,
    /// The source of the kind.
    pub kind_source: KindSource,
    /// The number of threads that read from the device.
    pub threads: usize,
    /// The number of requests whose bytes were not all in the page cache, so the device was read.
    pub cold: u64,
}
