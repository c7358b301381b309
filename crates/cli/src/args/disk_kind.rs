//! Defines the values of the option `--disk-kind`.

use clap::ValueEnum;
use haul_bulk_read::DeviceKind;

/// The kind of disk that files are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiskKind {
    /// No seeks: many parallel readers, in any order
    Solid,
    /// Rotational: one reader, in the order of the files on disk
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
