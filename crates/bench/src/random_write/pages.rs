//! Durable writes of random pages: a page file, and plain files that sync each write.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use haul_disk::{AlignedBuf, Disk, Durability, File, Open, OsDisk, PAGE_BYTES, write_full};
use haul_disk_sim::Random;
use haul_sorted_write::{PageFile, PageFileOptions};

use crate::log::{Contender, Counts, Failure};

/// The file, and the directory of the log of a page file.
const NAME: &str = "pages";
const LOG: &str = "pages.log";

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// The page file of this project.
    PageFile,
    /// `pwrite` through the page cache, and `fdatasync`, each writer for itself.
    Buffered,
    /// The same past the page cache.
    Direct,
    /// One call: past the page cache, with `O_DSYNC`.
    DirectDsync,
    /// What the disk allows a log in which all writers always share a sync: one thread writes as
    /// many pages as there are writers on end, in one such call, and does nothing else.
    Floor,
}

impl Who {
    pub(super) const ALL: [Self; 5] =
        [Self::PageFile, Self::Buffered, Self::Direct, Self::DirectDsync, Self::Floor];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PageFile => "page-file",
            Self::Buffered => "pwrite-fdatasync",
            Self::Direct => "direct-fdatasync",
            Self::DirectDsync => "direct-dsync",
            Self::Floor => "floor",
        }
    }
}

/// Where each writer writes next: everywhere alike, another way for each writer.
#[derive(Debug)]
pub struct Places {
    next: Vec<AtomicU64>,
    pages: u64,
}

impl Places {
    /// Places for so many writers in a file of so many pages.
    #[must_use]
    pub fn new(writers: usize, pages: u64) -> Self {
        let seed = |writer: usize| AtomicU64::new((writer as u64) << 40);
        Self { next: (0..writers).map(seed).collect(), pages: pages.max(1) }
    }

    /// The number of the page this writer writes next.
    #[must_use]
    pub fn next(&self, writer: usize) -> u64 {
        let number = self.next[writer].fetch_add(1, Ordering::Relaxed);
        Random(number).below(self.pages)
    }
}

/// The same file for all, written whole before: 256 KiB at a time.
fn make(disk: &OsDisk, pages: u64) -> Result<(), Failure> {
    let file = disk.create(NAME, Open { direct: true, ..Open::default() })?;
    let mut chunk = AlignedBuf::zeroed(64 * PAGE_BYTES);
    chunk.fill(0x5a);
    let (mut at, end) = (0, pages * PAGE_BYTES as u64);
    while at < end {
        let length = usize::try_from(end - at)?.min(chunk.len());
        write_full(&*file, &chunk[..length], at)?;
        at += length as u64;
    }
    file.sync(Durability::Everything)?;
    disk.sync_dir("")?;
    Ok(())
}

/// Opens a contender in an empty directory.
pub(super) fn open(
    who: Who,
    dir: &Path,
    writers: usize,
    pages: u64,
    options: &PageFileOptions,
) -> Result<Box<dyn Contender>, Failure> {
    let disk = OsDisk::open(dir)?;
    make(&disk, pages)?;
    let places = Places::new(writers, pages);
    let open = match who {
        Who::PageFile => {
            std::fs::create_dir(dir.join(LOG))?;
            let log: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.join(LOG))?);
            let (file, _) = PageFile::open(&disk, NAME, &log, options.clone())?;
            return Ok(Box::new(Paged { file, places, log_bytes_max: options.log_bytes_max }));
        }
        Who::Buffered => Open::default(),
        Who::Direct => Open { direct: true, ..Open::default() },
        Who::DirectDsync | Who::Floor => Open { direct: true, dsync: true, ..Open::default() },
    };
    if who == Who::Floor {
        let next = Mutex::new((0, AlignedBuf::zeroed(writers * PAGE_BYTES)));
        return Ok(Box::new(Floor { file: disk.open(NAME, open)?, pages, next }));
    }
    let buffers = (0..writers).map(|_| Mutex::new(AlignedBuf::zeroed(PAGE_BYTES))).collect();
    Ok(Box::new(Plain { file: disk.open(NAME, open)?, syncs: !open.dsync, places, buffers }))
}

struct Paged {
    file: PageFile,
    places: Places,
    log_bytes_max: u64,
}

impl Contender for Paged {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let offset = self.places.next(writer) * PAGE_BYTES as u64;
        self.file.write(offset, record)?.wait()?;
        Ok(())
    }

    /// Enough for the log to have used its segments once.
    fn warm_up(&self) -> Result<(), Failure> {
        let mut last = None;
        let (record, pages) = ([0x5a; PAGE_BYTES], self.file.bytes() / PAGE_BYTES as u64);
        // Twice what is there at once.
        for number in 0..self.log_bytes_max / PAGE_BYTES as u64 {
            last = Some(self.file.write(number % pages * PAGE_BYTES as u64, &record)?);
        }
        last.map(haul_append_log::Ticket::wait).transpose()?;
        Ok(self.file.checkpoint()?)
    }

    fn counts(&self) -> Option<Counts> {
        let log = self.file.log_stats();
        Some(Counts { commits: log.batches, padded_bytes: log.written_bytes })
    }

    fn finish(&self) -> Result<(), Failure> {
        Ok(self.file.checkpoint()?)
    }
}

struct Plain {
    file: Arc<dyn File>,
    /// Each write is followed by a sync.
    syncs: bool,
    places: Places,
    /// Direct writes need aligned memory.
    buffers: Vec<Mutex<AlignedBuf>>,
}

impl Contender for Plain {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let mut buffer = self.buffers[writer].lock().unwrap_or_else(PoisonError::into_inner);
        buffer.copy_from_slice(record);
        write_full(&*self.file, &buffer, self.places.next(writer) * PAGE_BYTES as u64)?;
        if self.syncs {
            self.file.sync(Durability::Data)?;
        }
        Ok(())
    }
}

struct Floor {
    file: Arc<dyn File>,
    pages: u64,
    next: Mutex<(u64, AlignedBuf)>,
}

impl Contender for Floor {
    /// Driven by one writer; the pages of all are in each call.
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let (page, buffer) = &mut *next;
        buffer.chunks_exact_mut(PAGE_BYTES).for_each(|page| page.copy_from_slice(record));
        let pages = (buffer.len() / PAGE_BYTES) as u64;
        if *page + pages > self.pages {
            *page = 0;
        }
        write_full(&*self.file, buffer, *page * PAGE_BYTES as u64)?;
        *page += pages;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_contender_writes_the_pages_of_each_writer_and_all_are_in_their_place_in_the_end() {
        for who in Who::ALL.into_iter().filter(|who| *who != Who::Floor) {
            let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
            let options = PageFileOptions { log_bytes_max: 8 << 20, ..PageFileOptions::default() };
            let contender = open(who, dir.path(), 2, 64, &options).unwrap();
            for n in 1..=40 {
                contender.append(0, &[n; PAGE_BYTES]).unwrap();
                contender.append(1, &[n + 100; PAGE_BYTES]).unwrap();
            }
            contender.finish().unwrap();
            let places = Places::new(2, 64);
            let mut expected = vec![0x5a; 64 * PAGE_BYTES];
            for n in 1..=40 {
                for (writer, filling) in [(0, n), (1, n + 100)] {
                    let at = usize::try_from(places.next(writer)).unwrap() * PAGE_BYTES;
                    expected[at..at + PAGE_BYTES].fill(filling);
                }
            }
            assert!(std::fs::read(dir.path().join(NAME)).unwrap() == expected, "{who:?}");
        }
    }

    #[test]
    fn the_floor_writes_a_page_for_each_writer_at_once_and_begins_anew_at_the_end() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let options = PageFileOptions::default();
        let floor = open(Who::Floor, dir.path(), 3, 10, &options).unwrap();
        (1..=4).for_each(|n| floor.append(0, &[n; PAGE_BYTES]).unwrap());
        let pages = std::fs::read(dir.path().join(NAME)).unwrap();
        let first: Vec<_> = pages.chunks(PAGE_BYTES).map(|page| page[0]).collect();
        assert_eq!(first, [4, 4, 4, 2, 2, 2, 3, 3, 3, 0x5a]);
    }

    #[test]
    fn writers_go_to_other_pages_in_another_order_and_reach_all() {
        let places = Places::new(2, 100);
        let of = |writer| (0..2000).map(|_| places.next(writer)).collect::<Vec<_>>();
        let (one, two) = (of(0), of(1));
        assert_ne!(one, two);
        assert_eq!(one.iter().collect::<std::collections::BTreeSet<_>>().len(), 100);
        assert!(one.iter().chain(&two).all(|page| *page < 100));
    }
}
