//! How a reader gets at a page.

use std::fmt;
use std::fs::File as StdFile;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use haul_disk::{File, Open, read_full};

use crate::error::{Error, Result};
use crate::test_file::TestFile;

/// A way of many readers to read one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `pread` on one descriptor for all.
    SharedPread,
    /// `pread`, each on a descriptor of its own.
    OwnPread,
    /// `lseek` and `read` on one descriptor, under a lock.
    LockedSeek,
    /// One thread and one ring of io_uring, with as many reads under way as there are readers
    /// elsewhere.
    Ring,
}

/// Where the bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    /// From the device, always.
    Cold,
    /// From memory, always.
    Warm,
}

/// One point of the curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) cache: Cache,
    pub(super) readers: usize,
    pub(super) way: Way,
}

impl Way {
    pub(super) const ALL: [Self; 4] =
        [Self::SharedPread, Self::OwnPread, Self::LockedSeek, Self::Ring];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SharedPread => "pread, shared descriptor",
            Self::OwnPread => "pread, own descriptors",
            Self::LockedSeek => "seek + read, locked",
            Self::Ring => "io_uring, one thread",
        }
    }
}

impl Cache {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} readers, {}", self.cache.name(), self.readers, self.way.name())
    }
}

/// All points: the ways side by side for each number of readers.
pub(super) fn cells(readers: &[usize]) -> Vec<Cell> {
    let caches = [Cache::Cold, Cache::Warm].into_iter();
    caches
        .flat_map(|cache| readers.iter().map(move |readers| (cache, *readers)))
        .flat_map(|(cache, readers)| Way::ALL.map(|way| Cell { cache, readers, way }))
        .collect()
}

/// What the readers of one cell have in common.
pub(super) enum Readers<'a> {
    Shared(Arc<dyn File>),
    Own(&'a TestFile, Open),
    Locked(Arc<Mutex<StdFile>>),
}

/// One of them.
pub(super) enum Reader {
    At(Arc<dyn File>),
    Locked(Arc<Mutex<StdFile>>),
}

impl<'a> Readers<'a> {
    pub(super) fn new(file: &'a TestFile, cell: &Cell) -> Result<Self> {
        let direct = cell.cache == Cache::Cold;
        let how = Open { direct, random: true, read_only: true, ..Open::default() };
        Ok(match cell.way {
            Way::SharedPread | Way::Ring => Self::Shared(file.open(how)?),
            Way::OwnPread => Self::Own(file, how),
            Way::LockedSeek => Self::Locked(Arc::new(Mutex::new(file.open_with_place(direct)?))),
        })
    }

    pub(super) fn one(&self) -> Result<Reader> {
        Ok(match self {
            Self::Shared(file) => Reader::At(Arc::clone(file)),
            Self::Own(file, how) => Reader::At(file.open(*how)?),
            Self::Locked(file) => Reader::Locked(Arc::clone(file)),
        })
    }
}

impl Reader {
    /// Fills the buffer from `offset` on.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        match self {
            Self::At(file) => read_full(&**file, buffer, offset).map(drop).map_err(Into::into),
            Self::Locked(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(offset))
                    .and_then(|_| file.read_exact(buffer))
                    .map_err(Error::other("read the file"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_measured_with_every_number_of_readers_cold_and_warm() {
        let cells = cells(&[1, 8]);
        assert_eq!(cells.len(), 2 * 2 * Way::ALL.len());
        let first = Cell { cache: Cache::Cold, readers: 1, way: Way::SharedPread };
        assert_eq!(
            (cells[0], cells[0].to_string().as_str()),
            (first, "cold, 1 readers, pread, shared descriptor")
        );
        let last = Cell { cache: Cache::Warm, readers: 8, way: Way::Ring };
        assert_eq!(cells.last(), Some(&last));
    }
}
