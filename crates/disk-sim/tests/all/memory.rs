//! The disk in memory, asked as an engine asks it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{Disk, Durability, Error, File, Op, Open, OsDisk, read_full, write_full};
use haul_disk_sim::{
    Crashes, Device, FaultyDisk, Medium, MemoryDisk, Random, Survival, crash_everywhere,
};
use rustix::io::Errno;

const READ: Open = Open { direct: false, dsync: false, random: false, read_only: true };

/// A disk with one file, whose name is synced.
fn with_file() -> (MemoryDisk, Arc<dyn File>) {
    let disk = MemoryDisk::default();
    let file = disk.create("file", Open::default()).unwrap();
    disk.sync_dir("").unwrap();
    (disk, file)
}

fn text(disk: &MemoryDisk, how: Open) -> Vec<u8> {
    let file = disk.open("file", how).unwrap();
    let mut bytes = vec![0; 1 << 16];
    let read = read_full(&*file, &mut bytes, 0).unwrap();
    bytes.truncate(read);
    bytes
}

fn errno(error: &Error) -> Option<i32> {
    error.source.raw_os_error()
}

#[test]
fn what_was_synced_is_whole_after_every_power_cut() {
    let (disk, file) = with_file();
    write_full(&*file, &[1; 2000], 100).unwrap();
    file.sync(Durability::Data).unwrap();
    write_full(&*file, &[2; 5000], 2100).unwrap();
    let medium = disk.medium();
    for device in Device::ALL {
        let (states, mut random) = (medium.states(device), Random(7));
        for _ in 0..200 {
            let left = text(&MemoryDisk::on(&states.draw(&mut random)), READ);
            assert_eq!(left[..100], [0; 100]);
            assert_eq!(left[100..2100], [1; 2000], "{device:?}");
        }
    }
}

#[test]
fn sectors_tear_only_where_the_device_tears_them() {
    let (disk, file) = with_file();
    write_full(&*file, &[1; 4096], 0).unwrap();
    file.sync(Durability::Data).unwrap();
    write_full(&*file, &[2; 4096], 0).unwrap();
    let medium = disk.medium();
    let patterns = |device| {
        let states = medium.states(device);
        let sectors = |left: &Medium| -> Vec<u8> {
            let bytes = text(&MemoryDisk::on(left), READ);
            assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
            bytes.chunks(512).map(|sector| sector[0]).collect()
        };
        let mut all: Vec<_> = (0..states.count()).map(|n| sectors(&states.nth(n))).collect();
        all.sort();
        all.dedup();
        all.len()
    };
    assert_eq!(Device::ALL.map(patterns), [2, 2, 256, 256, 256, 256]);
}

#[test]
fn names_survive_only_after_the_sync_of_their_own_directory() {
    let disk = MemoryDisk::default();
    disk.create_dir("a").unwrap();
    disk.create_dir("b").unwrap();
    disk.sync_dir("").unwrap();
    let file = disk.create("a/1", Open::default()).unwrap();
    file.sync(Durability::Everything).unwrap();
    disk.sync_dir("b").unwrap();
    let after = |survival| MemoryDisk::on(&disk.medium().cut(survival));
    assert!(after(Survival::Nothing).list("a").unwrap().is_empty());
    disk.sync_dir("a").unwrap();
    assert_eq!(after(Survival::Nothing).list("a").unwrap(), ["1"]);
    disk.rename("a/1", "a/2").unwrap();
    assert_eq!(after(Survival::Nothing).list("a").unwrap(), ["1"]);
    assert_eq!(after(Survival::Everything).list("a").unwrap(), ["2"]);
    disk.remove("a/2").unwrap();
    disk.sync_dir("a").unwrap();
    assert!(after(Survival::Nothing).list("a").unwrap().is_empty());
    assert_eq!(after(Survival::Nothing).list("").unwrap(), ["a", "b"]);
}

#[test]
fn a_length_may_come_without_its_bytes_where_the_device_is_hostile() {
    let (disk, file) = with_file();
    let other = disk.create("other", Open::default()).unwrap();
    disk.sync_dir("").unwrap();
    write_full(&*other, &[9; 512], 0).unwrap();
    other.sync(Durability::Data).unwrap();
    write_full(&*file, &[1; 512], 0).unwrap();
    let medium = disk.medium();
    let found = |device| {
        let states = medium.states(device);
        let mut all: Vec<_> = (0..states.count())
            .map(|n| text(&MemoryDisk::on(&states.nth(n)), READ).first().copied())
            .collect();
        all.sort();
        all.dedup();
        all
    };
    assert_eq!(found(Device::NamesFirst), [None, Some(1)]);
    assert_eq!(found(Device::LengthsFirst), [None, Some(0), Some(1)]);
    assert_eq!(found(Device::StaleBlocks), [None, Some(0), Some(1), Some(9)], "what was there");
}

#[test]
fn after_a_failed_sync_the_pages_are_clean_and_the_next_sync_proves_nothing() {
    for (survival, left) in
        [(Survival::Nothing, 0), (Survival::Everything, 700), (Survival::Half { seed: 6 }, 512)]
    {
        let (disk, file) = with_file();
        disk.after_a_failed_sync(survival);
        write_full(&*file, &[1; 700], 0).unwrap();
        disk.fail_once(Op::Sync, 1, Errno::IO);
        assert_eq!(errno(&file.sync(Durability::Data).unwrap_err()), Some(5));
        assert_eq!(text(&disk, Open::default()), [1; 700], "programs still see it");
        file.sync(Durability::Data).unwrap();
        let after = MemoryDisk::on(&disk.medium().cut(Survival::Everything));
        assert_eq!(text(&after, READ).len(), left, "{survival:?}");
        assert_eq!(text(&disk, READ).len(), left, "once the page cache has forgotten it");
    }
}

#[test]
fn an_interruption_reaches_the_caller_only_where_the_kernels_disk_does_not_repeat() {
    let (disk, file) = with_file();
    let interrupted = |op: Op| disk.fail_once(op, 1, Errno::INTR);
    let is_told = |outcome: haul_disk::Result<()>| outcome.is_err_and(|e| errno(&e) == Some(4));
    interrupted(Op::Write);
    let before = disk.calls(Op::Write);
    write_full(&*file, &[1; 100], 0).unwrap();
    assert_eq!(disk.calls(Op::Write) - before, 2, "it was asked twice");
    interrupted(Op::Read);
    assert_eq!(text(&disk, READ), [1; 100]);
    interrupted(Op::Create);
    drop(disk.create("another", Open::default()).unwrap());
    interrupted(Op::Sync);
    assert!(is_told(file.sync(Durability::Data)), "a sync that was interrupted is final");
    interrupted(Op::SyncDir);
    assert!(is_told(disk.sync_dir("")));
    interrupted(Op::Rename);
    assert!(is_told(disk.rename("another", "other")));
    assert_eq!(disk.list("").unwrap(), ["another", "file"]);
}

#[test]
fn a_write_past_the_page_cache_may_fail_in_the_middle_and_any_other_does_nothing() {
    let (disk, file) = with_file();
    let direct = disk.open("file", Open { direct: true, ..Open::default() }).unwrap();
    disk.fail_once(Op::Write, 2, Errno::IO);
    direct.write_some(&[1; 4096], 0).unwrap();
    assert_eq!(errno(&direct.write_some(&[2; 4096], 4096).unwrap_err()), Some(5));
    assert_eq!(text(&disk, READ).len(), 4096 + 2048);
    for (file, error) in [(&direct, Errno::NOSPC), (&file, Errno::NOSPC), (&file, Errno::IO)] {
        disk.fail_once(Op::Write, 1, error);
        assert!(file.write_some(&[3; 4096], 8192).is_err());
        assert_eq!(text(&disk, READ).len(), 4096 + 2048);
    }
    assert_eq!(errno(&direct.write_some(&[3; 100], 0).unwrap_err()), Some(22), "not aligned");
    disk.heal();
    disk.limit(Some(8192));
    write_full(&*file, &[4; 4096], 0).unwrap();
    assert!(write_full(&*file, &[4; 8192], 4096).unwrap_err().is_full());
    disk.limit(None);
    write_full(&*file, &[4; 8192], 4096).unwrap();
}

#[test]
fn short_transfers_slow_calls_gates_and_rot_are_met() {
    let (disk, file) = with_file();
    disk.transfer_at_most(64);
    assert_eq!(file.write_some(&[1; 100], 0).unwrap(), 64);
    write_full(&*file, &[1; 100], 0).unwrap();
    assert_eq!(text(&disk, READ), [1; 100], "whoever goes on gets all");
    assert_eq!(disk.written_bytes(), 164);
    disk.slow_down(Op::Sync, Duration::from_millis(20));
    let begun = Instant::now();
    file.sync(Durability::Data).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20));
    disk.rot("file", 70, 3);
    assert_eq!(text(&disk, READ)[70], 1 ^ 8);
    let after = MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
    assert_eq!(text(&after, READ)[70], 1 ^ 8, "it is on the medium");
    let synced = AtomicU64::new(0);
    thread::scope(|scope| {
        let begin = || {
            scope.spawn(|| {
                file.sync(Durability::Data).unwrap();
                synced.store(1, Ordering::SeqCst);
            })
        };
        disk.during_a_sync(begin, || assert_eq!(synced.load(Ordering::SeqCst), 0));
    });
    assert_eq!(synced.into_inner(), 1);
}

#[test]
fn the_kernels_disk_has_the_same_faults() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::new(Arc::new(OsDisk::open(dir.path()).unwrap()));
    disk.watch();
    let file = disk.create("file", Open::default()).unwrap();
    disk.fail_once(Op::Write, 2, Errno::IO);
    assert_eq!(file.write_some(&[1; 100], 0).unwrap(), 100);
    assert!(file.write_some(&[1; 100], 100).is_err());
    assert_eq!(file.bytes().unwrap(), 100);
    disk.forbid("forbidden");
    assert!(disk.create("forbidden", Open::default()).is_err());
    let asked: Vec<Op> = disk.seen().into_iter().map(|(op, _)| op).collect();
    assert_eq!(asked, [Op::Create, Op::Write, Op::Write, Op::Create]);
    assert_eq!(disk.met(), thread::current().name().map(str::to_owned));
}

/// Something that remembers a number: in a file of its own, which takes the place of the last.
fn remember(disk: &MemoryDisk, number: u8, is_careful: bool) {
    let file = disk.create("new", Open::default()).unwrap();
    write_full(&*file, &[number; 1000], 0).unwrap();
    if is_careful {
        file.sync(Durability::Data).unwrap();
    }
    disk.rename("new", "file").unwrap();
    disk.sync_dir("").unwrap();
    disk.note(number);
}

fn recover(disk: &MemoryDisk) -> Option<u8> {
    if disk.open("new", Open::default()).is_ok() {
        disk.remove("new").unwrap();
    }
    disk.sync_dir("").unwrap();
    let names = disk.list("").unwrap();
    names.contains(&"file".to_owned()).then(|| {
        let bytes = text(disk, READ);
        assert!(bytes.len() == 1000 && bytes.iter().all(|byte| *byte == bytes[0]), "torn");
        bytes[0]
    })
}

fn crash_remembering(is_careful: bool) -> u64 {
    let crashes = Crashes { again_one_in: 2, ..Crashes::default() };
    let workload = |disk: &MemoryDisk| (1..4).for_each(|n| remember(disk, n, is_careful));
    crash_everywhere(&crashes, workload, |(), crash| {
        let noted = crash.notes::<u8>().last().copied();
        let found = recover(&crash.disk);
        let (noted, is) = (noted.unwrap_or(0), found.unwrap_or(0));
        assert!((noted..=noted + 1).contains(&is), "{noted} was noted, {is} is there");
        // What was found stays, and it goes on.
        crash.disk.note(found.unwrap_or(0));
        remember(&crash.disk, found.unwrap_or(0) + 1, is_careful);
    })
}

#[test]
fn crashing_everywhere_finds_nothing_in_what_is_careful() {
    assert!(crash_remembering(true) > 300);
}

#[test]
#[should_panic(expected = "torn")]
fn crashing_everywhere_finds_a_sync_that_is_missing() {
    crash_remembering(false);
}
