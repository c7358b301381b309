//! Tests the writer against a model, with threads, faults and power cuts, and counts its requests.

use std::error::Error as _;
use std::thread;

use haul_disk::{Disk, Op, Open, OsDisk};
use haul_disk_sim::{Crashes, Medium, MemoryDisk, Survival, crash_everywhere};
use haul_sorted_write::plan::Costs;
use haul_sorted_write::{Error, Options, SortedWriter, Stats};
use haul_testing::{LoopImage, Random, eventually, seed};
use rustix::io::Errno;

use crate::fixture::{add_file, content, disk_with, original, put, writer_on};

const FILE_BYTES: usize = 200_000;

fn small() -> Options {
    Options { generation_bytes: Some(8 << 10), ..Options::default() }
}

fn below(random: &mut Random, n: usize) -> usize {
    usize::try_from(random.below(n as u64)).unwrap()
}

#[test]
fn reads_and_file_content_match_the_model() {
    let mut random = Random(seed());
    println!("SEED={}", random.0);
    for (generation_bytes, queue_depth) in [(1, 1), (8 << 10, 1), (64 << 10, 4), (64 << 20, 1)] {
        let disk = disk_with("big", FILE_BYTES);
        let options = Options {
            generation_bytes: Some(generation_bytes),
            queue_depth: Some(queue_depth),
            window_bytes: Some(20_000),
            ..small()
        };
        let (writer, file) = writer_on(&disk, options);
        let mut model = original(FILE_BYTES);
        for n in 0..1500_u32 {
            let longest = if n % 50 == 0 { 30_000 } else { 3000 };
            let offset = below(&mut random, FILE_BYTES + 5000);
            let bytes = vec![n.to_le_bytes()[0] | 1; below(&mut random, longest) + 1];
            writer.write(file, offset as u64, &bytes).unwrap();
            put(&mut model, offset, &bytes);
            if random.below(4) == 0 {
                let offset = below(&mut random, FILE_BYTES + 10_000);
                let mut buffer = vec![7; below(&mut random, 20_000)];
                let read = writer.read(file, offset as u64, &mut buffer).unwrap();
                let expected = model.get(offset..).unwrap_or_default();
                assert_eq!(read, expected.len().min(buffer.len()));
                assert!(buffer[..read] == expected[..read], "at {offset}");
            }
            if random.below(300) == 0 {
                writer.barrier().unwrap();
                assert!(content(&disk, "big") == model);
            }
        }
        assert_eq!(writer.file_bytes(file), model.len() as u64);
        writer.close().unwrap();
        let after_cut = MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
        assert!(content(&after_cut, "big") == model, "all writes are durable");
    }
}

#[test]
fn concurrent_writers_read_their_own_writes() {
    let disk = disk_with("big", 64 << 10);
    let (writer, file) = writer_on(&disk, small());
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let writer = &writer;
            scope.spawn(move || {
                for n in 0..400_u64 {
                    // Each thread owns every fourth block of 100 bytes, so all threads write to
                    // each page.
                    let offset = (n % 160 * 4 + thread) * 100;
                    let bytes = [u8::try_from(n % 256).unwrap(); 100];
                    writer.write(file, offset, &bytes).unwrap();
                    let mut buffer = [0; 100];
                    assert_eq!(writer.read(file, offset, &mut buffer).unwrap(), 100);
                    assert_eq!(buffer, bytes);
                    if n % 100 == thread {
                        writer.barrier().unwrap();
                    }
                }
            });
        }
    });
    let stats = writer.stats();
    writer.close().unwrap();
    assert_eq!((stats.records, stats.record_bytes), (1600, 160_000));
    let found = content(&disk, "big");
    for (n, bytes) in found[..64_000].chunks(400).enumerate() {
        let last = (240..400).rev().find(|m| m % 160 == n).unwrap();
        assert!(bytes.iter().all(|byte| usize::from(*byte) == last % 256), "{n}");
    }
}

#[test]
fn round_makes_the_expected_requests_and_syncs() {
    let disk = disk_with("big", 40 * 4096 + 100);
    let options = Options { costs: Some(Costs::SSD), ..Options::default() };
    let (writer, file) = writer_on(&disk, options);
    let before = [Op::Read, Op::Write, Op::Sync].map(|op| disk.calls(op));
    let page = 4096;
    for (offset, bytes) in [
        (30 * page, 4096),
        (0, 4096),
        (page, 2 * 4096),   // adjacent to the previous write: three pages, no read
        (30 * page, 100),   // within a buffered write
        (10 * page + 5, 5), // a page that must be read, ...
        (12 * page + 5, 5), // ... and another one, near enough to be merged
        (39 * page, 4096),  // the last whole page
        (40 * page + 50, 100),
    ] {
        writer.write(file, offset, &vec![9; bytes]).unwrap();
    }
    let calls = || {
        let after = [Op::Read, Op::Write, Op::Sync].map(|op| disk.calls(op));
        [0, 1, 2].map(|n| after[n] - before[n])
    };
    assert_eq!(calls(), [0; 3], "no disk access before a barrier");
    writer.barrier().unwrap();
    assert_eq!(calls(), [1, 5, 1]);
    writer.barrier().unwrap();
    assert_eq!(calls(), [1, 5, 1], "an empty barrier makes no calls");
    let stats = writer.stats();
    assert_eq!((stats.records, stats.absorbed, stats.rounds), (8, 1, 1));
    assert_eq!((stats.writes, stats.written_bytes), (5, 3 * page + 3 * page + 2 * page + 100));
    assert_eq!((stats.reads, stats.read_bytes, stats.syncs), (1, 3 * page, 1));
    assert_eq!(stats.seek_bytes, 7 * page + 17 * page + 8 * page + 50);
    let unsorted = (30 + 31 + 27 + 20 + 2 + 27) * page + 95 - 5 - 10 + 50;
    assert_eq!(stats.unsorted_seek_bytes, unsorted);
}

#[test]
fn dry_run_counts_the_same_requests_and_writes_nothing() {
    let run = |is_dry_run: bool| {
        let disk = disk_with("big", 50_000);
        let (writer, file) = writer_on(&disk, Options { is_dry_run, ..small() });
        let mut random = Random(5);
        for n in 0..200_u8 {
            let offset = below(&mut random, 60_000) as u64;
            writer.write(file, offset, &vec![n; below(&mut random, 2000)]).unwrap();
        }
        writer.barrier().unwrap();
        let stats = Stats { syncs: 0, ..writer.stats() };
        writer.close().unwrap();
        // The boundaries of rounds depend only on the writes, so both runs count the same requests.
        (stats, content(&disk, "big") == original(50_000))
    };
    let ((dry_run, is_unchanged), (real, _)) = (run(true), run(false));
    assert_eq!(dry_run, real);
    assert!(is_unchanged && real.reads > 0 && real.rounds > 10);
}

#[test]
fn file_is_synced_every_sync_bytes() {
    let disk = disk_with("big", FILE_BYTES);
    let options = Options { sync_bytes: 40_000, window_bytes: Some(8192), ..Options::default() };
    let (writer, file) = writer_on(&disk, options);
    let before = disk.calls(Op::Sync);
    for n in 0..20 {
        writer.write(file, n * 8192, &[1; 4096]).unwrap();
    }
    writer.barrier().unwrap();
    assert_eq!(disk.calls(Op::Sync) - before, 2, "one after ten pages, one after twenty");
}

#[test]
fn where_it_spins_a_window_is_synced_before_the_next_is_read() {
    for (bytes, syncs) in [(100, 5), (4096, 1)] {
        let disk = disk_with("big", FILE_BYTES);
        let options =
            Options { sync_windows: Some(true), window_bytes: Some(8192), ..Options::default() };
        let (writer, file) = writer_on(&disk, options);
        let before = disk.calls(Op::Sync);
        for n in 0..10 {
            writer.write(file, n * 8192, &vec![1; bytes]).unwrap();
        }
        writer.barrier().unwrap();
        // There are five windows of two pages. Whole pages are not read first, so their windows
        // need no sync in between.
        assert_eq!(disk.calls(Op::Sync) - before, syncs, "{bytes}");
    }
}

#[test]
fn writes_block_while_both_generations_are_full() {
    let disk = disk_with("big", FILE_BYTES);
    let (writer, file) = writer_on(&disk, small());
    disk.block(Op::Write);
    thread::scope(|scope| {
        let filling = scope.spawn(|| {
            for n in 0..30 {
                writer.write(file, n * 4096, &[1; 4096]).unwrap();
            }
        });
        disk.wait_until_blocked();
        // Each of the two generations holds two records.
        eventually("two generations are full", || writer.stats().records >= 4);
        assert!(!filling.is_finished());
        assert_eq!(writer.stats().records, 4);
        disk.unblock();
    });
    assert_eq!(writer.stats().records, 30);
    writer.close().unwrap();
}

#[test]
fn failed_write_or_sync_latches_all_later_calls() {
    for (op, errno) in [(Op::Write, Errno::IO), (Op::Sync, Errno::IO), (Op::Write, Errno::NOSPC)] {
        for n in 1..4 {
            let disk = disk_with("big", FILE_BYTES);
            let (writer, file) = writer_on(&disk, Options { queue_depth: Some(2), ..small() });
            disk.fail_once(op, n, errno);
            let failed = (0..40_u64).find_map(|n| {
                writer.write(file, n * 5000, &[1; 3000]).err().or(writer.barrier().err())
            });
            let Some(Error::Latched { source }) = failed else { panic!("{op:?} {n}") };
            assert!(matches!(*source, Error::Disk(_)), "{source}");
            assert!(source.source().is_some());
            assert_eq!(source.is_full(), errno == Errno::NOSPC);
            disk.heal();
            assert!(matches!(writer.write(file, 0, &[1]), Err(Error::Latched { .. })));
            assert!(matches!(writer.barrier(), Err(Error::Latched { .. })));
            let mut buffer = [0; 3000];
            assert_eq!(writer.read(file, 0, &mut buffer).unwrap(), 3000);
            assert_eq!(buffer, [1; 3000], "buffered writes can still be read");
            assert!(writer.close().is_err());
        }
    }
}

#[test]
fn writes_before_a_barrier_survive_a_crash() {
    let crashes = Crashes { draws: 2, all_up_to: 8, ..Crashes::default() };
    println!("SEED={}", crashes.seed);
    let mut random = Random(crashes.seed);
    let writes: Vec<(usize, Vec<u8>)> = (1..=24_u8)
        .map(|n| (below(&mut random, 30_000), vec![n; below(&mut random, 6000) + 1]))
        .collect();
    let workload = |disk: &MemoryDisk| {
        add_file(disk, "big", 32_000);
        disk.note(0_usize);
        let (writer, file) = writer_on(disk, small());
        for (number, (offset, bytes)) in writes.iter().enumerate() {
            writer.write(file, *offset as u64, bytes).unwrap();
            if number % 8 == 7 {
                writer.barrier().unwrap();
                disk.note(number + 1);
            }
        }
        writer.close().unwrap();
    };
    let states = crash_everywhere(&crashes, workload, |(), crash| {
        let Some(durable) = crash.notes::<usize>().last().copied() else { return };
        let mut model = original(32_000);
        for (offset, bytes) in &writes[..durable] {
            put(&mut model, *offset, bytes);
        }
        // Each byte has its value at the last barrier, or a value written after this barrier.
        let mut allowed: Vec<Vec<u8>> = model.into_iter().map(|byte| vec![byte]).collect();
        for (offset, bytes) in &writes[durable..] {
            allowed.resize(allowed.len().max(offset + bytes.len()), vec![0]);
            (*offset..).zip(bytes).for_each(|(at, byte)| allowed[at].push(*byte));
        }
        let found = content(&crash.disk, "big");
        assert!(found.len() <= allowed.len());
        for (at, byte) in found.iter().enumerate() {
            let is_beyond = at >= 32_000;
            assert!(is_beyond || allowed[at].contains(byte), "{at}: {byte} of {:?}", allowed[at]);
        }
    });
    assert!(states > 50, "{states}");
}

#[test]
fn invalid_options_and_ranges_are_rejected() {
    let disk = disk_with("big", 100);
    assert!(SortedWriter::start(Options { generation_bytes: Some(0), ..small() }).is_err());
    assert!(SortedWriter::start(Options { request_bytes_max: 5000, ..small() }).is_err());
    assert!(SortedWriter::start(Options { queue_depth: Some(0), ..small() }).is_err());
    let (writer, file) = writer_on(&disk, small());
    assert!(matches!(writer.write(file, u64::MAX - 3, &[1; 4]), Err(Error::Invalid(_))));
    assert!(matches!(writer.write(file, i64::MAX as u64, &[1; 4]), Err(Error::Invalid(_))));
    assert!(writer.open(&disk, "nothing").is_err());
    writer.write(file, 50, &[]).unwrap();
    assert_eq!(writer.read(file, 200, &mut [0; 4]).unwrap(), 0);
    let medium: Medium = disk.medium();
    writer.close().unwrap();
    assert_eq!(content(&MemoryDisk::on(&medium), "big"), original(100));
}

/// On a real file the requests pass through io_uring, where the kernel permits it.
#[test]
fn full_disk_latches_and_buffered_writes_stay_readable() {
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    let disk = OsDisk::open(image.mount()).unwrap();
    disk.create("sparse", Open::default()).unwrap().resize(256 << 20).unwrap();
    let writer = SortedWriter::start(Options::default()).unwrap();
    let file = writer.open(&disk, "sparse").unwrap();
    for page in (0..128 << 8).rev() {
        writer.write(file, page * 4096, &[7; 4096]).unwrap();
    }
    let error = writer.barrier().unwrap_err();
    assert!(error.is_full() && error.to_string().contains("sparse"), "{error}");
    assert!(writer.barrier().unwrap_err().is_full(), "the failure is final");
    assert!(matches!(writer.write(file, 0, &[1]), Err(Error::Latched { .. })));
    let mut page = [0; 4096];
    for at in [0, (128 << 20) - 4096] {
        assert_eq!(writer.read(file, at, &mut page).unwrap(), 4096);
        assert_eq!(page, [7; 4096], "at {at}");
    }
    assert!(writer.close().is_err());
}
