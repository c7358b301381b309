//! The kinds of disks by their names.

use clap::ValueEnum;
use haul_bulk_read::Kind;

/// What kind of disk files are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiskKind {
    /// It has no heads: many readers at a time, in any order
    Solid,
    /// It has heads that seek: one reader, in the order the files lie
    Rotating,
}

impl From<DiskKind> for Kind {
    fn from(kind: DiskKind) -> Self {
        match kind {
            DiskKind::Solid => Self::Solid,
            DiskKind::Rotating => Self::Rotating,
        }
    }
}
