//! Tests the disk in memory: syncs, power cuts, faults and locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{
    Disk, Durability, Error, File, Locked, Op, Open, OsDisk, Subdir, read_full, write_full,
};
use haul_disk_sim::{Crashes, Device, FaultyDisk, Medium, MemoryDisk, Survival, crash_everywhere};
use haul_testing::Random;
use rustix::io::Errno;

const READ: Open = Open { direct: false, dsync: false, random: false, read_only: true };

/// Creates a disk with one file, whose name is durable.
fn with_file() -> (MemoryDisk, Arc<dyn File>) {
    let disk = MemoryDisk::default();
    let file = disk.create("file", Open::default()).unwrap();
    disk.sync_dir("").unwrap();
    (disk, file)
}

fn text(disk: &MemoryDisk, options: Open) -> Vec<u8> {
    let file = disk.open("file", options).unwrap();
    let mut bytes = vec![0; 1 << 16];
    let read = read_full(&*file, &mut bytes, 0).unwrap();
    bytes.truncate(read);
    bytes
}

fn errno(error: &Error) -> Option<i32> {
    error.source.raw_os_error()
}

#[test]
fn synced_data_is_intact_after_every_power_cut() {
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
fn calls_after_a_power_cut_fail_and_have_no_effect() {
    let (disk, file) = with_file();
    write_full(&*file, &[1; 512], 0).unwrap();
    disk.cut_power_after(1);
    assert_eq!(text(&disk, READ), [1; 512], "only changes are counted");
    write_full(&*file, &[2; 512], 512).unwrap();
    assert!(disk.is_off());
    let failures = [
        file.sync(Durability::Data).err(),
        write_full(&*file, &[3; 512], 1024).err(),
        disk.create("other", Open { direct: true, ..Open::default() }).err(),
        disk.sync_dir("").err(),
        disk.list("").err(),
    ];
    for failure in failures {
        assert_eq!(errno(&failure.unwrap()), Some(Errno::NODEV.raw_os_error()));
    }
    let after = |survival| text(&MemoryDisk::on(&disk.medium().cut(survival)), READ);
    assert!(after(Survival::Nothing).is_empty());
    assert_eq!(after(Survival::Everything), [[1; 512], [2; 512]].concat());
}

#[test]
fn sectors_tear_only_on_tearing_devices() {
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
fn names_survive_only_after_sync_of_their_directory() {
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
fn length_may_survive_without_bytes_on_hostile_devices() {
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
    assert_eq!(found(Device::StaleBlocks), [None, Some(0), Some(1), Some(9)], "stale blocks");
}

#[test]
fn pages_are_clean_after_a_failed_sync() {
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
        assert_eq!(text(&disk, READ).len(), left, "after the page cache has dropped it");
    }
}

#[test]
fn eintr_is_returned_only_by_calls_not_retried() {
    let (disk, file) = with_file();
    let interrupted = |op: Op| disk.fail_once(op, 1, Errno::INTR);
    let is_returned = |outcome: haul_disk::Result<()>| outcome.is_err_and(|e| errno(&e) == Some(4));
    interrupted(Op::Write);
    let before = disk.calls(Op::Write);
    write_full(&*file, &[1; 100], 0).unwrap();
    assert_eq!(disk.calls(Op::Write) - before, 2, "retried once");
    interrupted(Op::Read);
    assert_eq!(text(&disk, READ), [1; 100]);
    interrupted(Op::Create);
    drop(disk.create("another", Open::default()).unwrap());
    interrupted(Op::Sync);
    assert!(is_returned(file.sync(Durability::Data)), "an interrupted sync is final");
    interrupted(Op::SyncDir);
    assert!(is_returned(disk.sync_dir("")));
    interrupted(Op::Rename);
    assert!(is_returned(disk.rename("another", "other")));
    assert_eq!(disk.list("").unwrap(), ["another", "file"]);
}

#[test]
fn failed_direct_write_is_partial_and_others_have_no_effect() {
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
fn short_transfers_delays_blocking_and_bit_rot_take_effect() {
    let (disk, file) = with_file();
    disk.transfer_at_most(64);
    assert_eq!(file.write_some(&[1; 100], 0).unwrap(), 64);
    write_full(&*file, &[1; 100], 0).unwrap();
    assert_eq!(text(&disk, READ), [1; 100], "a caller that continues reads all");
    assert_eq!(disk.written_bytes(), 164);
    disk.slow_down(Op::Sync, Duration::from_millis(20));
    let begun = Instant::now();
    file.sync(Durability::Data).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20));
    disk.rot("file", 70, 3);
    assert_eq!(text(&disk, READ)[70], 1 ^ 8);
    let after = MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
    assert_eq!(text(&after, READ)[70], 1 ^ 8, "the flipped bit is durable");
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
fn faulty_disk_injects_the_same_faults() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::new(Arc::new(OsDisk::open(dir.path()).unwrap()));
    disk.record_calls();
    let file = disk.create("file", Open::default()).unwrap();
    disk.fail_once(Op::Write, 2, Errno::IO);
    assert_eq!(file.write_some(&[1; 100], 0).unwrap(), 100);
    assert!(file.write_some(&[1; 100], 100).is_err());
    assert_eq!(file.bytes().unwrap(), 100);
    disk.deny_create("denied");
    assert!(disk.create("denied", Open::default()).is_err());
    let calls: Vec<Op> = disk.recorded_calls().into_iter().map(|(op, _)| op).collect();
    assert_eq!(calls, [Op::Create, Op::Write, Op::Write, Op::Create]);
    assert_eq!(disk.faulted_thread(), thread::current().name().map(str::to_owned));
}

/// Stores a number in a new file, which replaces the previous one. Without a sync, a power cut may
/// leave any mixture of written, zeroed and stale blocks under the new name.
fn store_number(disk: &MemoryDisk, number: u8, with_sync: bool) {
    let file = disk.create("new", Open::default()).unwrap();
    write_full(&*file, &[number; 1000], 0).unwrap();
    if with_sync {
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
        assert!(bytes.len() == 1000 && bytes.iter().all(|byte| *byte == bytes[0]), "lost: torn");
        bytes[0]
    })
}

fn crash_storing(with_sync: bool) -> u64 {
    let crashes = Crashes { again_one_in: 2, ..Crashes::default() };
    let workload = |disk: &MemoryDisk| (1..4).for_each(|n| store_number(disk, n, with_sync));
    crash_everywhere(&crashes, workload, |(), crash| {
        let noted = crash.notes::<u8>().last().copied();
        let found = recover(&crash.disk);
        let (noted, is) = (noted.unwrap_or(0), found.unwrap_or(0));
        assert!((noted..=noted + 1).contains(&is), "lost: {noted} was acknowledged, found {is}");
        // The recovered number is durable, and storing continues.
        crash.disk.note(found.unwrap_or(0));
        store_number(&crash.disk, found.unwrap_or(0) + 1, with_sync);
    })
}

#[test]
fn crash_everywhere_passes_with_sync() {
    assert!(crash_storing(true) > 300);
}

#[test]
#[should_panic(expected = "lost: ")]
fn crash_everywhere_detects_a_missing_sync() {
    crash_storing(false);
}

#[test]
fn lock_lasts_until_it_is_dropped_or_the_machine_stops() {
    let (disk, _file) = with_file();
    disk.create_dir("below").unwrap();
    let below = Subdir::new(Arc::new(disk.clone()), "below");
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let steps = disk.steps().len();
    let is_acquired = |locked: Locked| matches!(locked, Locked::Acquired(_));
    let held = (disk.lock("", "a").unwrap(), disk.lock("file", "b").unwrap());
    assert!(is_acquired(below.lock("", "c").unwrap()), "another directory");
    for (other, name, holder) in [(&disk as &dyn Disk, "", "a"), (&faulty, "file", "b")] {
        let Locked::HeldBy(found) = other.lock(name, "d").unwrap() else { panic!("locked twice") };
        assert_eq!(found, holder);
    }
    assert!(is_acquired(MemoryDisk::on(&disk.medium()).lock("", "d").unwrap()), "after a stop");
    assert!(disk.lock("missing", "d").unwrap_err().is_not_found());
    drop(held);
    assert!(
        is_acquired(disk.lock("", "d").unwrap()) && is_acquired(disk.lock("file", "d").unwrap())
    );
    assert_eq!(disk.steps().len(), steps, "a lock changes nothing on the disk");
}
