//! Reads the test file by system calls or from a mapping, and decides when to prefetch.

use std::num::NonZeroU64;
use std::sync::Arc;

use haul_disk::{File, Map, Open, read_full, read_uncached, warm};
use haul_measure::{Error, Result};
use rustix::fs::{Advice as Fadvice, fadvise};

use super::strategy::{Advice, Method, Readahead, Strategy};
use crate::test_file::TestFile;

/// Returns the offset and length to prefetch next after `read` bytes were read and `fetched` bytes
/// were prefetched; `None` while more than half a window is prefetched ahead of the reader. So the
/// reader always has at least half a window ahead of it.
pub(super) fn prefetch(
    read: u64,
    fetched: u64,
    window_bytes: u64,
    file_bytes: u64,
) -> Option<(u64, u64)> {
    let end = (read + window_bytes).min(file_bytes);
    let is_due = end == file_bytes || end.saturating_sub(fetched) >= window_bytes / 2;
    (is_due && end > fetched).then(|| (fetched, end - fetched))
}

/// The test file, opened for a method.
pub(super) enum Source {
    Calls(Arc<dyn File>),
    Uncached(Arc<dyn File>),
    Mapped(Map),
}

impl Source {
    pub(super) fn open(file: &TestFile, strategy: &Strategy) -> Result<Self> {
        let direct = strategy.method == Method::Direct;
        let opened = file.open(Open { direct, ..Open::default() })?;
        if let (Readahead::Advice(advice), Some(fd)) = (strategy.readahead, opened.descriptor()) {
            let advice = match advice {
                Advice::Normal => Fadvice::Normal,
                Advice::Sequential => Fadvice::Sequential,
                Advice::Random => Fadvice::Random,
            };
            fadvise(fd, 0, None::<NonZeroU64>, advice)
                .map_err(Error::other("advise the kernel"))?;
        }
        let bytes = usize::try_from(file.bytes).unwrap_or(usize::MAX);
        Ok(match strategy.method {
            Method::Read | Method::ReadAhead | Method::Direct => Self::Calls(opened),
            Method::Uncached => Self::Uncached(opened),
            Method::Mmap => Self::Mapped(Map::for_reading(opened, bytes)?),
            Method::MmapAdvised => {
                let map = Map::for_reading(opened, bytes)?;
                map.advise_sequential()?;
                Self::Mapped(map)
            }
        })
    }

    pub(super) fn prefetch(&mut self, offset: u64, bytes: u64) -> Result<()> {
        match self {
            Self::Calls(file) | Self::Uncached(file) => warm(&**file, offset, bytes)?,
            Self::Mapped(map) => map.prefetch(address(offset)?, address(bytes)?)?,
        }
        Ok(())
    }

    pub(super) fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<()> {
        match self {
            Self::Calls(file) => read_full(&**file, buffer, offset).map(drop)?,
            Self::Uncached(file) => read_uncached(&**file, buffer, offset).map(drop)?,
            Self::Mapped(map) => map.read(buffer, address(offset)?)?,
        }
        Ok(())
    }
}

fn address(bytes: u64) -> Result<usize> {
    let too_long = std::io::Error::other;
    usize::try_from(bytes).map_err(|error| Error::other("map the file")(too_long(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetch_keeps_half_a_window_in_flight() {
        for (read, fetched, expected) in [
            (0, 0, Some((0, 8))),
            (1, 8, None),
            (3, 8, None),
            (4, 8, Some((8, 4))),
            (13, 20, Some((20, 1))),
            (20, 21, None),
            (21, 21, None),
        ] {
            assert_eq!(prefetch(read, fetched, 8, 21), expected, "{read} of {fetched}");
        }
        let (mut fetched, mut steps) = (0, 0);
        for read in 0..=1000 {
            if let Some((from, bytes)) = prefetch(read, fetched, 16, 1000) {
                assert_eq!(from, fetched);
                (fetched, steps) = (from + bytes, steps + 1);
            }
            assert!(fetched >= (read + 8).min(1000) && fetched <= read + 16);
        }
        assert!((fetched, steps) == (1000, 125) || steps < 150, "{steps}");
    }
}
