//! Defines the strategies of sequential reads: the method, its parameters and the readahead.

use std::fmt;

use crate::named::named;

named! {
    /// The method by which a file is read.
    pub(super) enum Method {
        /// `pread` through the page cache.
        Read = "read",
        /// Copies out of a memory mapping.
        Mmap = "mmap",
        /// As [`Method::Mmap`], with `MADV_SEQUENTIAL` for the mapping and `MADV_WILLNEED` for the
        /// window ahead of the reader.
        MmapAdvised = "mmap + madvise",
        /// `pread` with `POSIX_FADV_WILLNEED` for the window ahead of the reader.
        ReadAhead = "read + fadvise ahead",
        /// `pread` with `O_DIRECT`, which bypasses the page cache.
        Direct = "direct",
        /// `preadv2` with `RWF_DONTCACHE`: through the page cache, but the kernel drops the pages
        /// after the read.
        Uncached = "uncached",
    }
}

named! {
    /// The advice given for a descriptor with `posix_fadvise`.
    pub enum Advice {
        /// No advice, which is the default.
        Normal = "normal",
        /// `POSIX_FADV_SEQUENTIAL`, which doubles the readahead.
        Sequential = "sequential",
        /// `POSIX_FADV_RANDOM`, which disables the readahead.
        Random = "random",
    }
}

/// The readahead of the kernel during a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Readahead {
    Advice(Advice),
    /// The device's `read_ahead_kb`.
    Kib(u64),
}

impl fmt::Display for Readahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advice(advice) => f.write_str(advice.name()),
            Self::Kib(kib) => write!(f, "{kib} KiB"),
        }
    }
}

/// The method and parameters of one row of the report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Strategy {
    pub(super) readahead: Readahead,
    pub(super) method: Method,
    pub(super) request_bytes: u64,
    /// The number of bytes prefetched ahead of the reader.
    pub(super) window_bytes: Option<u64>,
    pub(super) file_bytes: u64,
}

impl Strategy {
    /// Returns the options of fio for the same reads; `None` for prefetching and uncached reads, and
    /// with a changed readahead of the device.
    pub(super) fn fio_options(&self) -> Option<String> {
        let hint = match self.readahead {
            Readahead::Advice(Advice::Normal) => "0",
            Readahead::Advice(Advice::Sequential) => "sequential",
            Readahead::Advice(Advice::Random) => "random",
            Readahead::Kib(_) => return None,
        };
        let engine = match self.method {
            Method::Read => "psync",
            Method::Mmap => "mmap",
            Method::Direct => "psync --direct=1",
            Method::MmapAdvised | Method::ReadAhead | Method::Uncached => return None,
        };
        let Self { request_bytes, file_bytes, .. } = self;
        Some(format!(
            "--rw=read --bs={request_bytes} --size={file_bytes} --ioengine={engine} \
             --fadvise_hint={hint}"
        ))
    }
}
