//! Lists the methods of writing a block whose latencies are measured.

use std::fmt;

/// A method of writing a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// An overwrite through the page cache, then `fdatasync`.
    Fdatasync,
    /// An overwrite through the page cache, in a file opened with `O_DSYNC`.
    Dsync,
    /// An overwrite with `O_DIRECT`, then `fdatasync`.
    DirectFdatasync,
    /// An overwrite in a file opened with `O_DIRECT` and `O_DSYNC`.
    DirectDsync,
    /// An overwrite with `O_DIRECT`, in a call with `RWF_DSYNC`.
    DirectWriteDsync,
    /// A write at the end of a growing file through the page cache, then `fdatasync`.
    Growing,
    /// An overwrite through the page cache, then `sync_file_range`. This method is not durable; it
    /// is measured because it is often mistaken for a durable one.
    WrittenOut,
}

impl Method {
    /// All methods in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Fdatasync,
        Self::Dsync,
        Self::DirectFdatasync,
        Self::DirectDsync,
        Self::DirectWriteDsync,
        Self::Growing,
        Self::WrittenOut,
    ];

    /// Returns the name used in JSON reports.
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

    /// Returns `true` if a block written by this method is durable.
    #[must_use]
    pub const fn is_durable(self) -> bool {
        !matches!(self, Self::WrittenOut)
    }

    /// Returns `true` if the method bypasses the page cache.
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
