//! Tests threads that write to a page file while checkpoints run, and power cuts in between.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use haul_append_log::SyncMethod;
use haul_disk::{Disk, Subdir};
use haul_sorted_write::{PageFile, PageFileOptions};

use crate::disk::TinyDisk;
use crate::explore::{Body, explore_part, in_threads};
use crate::{FILE, PAGE, PAGES, Versions, disk_with_file, options};

fn open(disk: &TinyDisk) -> PageFile {
    let log: Arc<dyn Disk> = Arc::new(Subdir::new(Arc::new(disk.clone()), "log"));
    let options = PageFileOptions {
        sorted: options(16),
        log_bytes_max: 8 << 20,
        log: haul_append_log::Options {
            buffer_bytes: 64 << 10,
            reserve_bytes: 0,
            idle_watermark_ms: 0,
            sync_method: Some(SyncMethod::Buffered),
            ..haul_append_log::Options::default()
        },
    };
    PageFile::open(disk, FILE, &log, options).unwrap().0
}

/// An open page file, and the numbers that threads wrote to its pages.
#[derive(Clone)]
struct Fixture {
    disk: TinyDisk,
    file: Arc<PageFile>,
    versions: Versions,
}

impl Fixture {
    fn new() -> Self {
        let disk = disk_with_file();
        disk.create_dir("log").unwrap();
        Self { file: Arc::new(open(&disk)), disk, versions: Versions::default() }
    }

    /// Writes the next number to a page, and waits until it is durable.
    fn put(&self, page: usize) {
        let place = self.versions.page(page);
        let number = place.begun.load(Relaxed) + 1;
        place.begun.store(number, Relaxed);
        let ticket = self.file.write((page * PAGE) as u64, &[number; PAGE]).unwrap();
        place.visible.store(number, Relaxed);
        ticket.wait().unwrap();
        place.durable.store(number, Relaxed);
    }

    fn thread(&self, body: fn(&Self)) -> Body {
        let this = self.clone();
        Box::new(move || body(&this))
    }
}

/// Checks that each page is whole, and not older than `oldest`.
fn check(file: &PageFile, versions: &Versions, oldest: [u8; PAGES]) {
    for (page, oldest) in oldest.into_iter().enumerate() {
        let mut found = vec![0; PAGE];
        assert_eq!(file.read((page * PAGE) as u64, &mut found).unwrap(), PAGE);
        versions.check(page, &found, oldest);
    }
}

#[test]
fn acknowledged_writes_survive_a_power_cut_during_checkpoints() {
    explore_part("checkpoints of a page file", 2, || {
        let file = Fixture::new();
        let cut = Arc::new(std::sync::Mutex::new(None));
        let (other, taken) = (file.clone(), Arc::clone(&cut));
        let cutting: Body = Box::new(move || {
            haul_sync::thread::yield_now();
            // No thread runs between these two calls.
            let (durable, disk) = (other.versions.durable(), other.disk.after_power_cut());
            *taken.lock().unwrap() = Some((durable, disk));
        });
        in_threads(vec![
            file.thread(|file| (0..2).for_each(|_| file.put(0))),
            file.thread(|file| file.put(1)),
            file.thread(|file| file.file.checkpoint().unwrap()),
            file.thread(|file| check(&file.file, &file.versions, file.versions.visible())),
            cutting,
        ]);
        check(&file.file, &file.versions, file.versions.visible());
        let (durable, disk) = cut.lock().unwrap().take().unwrap();
        check(&open(&disk), &file.versions, durable);
    });
}
