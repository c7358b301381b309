//! The ways of writing a block durably that are put beside each other.

use std::fmt;

/// A way of writing a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Through the page cache, then `fdatasync`.
    Fdatasync,
    /// Through the page cache, in a file opened with `O_DSYNC`.
    Dsync,
    /// Past the page cache, then `fdatasync`.
    DirectFdatasync,
    /// Past the page cache, in a file opened with `O_DSYNC`.
    DirectDsync,
    /// Past the page cache, each write with `RWF_DSYNC`.
    DirectWriteDsync,
    /// Through the page cache behind the end of the file, then `fdatasync`.
    Growing,
    /// Through the page cache, then `sync_file_range`: not durable, shown because it is taken
    /// for that.
    WrittenOut,
}

impl Method {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 7] = [
        Self::Fdatasync,
        Self::Dsync,
        Self::DirectFdatasync,
        Self::DirectDsync,
        Self::DirectWriteDsync,
        Self::Growing,
        Self::WrittenOut,
    ];

    /// Its name in reports for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fdatasync => "fdatasync",
            Self::Dsync => "dsync",
            Self::DirectFdatasync => "direct-fdatasync",
            Self::DirectDsync => "direct-dsync",
            Self::DirectWriteDsync => "direct-write-dsync",
            Self::Growing => "growing-fdatasync",
            Self::WrittenOut => "sync-file-range",
        }
    }

    /// Whether a block is on the medium afterwards.
    #[must_use]
    pub const fn is_durable(self) -> bool {
        !matches!(self, Self::WrittenOut)
    }

    /// Whether it goes past the page cache.
    #[must_use]
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::DirectFdatasync | Self::DirectDsync | Self::DirectWriteDsync)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fdatasync => "overwriting, pwrite + fdatasync",
            Self::Dsync => "overwriting, O_DSYNC",
            Self::DirectFdatasync => "overwriting, O_DIRECT + fdatasync",
            Self::DirectDsync => "overwriting, O_DIRECT|O_DSYNC",
            Self::DirectWriteDsync => "overwriting, O_DIRECT, RWF_DSYNC",
            Self::Growing => "growing, pwrite + fdatasync",
            Self::WrittenOut => "overwriting, sync_file_range",
        })
    }
}
