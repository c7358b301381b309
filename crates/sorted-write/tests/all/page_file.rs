//! Tests the page file against a model, with threads and full disks, and counts its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, Op, Subdir};
use haul_disk_sim::{MemoryDisk, Survival};
use haul_sorted_write::{Error, Options, PageFile, PageFileOptions, Recovery};
use haul_testing::{Random, seed};
use rustix::io::Errno;

use crate::fixture::{add_file, content, disk_with, original, put, shared};

const FILE_BYTES: usize = 100_000;

pub(crate) fn options(generation_bytes: usize) -> PageFileOptions {
    PageFileOptions {
        sorted: Options { generation_bytes: Some(generation_bytes), ..Options::default() },
        log_bytes_max: 8 << 20,
        log: haul_append_log::Options {
            buffer_bytes: 64 << 10,
            reserve_bytes: 4096,
            idle_watermark_ms: 0,
            sync_method: Some(haul_append_log::SyncMethod::Buffered),
            ..haul_append_log::Options::default()
        },
    }
}

/// Creates the directory of the log.
pub(crate) fn log_of(disk: &MemoryDisk) -> Arc<dyn Disk> {
    disk.create_dir("log").unwrap();
    disk.sync_dir("").unwrap();
    Arc::new(Subdir::new(shared(disk), "log"))
}

pub(crate) fn open(disk: &MemoryDisk, options: PageFileOptions) -> (PageFile, Recovery) {
    PageFile::open(disk, "big", &log_of(disk), options).unwrap()
}

fn below(random: &mut Random, n: usize) -> usize {
    usize::try_from(random.below(n as u64)).unwrap()
}

#[test]
fn acknowledged_writes_survive_a_power_cut() {
    let mut random = Random(seed());
    println!("SEED={}", random.0);
    let mut disk = disk_with("big", FILE_BYTES);
    let mut model = original(FILE_BYTES);
    // A checkpoint that completes just before a cut leaves nothing to replay, so the cuts are
    // repeated until a replay was needed.
    let mut replays = 0;
    for round in 0..40_u32 {
        if round >= 4 && replays > 0 {
            break;
        }
        let (page_file, recovery) = open(&disk, options(32 << 10));
        assert!(round > 0 || recovery.replayed == 0, "{recovery:?}");
        replays += recovery.replayed;
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
        // The power is cut while the page file is open.
        let left = MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
        drop(page_file);
        disk = left;
    }
    assert!(replays > 0, "no cut left anything to replay");
    let (page_file, _) = open(&disk, options(32 << 10));
    page_file.close().unwrap();
    assert!(content(&disk, "big") == model);
    let (page_file, recovery) = open(&disk, options(32 << 10));
    assert_eq!(recovery, Recovery { replayed: 0 }, "after a clean close");
    let mut buffer = vec![0; model.len()];
    assert_eq!(page_file.read(0, &mut buffer).unwrap(), model.len());
    assert!(buffer == model);
}

#[test]
fn later_writes_by_other_programs_are_not_overwritten() {
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
fn concurrent_writers_share_syncs_and_pages_are_written_once() {
    const WRITERS: u64 = 16;
    let disk = disk_with("big", 1 << 20);
    let (page_file, _) = open(&disk, options(64 << 20));
    let syncs = disk.calls(Op::Sync);
    // On a busy machine, each writer would otherwise run alone and take a sync of its own.
    disk.slow_down(Op::Sync, Duration::from_millis(1));
    thread::scope(|scope| {
        for thread in 0..WRITERS {
            let page_file = &page_file;
            scope.spawn(move || {
                for n in 0..50_u64 {
                    let page = (n * 7 + thread) % 64;
                    page_file.write(page * 4096, &[1; 4096]).unwrap().wait().unwrap();
                }
            });
        }
    });
    let commits = page_file.log_stats().syncs;
    assert!(commits < WRITERS * 50, "{commits}");
    assert_eq!(page_file.stats().writes, 0, "no page is in the file before the checkpoint");
    page_file.checkpoint().unwrap();
    let stats = page_file.stats();
    assert_eq!((stats.writes, stats.written_bytes, stats.reads), (1, 64 * 4096, 0));
    assert_eq!((stats.syncs, stats.records, stats.absorbed), (1, 800, 800 - 64));
    // The total includes the syncs of the log (commits and the checkpoint record) and one sync of
    // the file.
    let total = disk.calls(Op::Sync) - syncs;
    assert!(total > page_file.log_stats().syncs, "{total}");
    page_file.close().unwrap();
}

#[test]
fn log_length_is_bounded() {
    let disk = disk_with("big", 1 << 20);
    let (page_file, _) = open(&disk, options(64 << 20));
    let longest = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (page_file, longest) = (&page_file, &longest);
            scope.spawn(move || {
                for n in 0..250_u64 {
                    let offset = (n * 4 + thread) * 997 % 900_000;
                    drop(page_file.write(offset, &[2; 40_000]).unwrap());
                    longest.fetch_max(page_file.log_bytes(), Ordering::Relaxed);
                }
            });
        }
    });
    // 40 MB were written, which exceeds the maximum length of the log several times.
    let longest = longest.into_inner();
    assert!(longest <= (8 + 2 + 1) << 20, "{longest}");
    assert!(page_file.stats().rounds >= 5, "{:?}", page_file.stats());
    page_file.close().unwrap();
}

#[test]
fn checkpoint_frees_log_space_on_a_full_disk() {
    let disk = disk_with("big", FILE_BYTES);
    let (page_file, _) = open(&disk, options(64 << 20));
    disk.limit(Some(disk.used_bytes() + (3 << 20)));
    for n in 0..500_u64 {
        drop(page_file.write(n % 5 * 10_000, &[1; 20_000]).unwrap());
    }
    assert!(page_file.stats().rounds > 1, "10 MB were written through a log of less than 4 MB");
    page_file.close().unwrap();
}

#[test]
fn writes_fail_on_a_full_disk_and_resume_later() {
    let disk = disk_with("big", FILE_BYTES);
    // The open log has its first segments, and the injected fault prevents further segments.
    let (page_file, _) = open(&disk, options(64 << 20));
    disk.fail_always(Op::Create, Errno::NOSPC);
    let mut model = original(FILE_BYTES);
    let mut rejected = 0;
    for n in 0..200_u8 {
        let offset = usize::from(n) * 400;
        match page_file.write(offset as u64, &[n; 20_000]) {
            Ok(ticket) => {
                ticket.wait().unwrap();
                put(&mut model, offset, &[n; 20_000]);
            }
            Err(error) => {
                assert!(error.is_full(), "{error:?}");
                rejected += 1;
                disk.heal();
            }
        }
    }
    println!("{rejected} writes failed");
    drop(page_file);
    let left = MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
    open(&left, options(64 << 20)).0.close().unwrap();
    assert!(content(&left, "big") == model);
}

#[test]
fn log_of_another_file_is_rejected() {
    let disk = disk_with("big", FILE_BYTES);
    add_file(&disk, "other", FILE_BYTES);
    let (page_file, _) = open(&disk, options(32 << 10));
    page_file.write(0, b"hello").unwrap().wait().unwrap();
    page_file.close().unwrap();
    let error = PageFile::open(&disk, "other", &log_of(&disk), options(32 << 10)).unwrap_err();
    assert!(matches!(error, Error::LogMismatch { .. }) && error.to_string().contains("big"));
    let file = disk.open("big", haul_disk::Open::default()).unwrap();
    file.resize(10).unwrap();
    let error = PageFile::open(&disk, "big", &log_of(&disk), options(32 << 10)).unwrap_err();
    assert!(error.to_string().contains("this one has 10"), "{error}");
    let bad = PageFileOptions { log_bytes_max: 1, ..options(1) };
    assert!(PageFile::open(&disk, "other", &log_of(&disk), bad).is_err());
}
