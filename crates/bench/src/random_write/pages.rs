//! Writes random pages durably: with a page file, and with plain files that sync each write.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use haul_disk::{AlignedBuf, Disk, Durability, File, Open, OsDisk, PAGE_BYTES, write_full};
use haul_sorted_write::{PageFile, PageFileOptions};
use haul_testing::Random;

use crate::log::{Contender, Counts, Failure};
use crate::named::named;

/// The names of the file, and of the directory for the log of a page file.
const NAME: &str = "pages";
const LOG: &str = "pages.log";

named! {
    /// The method by which pages are written.
    pub(super) enum Writer {
        /// `haul_sorted_write::PageFile`: a write is durable in a log that all threads share, and
        /// reaches its place in the file in a later checkpoint.
        PageFile = "page-file",
        /// Each thread writes with `pwrite` through the page cache and syncs with `fdatasync`.
        Buffered = "pwrite-fdatasync",
        /// Each thread writes with `O_DIRECT` and syncs with `fdatasync`.
        Direct = "direct-fdatasync",
        /// Each thread writes with `O_DIRECT` and `O_DSYNC`, in one call.
        DirectDsync = "direct-dsync",
        /// The upper bound of the rate of a log that shares each sync among all writers: one thread
        /// writes one page per writer, contiguously, with each `O_DSYNC` call.
        Floor = "floor",
    }
}

/// A sequence of pseudo-random page numbers for each writer, uniformly distributed.
#[derive(Debug)]
pub struct Places {
    next: Vec<AtomicU64>,
    pages: u64,
}

impl Places {
    /// Creates the sequences for `writers` threads in a file of `pages` pages.
    #[must_use]
    pub fn new(writers: usize, pages: u64) -> Self {
        let seed = |writer: usize| AtomicU64::new((writer as u64) << 40);
        Self { next: (0..writers).map(seed).collect(), pages: pages.max(1) }
    }

    /// Returns the number of the next page of a writer.
    #[must_use]
    pub fn next(&self, writer: usize) -> u64 {
        let number = self.next[writer].fetch_add(1, Ordering::Relaxed);
        Random(number).below(self.pages)
    }
}

/// Creates the file, and writes all of it in chunks of 256 KiB.
fn create(disk: &OsDisk, pages: u64) -> Result<(), Failure> {
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

/// Creates the file of pages in the empty directory `dir`, and opens it for `writer`.
pub(super) fn open(
    writer: Writer,
    dir: &Path,
    writers: usize,
    pages: u64,
    options: &PageFileOptions,
) -> Result<Box<dyn Contender>, Failure> {
    let disk = OsDisk::open(dir)?;
    create(&disk, pages)?;
    let places = Places::new(writers, pages);
    let open = match writer {
        Writer::PageFile => {
            std::fs::create_dir(dir.join(LOG))?;
            let log: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.join(LOG))?);
            let (file, _) = PageFile::open(&disk, NAME, &log, options.clone())?;
            return Ok(Box::new(Paged { file, places, log_bytes_max: options.log_bytes_max }));
        }
        Writer::Buffered => Open::default(),
        Writer::Direct => Open { direct: true, ..Open::default() },
        Writer::DirectDsync | Writer::Floor => {
            Open { direct: true, dsync: true, ..Open::default() }
        }
    };
    if writer == Writer::Floor {
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

    /// Writes as many bytes as the log may contain. The measurement then reuses files of the log
    /// instead of creating new ones.
    fn warm_up(&self) -> Result<(), Failure> {
        let mut last = None;
        let (record, pages) = ([0x5a; PAGE_BYTES], self.file.bytes() / PAGE_BYTES as u64);
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
    /// `true` if a sync follows each write.
    syncs: bool,
    places: Places,
    /// One aligned buffer per writer, for direct writes.
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
    /// Writes one page for each writer in one call; only one thread calls this.
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
    fn all_methods_write_the_pages_of_each_writer() {
        for method in Writer::ALL.into_iter().filter(|method| *method != Writer::Floor) {
            let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
            let options = PageFileOptions { log_bytes_max: 8 << 20, ..PageFileOptions::default() };
            let contender = open(method, dir.path(), 2, 64, &options).unwrap();
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
            assert!(std::fs::read(dir.path().join(NAME)).unwrap() == expected, "{method:?}");
        }
    }

    #[test]
    fn floor_writes_a_page_per_writer_and_wraps_at_the_end() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let options = PageFileOptions::default();
        let floor = open(Writer::Floor, dir.path(), 3, 10, &options).unwrap();
        (1..=4).for_each(|n| floor.append(0, &[n; PAGE_BYTES]).unwrap());
        let pages = std::fs::read(dir.path().join(NAME)).unwrap();
        let first: Vec<_> = pages.chunks(PAGE_BYTES).map(|page| page[0]).collect();
        assert_eq!(first, [4, 4, 4, 2, 2, 2, 3, 3, 3, 0x5a]);
    }

    #[test]
    fn writers_cover_all_pages_in_different_orders() {
        let places = Places::new(2, 100);
        let of = |writer| (0..2000).map(|_| places.next(writer)).collect::<Vec<_>>();
        let (one, two) = (of(0), of(1));
        assert_ne!(one, two);
        assert_eq!(one.iter().collect::<std::collections::BTreeSet<_>>().len(), 100);
        assert!(one.iter().chain(&two).all(|page| *page < 100));
    }
}
