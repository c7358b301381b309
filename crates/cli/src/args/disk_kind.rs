//! Defines the values of the option `--disk-kind`.

use clap::ValueEnum;
use haul_bulk_read::DeviceKind;

/// The kind of disk that files or a store are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiskKind {
    /// No seeks: requests run in parallel, in any order
    Solid,
    /// Rotational: requests run in the order of their locations on the disk
    Rotating,
}

impl From<DiskKind> for DeviceKind {
    fn from(kind: DiskKind) -> Self {
        match kind {
            DiskKind::Solid => Self::SolidState,
            DiskKind::Rotating => Self::Rotational,
        }
    }
}
