//! The page file against a byte map, with threads, on full disks, and what it costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use haul_disk::{Disk, Op, Subdir};
use haul_disk_sim::{MemoryDisk, Random, Survival, seed};
use haul_sorted_write::{Error, Opened, Options, PageFile, PageFileOptions};
use rustix::io::Errno;

use crate::helper::{add_file, content, disk_with, original, put, shared};

const FILE_BYTES: usize = 100_000;

pub(crate) fn options(generation_bytes: usize) -> PageFileOptions {
    PageFileOptions {
        sorted: Options { generation_bytes, ..Options::default() },
        log_bytes_max: 8 << 20,
        log: haul_append_log::Options {
            buffer_bytes: 64 << 10,
            reserve_bytes: 4096,
            sync_method: Some(haul_append_log::SyncMethod::Buffered),
            ..haul_append_log::Options::default()
        },
    }
}

/// The directory of the log.
pub(crate) fn log_of(disk: &MemoryDisk) -> Arc<dyn Disk> {
    disk.create_dir("log").unwrap();
    disk.sync_dir("").unwrap();
    Arc::new(Subdir::new(shared(disk), "log"))
}

pub(crate) fn open(disk: &MemoryDisk, options: PageFileOptions) -> (PageFile, Opened) {
    PageFile::open(disk, "big", &log_of(disk), options).unwrap()
}

fn below(random: &mut Random, n: usize) -> usize {
    usize::try_from(random.below(n as u64)).unwrap()
}

#[test]
fn what_was_acknowledged_is_read_and_is_there_after_a_power_cut() {
    let mut random = Random(seed());
    println!("SEED={}", random.0);
    let mut disk = disk_with("big", FILE_BYTES);
    let mut model = original(FILE_BYTES);
    for round in 0..4_u32 {
        let (page_file, opened) = open(&disk, options(32 << 10));
        assert_eq!(opened.replayed > 0, round > 0, "{opened:?}");
        for n in 0..200_u32 {
            let offset = below(&mut random, FILE_BYTES + 2000);
            let bytes = vec![(n % 250) as u8 + 1; below(&mut random, 3000)];
            let ticket = page_file.write(offset as u64, &bytes).unwrap();
            if !bytes.is_empty() {
                put(&mut model, offset, &bytes);
            }
            if n % 10 == 9 || n == 199 {
                ticket.wait().unwrap();
            }
            let mut buffer = vec![7; 5000];
            let at = below(&mut random, FILE_BYTES);
            let read = page_file.read(at as u64, &mut buffer).unwrap();
            assert!(buffer[..read] == model[at..model.len().min(at + 5000)]);
        }
        assert_eq!(page_file.bytes(), model.len() as u64);
        // The power goes while it is open.
        let left = MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
        drop(page_file);
        disk = left;
    }
    let (page_file, _) = open(&disk, options(32 << 10));
    page_file.close().unwrap();
    assert!(content(&disk, "big") == model);
    let (page_file, opened) = open(&disk, options(32 << 10));
    assert_eq!(opened, Opened { replayed: 0 }, "it was closed");
    let mut buffer = vec![0; model.len()];
    assert_eq!(page_file.read(0, &mut buffer).unwrap(), model.len());
    assert!(buffer == model);
}

#[test]
fn a_closed_page_file_leaves_alone_what_others_write_later() {
    let disk = disk_with("big", FILE_BYTES);
    let (page_file, _) = open(&disk, options(32 << 10));
    page_file.write(5000, &[1; 100]).unwrap().wait().unwrap();
    page_file.close().unwrap();
    let file = disk.open("big", haul_disk::Open::default()).unwrap();
    haul_disk::write_full(&*file, &[2; 100], 5000).unwrap();
    drop(open(&disk, options(32 << 10)));
    assert_eq!(content(&disk, "big")[5000..5100], [2; 100]);
}

#[test]
fn sixteen_writers_share_syncs_and_pages_reach_the_file_once() {
    const WRITERS: u64 = 16;
    let disk = disk_with("big", 1 << 20);
    let (page_file, _) = open(&disk, options(64 << 20));
    let syncs = disk.calls(Op::Sync);
    thread::scope(|scope| {
        for mine in 0..WRITERS {
            let page_file = &page_file;
            scope.spawn(move || {
                for n in 0..50_u64 {
                    let page = (n * 7 + mine) % 64;
                    page_file.write(page * 4096, &[1; 4096]).unwrap().wait().unwrap();
                }
            });
        }
    });
    let commits = page_file.log_stats().syncs;
    assert!(commits < WRITERS * 50, "{commits}");
    assert_eq!(page_file.stats().writes, 0, "nothing of it is in the file yet");
    page_file.checkpoint().unwrap();
    let stats = page_file.stats();
    assert_eq!((stats.writes, stats.written_bytes, stats.reads), (1, 64 * 4096, 0));
    assert_eq!((stats.syncs, stats.records, stats.absorbed), (1, 800, 800 - 64));
    // The log's: its commits, and one for the mark. The file's: one.
    let mine = disk.calls(Op::Sync) - syncs;
    assert!(mine > page_file.log_stats().syncs, "{mine}");
    page_file.close().unwrap();
}

#[test]
fn the_log_stays_within_its_bounds_however_much_is_written() {
    let disk = disk_with("big", 1 << 20);
    let (page_file, _) = open(&disk, options(64 << 20));
    let longest = AtomicU64::new(0);
    thread::scope(|scope| {
        for mine in 0..4_u64 {
            let (page_file, longest) = (&page_file, &longest);
            scope.spawn(move || {
                for n in 0..250_u64 {
                    let offset = (n * 4 + mine) * 997 % 900_000;
                    drop(page_file.write(offset, &[2; 40_000]).unwrap());
                    longest.fetch_max(page_file.log_bytes(), Ordering::Relaxed);
                }
            });
        }
    });
    // 40 MB went through it.
    let longest = longest.into_inner();
    assert!(longest <= (8 + 2 + 1) << 20, "{longest}");
    assert!(page_file.stats().rounds >= 5, "{:?}", page_file.stats());
    page_file.close().unwrap();
}

#[test]
fn on_a_full_disk_checkpoints_make_room_in_the_log() {
    let disk = disk_with("big", FILE_BYTES);
    let (page_file, _) = open(&disk, options(64 << 20));
    disk.limit(Some(disk.used_bytes() + (3 << 20)));
    for n in 0..500_u64 {
        drop(page_file.write(n % 5 * 10_000, &[1; 20_000]).unwrap());
    }
    assert!(page_file.stats().rounds > 1, "10 MB went through a log of less than 4");
    page_file.close().unwrap();
}

#[test]
fn a_disk_without_room_for_a_log_refuses_and_goes_on_later() {
    let disk = disk_with("big", FILE_BYTES);
    // The log gets its first segments and no more, and gives none back.
    let (page_file, _) = open(&disk, options(64 << 20));
    disk.fail_always(Op::Create, Errno::NOSPC);
    let mut model = original(FILE_BYTES);
    let mut refused = 0;
    for n in 0..200_u8 {
        let offset = usize::from(n) * 400;
        match page_file.write(offset as u64, &[n; 20_000]) {
            Ok(ticket) => {
                ticket.wait().unwrap();
                put(&mut model, offset, &[n; 20_000]);
            }
            Err(error) => {
                assert!(error.is_full(), "{error:?}");
                refused += 1;
                disk.heal();
            }
        }
    }
    println!("{refused} refused");
    drop(page_file);
    let left = MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
    open(&left, options(64 << 20)).0.close().unwrap();
    assert!(content(&left, "big") == model);
}

#[test]
fn the_log_of_another_file_is_refused() {
    let disk = disk_with("big", FILE_BYTES);
    add_file(&disk, "other", FILE_BYTES);
    let (page_file, _) = open(&disk, options(32 << 10));
    page_file.write(0, b"hello").unwrap().wait().unwrap();
    page_file.close().unwrap();
    let refused = PageFile::open(&disk, "other", &log_of(&disk), options(32 << 10)).unwrap_err();
    assert!(matches!(refused, Error::Foreign { .. }) && refused.to_string().contains("big"));
    let file = disk.open("big", haul_disk::Open::default()).unwrap();
    file.resize(10).unwrap();
    let refused = PageFile::open(&disk, "big", &log_of(&disk), options(32 << 10)).unwrap_err();
    assert!(refused.to_string().contains("this one has 10"), "{refused}");
    let bad = PageFileOptions { log_bytes_max: 1, ..options(1) };
    assert!(PageFile::open(&disk, "other", &log_of(&disk), bad).is_err());
}
