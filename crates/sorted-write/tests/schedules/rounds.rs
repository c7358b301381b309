//! Tests threads that write, read and wait for barriers while rounds run.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use haul_sorted_write::{FileId, SortedWriter};
use haul_sync::shuttle::rand::{Rng, thread_rng};

use crate::disk::TinyDisk;
use crate::explore::{Body, explore_part, in_threads};
use crate::{FILE, PAGE, PAGES, Versions, disk_with_file, options};

/// A writer of one file, and the numbers that threads wrote to its pages.
#[derive(Clone)]
struct Fixture {
    disk: TinyDisk,
    writer: Arc<SortedWriter>,
    file: FileId,
    versions: Versions,
}

impl Fixture {
    fn new(pages_in_memory: usize) -> Self {
        let disk = disk_with_file();
        let writer = SortedWriter::start(options(pages_in_memory)).unwrap();
        let file = writer.open(&disk, FILE).unwrap();
        Self { disk, writer: Arc::new(writer), file, versions: Versions::default() }
    }

    /// Writes the next number to a page. Returns `false` if the writer has failed.
    fn write(&self, page: usize) -> bool {
        let place = self.versions.page(page);
        let number = place.begun.load(Relaxed) + 1;
        place.begun.store(number, Relaxed);
        let written = self.writer.write(self.file, (page * PAGE) as u64, &[number; PAGE]);
        if written.is_ok() {
            place.visible.store(number, Relaxed);
        }
        written.is_ok()
    }

    /// Waits for a barrier, and checks that all pages that were visible before are durable. Returns
    /// `false` if the writer has failed.
    fn barrier(&self) -> bool {
        let visible = self.versions.visible();
        if self.writer.barrier().is_err() {
            return false;
        }
        for (page, oldest) in visible.into_iter().enumerate() {
            let newest = self.versions.page(page).begun.load(Relaxed);
            let is_durable =
                |number| self.disk.has_durable(FILE, (page * PAGE) as u64, &[number; PAGE]);
            assert!((oldest..=newest).any(is_durable), "page {page} is not durable");
        }
        true
    }

    /// Reads each page, and checks that it contains the newest visible number or a later one.
    fn read(&self) {
        for page in 0..PAGES {
            let oldest = self.versions.visible()[page];
            let mut found = vec![0; PAGE];
            let read = self.writer.read(self.file, (page * PAGE) as u64, &mut found).unwrap();
            assert_eq!(read, PAGE);
            self.versions.check(page, &found, oldest);
        }
    }

    fn thread(&self, body: fn(&Self)) -> Body {
        let this = self.clone();
        Box::new(move || body(&this))
    }
}

#[test]
fn barriers_acknowledge_durable_writes_and_reads_see_no_older_ones() {
    explore_part("barriers and reads", 1, || {
        let file = Fixture::new(16);
        in_threads(vec![
            file.thread(|file| assert!((0..2).all(|_| file.write(0) && file.barrier()))),
            file.thread(|file| assert!(file.write(1) && file.write(1) && file.barrier())),
            file.thread(|file| (0..2).for_each(|_| file.read())),
        ]);
        file.read();
        assert!(file.barrier());
    });
}

#[test]
fn full_memory_delays_writers_and_stops_none() {
    explore_part("rounds of full memory", 1, || {
        let file = Fixture::new(1);
        in_threads(vec![
            file.thread(|file| assert!((0..3).all(|_| file.write(0)))),
            file.thread(|file| assert!((0..3).all(|_| file.write(1)) && file.barrier())),
            file.thread(|file| assert!((0..2).all(|_| file.write(2)))),
            file.thread(|file| (0..2).for_each(|_| file.read())),
        ]);
        let Fixture { disk, writer, versions, .. } = file;
        Arc::into_inner(writer).unwrap().close().unwrap();
        for (page, newest) in versions.visible().into_iter().enumerate() {
            assert!(disk.has_durable(FILE, (page * PAGE) as u64, &[newest; PAGE]));
        }
    });
}

#[test]
fn every_caller_gets_an_outcome_when_a_sync_fails() {
    explore_part("rounds and failed syncs", 1, || {
        let file = Fixture::new(2);
        file.disk.fail_sync(thread_rng().gen_range(1..4));
        in_threads(vec![
            file.thread(|file| while file.write(0) && file.barrier() && !is_last(file, 0) {}),
            file.thread(|file| while file.write(1) && !is_last(file, 1) {}),
            file.thread(|file| (0..2).for_each(|_| file.read())),
        ]);
        // Reading is still possible, and returns what was written last.
        file.read();
    });
}

/// `true` if the page was written often enough.
fn is_last(file: &Fixture, page: usize) -> bool {
    file.versions.page(page).begun.load(Relaxed) == 4
}
