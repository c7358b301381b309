//! Tests rounds under many thread schedules: no caller hangs, a barrier or a ticket acknowledges
//! only durable writes, and a read returns the newest write or a later one.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "test helpers may panic and print")]

#[path = "../../../append-log/tests/schedules/disk.rs"]
mod disk;
#[path = "../../../append-log/tests/schedules/explore.rs"]
mod explore;
mod page_file;
mod rounds;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use haul_disk::{Disk, Open};
use haul_sorted_write::Options;

use crate::disk::TinyDisk;

/// The name of the file.
const FILE: &str = "file";

/// The number of pages of the file. One thread writes each page.
const PAGES: usize = 3;

const PAGE: usize = 4096;

/// The numbers that the pages contain: each write fills the page with the next number.
#[derive(Debug, Default, Clone)]
struct Versions(Arc<[Page; PAGES]>);

/// The newest number of a page that a thread began to write, that is visible, and that is durable.
/// The atomic numbers are not those of the model, so threads do not switch between two of them.
#[derive(Debug, Default)]
struct Page {
    begun: AtomicU8,
    visible: AtomicU8,
    durable: AtomicU8,
}

impl Versions {
    fn page(&self, page: usize) -> &Page {
        &self.0[page]
    }

    /// Returns the newest visible number of each page.
    fn visible(&self) -> [u8; PAGES] {
        std::array::from_fn(|page| self.page(page).visible.load(Relaxed))
    }

    /// Returns the newest durable number of each page.
    fn durable(&self) -> [u8; PAGES] {
        std::array::from_fn(|page| self.page(page).durable.load(Relaxed))
    }

    /// Checks that a page that was read is whole, and not older than `oldest`.
    fn check(&self, page: usize, found: &[u8], oldest: u8) {
        assert!(found.iter().all(|byte| *byte == found[0]), "page {page} is torn");
        let newest = self.page(page).begun.load(Relaxed);
        let expected = oldest..=newest;
        assert!(expected.contains(&found[0]), "page {page}: {} is not in {expected:?}", found[0]);
    }
}

/// Creates a disk with the file, whose pages contain zeros.
fn disk_with_file() -> TinyDisk {
    let disk = TinyDisk::default();
    let file = disk.create(FILE, Open::default()).unwrap();
    file.resize((PAGES * PAGE) as u64).unwrap();
    disk
}

/// Returns options with memory for about `pages` pages in each generation.
fn options(pages: usize) -> Options {
    Options { generation_bytes: Some(pages * PAGE), queue_depth: Some(1), ..Options::default() }
}
