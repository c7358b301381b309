//! Tests page files and patches with a crash at every step, and with a fault in every kind of call
//! to the disk.

use haul_disk::{Op, Subdir};
use haul_disk_sim::{Crashes, Medium, MemoryDisk, Survival, crash_everywhere};
use haul_sorted_write::{Options, PageFile, Patch, PatchState, SortedWriter};
use haul_testing::Random;
use rustix::io::Errno;

use crate::fixture::{add_file, content, disk_with, original, put, shared};
use crate::page_file::{log_of, open, options};

const FILE_BYTES: usize = 20_000;

fn writes(seed: u64, count: u8) -> Vec<(usize, Vec<u8>)> {
    let mut random = Random(seed);
    let mut below = |n: u64| usize::try_from(random.below(n)).unwrap();
    (1..=count).map(|n| (below(18_000), vec![n; below(5000) + 1])).collect()
}

/// Returns the content of the file after each prefix of the writes.
fn states(writes: &[(usize, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut states = vec![original(FILE_BYTES)];
    for (offset, bytes) in writes {
        let mut next = states[states.len() - 1].clone();
        put(&mut next, *offset, bytes);
        states.push(next);
    }
    states
}

/// The number of acknowledged writes; noted once the file exists.
#[derive(Debug, Clone, Copy)]
struct Acknowledged(usize);

#[test]
fn crash_leaves_a_prefix_with_all_acknowledged_writes() {
    let crashes =
        Crashes { all_up_to: 4, draws: 1, again_one_in: 16, again_steps: 4, ..Crashes::default() };
    println!("SEED={}", crashes.seed);
    let first = writes(crashes.seed, 14);
    let files = states(&first);
    let workload = |disk: &MemoryDisk| {
        add_file(disk, "big", FILE_BYTES);
        disk.note(Acknowledged(0));
        let (page_file, _) = open(disk, options(12 << 10));
        for (number, (offset, bytes)) in first.iter().enumerate() {
            page_file.write(*offset as u64, bytes).unwrap().wait().unwrap();
            disk.note(Acknowledged(number + 1));
            if number == 9 {
                page_file.checkpoint().unwrap();
            }
        }
        page_file.close().unwrap();
    };
    let states = crash_everywhere(&crashes, workload, |(), crash| {
        let Some(Acknowledged(least)) = crash.notes().last().copied() else { return };
        let (page_file, _) = open(&crash.disk, options(12 << 10));
        let mut found = vec![0; FILE_BYTES + 5000];
        let read = page_file.read(0, &mut found).unwrap();
        found.truncate(read);
        let number = files.iter().rposition(|file| *file == found);
        assert!(number.is_some_and(|number| number >= least), "{least} acknowledged: {number:?}");
        crash.disk.note(Acknowledged(number.unwrap()));
        // Writes continue after recovery.
        if let Some((offset, bytes)) = first.get(number.unwrap()) {
            page_file.write(*offset as u64, bytes).unwrap().wait().unwrap();
            crash.disk.note(Acknowledged(number.unwrap() + 1));
        }
        page_file.close().unwrap();
    });
    assert!(states > 50, "{states}");
}

#[test]
fn failed_call_loses_no_acknowledged_write_and_does_not_hang() {
    let writes = writes(3, 30);
    let files = states(&writes);
    for op in [Op::Write, Op::Sync, Op::SyncDir, Op::Create, Op::Rename, Op::Remove, Op::Read] {
        for errno in [Errno::IO, Errno::NOSPC] {
            for n in 1..8 {
                let disk = disk_with("big", FILE_BYTES);
                disk.after_a_failed_sync(if n % 2 == 0 {
                    Survival::Nothing
                } else {
                    Survival::Half { seed: n }
                });
                let (page_file, _) = open(&disk, options(12 << 10));
                disk.fail_once(op, n, errno);
                let mut acknowledged = 0;
                for (number, (offset, bytes)) in writes.iter().enumerate() {
                    let result = page_file.write(*offset as u64, bytes).and_then(|t| Ok(t.wait()?));
                    if result.is_err() {
                        break;
                    }
                    acknowledged = number + 1;
                }
                disk.heal();
                let left = MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
                drop(page_file);
                let (page_file, _) = open(&left, options(12 << 10));
                page_file.close().unwrap();
                let found = content(&left, "big");
                let number = files.iter().rposition(|file| *file == found);
                assert!(
                    number.is_some_and(|number| number >= acknowledged),
                    "{op:?} {errno:?} {n}: {acknowledged} acknowledged, {number:?}"
                );
            }
        }
    }
}

fn apply(patch: &Patch, disk: &MemoryDisk) {
    let writer = SortedWriter::start(Options::default()).unwrap();
    let file = writer.open(disk, "big").unwrap();
    patch.apply(&writer, file, &mut |_, _| {}).unwrap();
    writer.close().unwrap();
}

#[test]
fn crash_leaves_a_patch_applied_or_not_at_all() {
    let crashes =
        Crashes { all_up_to: 4, draws: 1, again_one_in: 16, again_steps: 4, ..Crashes::default() };
    println!("SEED={}", crashes.seed);
    let writes = writes(crashes.seed, 6);
    let files = states(&writes);
    let (before, after) = (&files[0], &files[6]);
    let workload = |disk: &MemoryDisk| {
        add_file(disk, "big", FILE_BYTES);
        disk.note(false);
        let log = log_of(disk);
        let mut patch = Patch::begin(&log, "big", FILE_BYTES as u64, 0).unwrap();
        for (offset, bytes) in &writes {
            patch.add(*offset as u64, bytes).unwrap();
        }
        patch.commit().unwrap();
        disk.note(true);
        assert_eq!(patch.records(), 6);
        apply(&patch, disk);
        drop(patch);
        Patch::remove_log(&*log).unwrap();
    };
    let states = crash_everywhere(&crashes, workload, |(), crash| {
        let Some(is_committed) = crash.notes::<bool>().last().copied() else { return };
        let disk = &crash.disk;
        let log = log_of(disk);
        match Patch::recover(&log, "big", FILE_BYTES as u64).unwrap() {
            PatchState::Absent | PatchState::Obsolete { .. } => {}
            PatchState::Committed(patch) => {
                disk.note(true);
                apply(&patch, disk);
            }
        }
        Patch::remove_log(&*log).unwrap();
        let left: Medium = disk.medium().cut(Survival::Nothing);
        let found = content(&MemoryDisk::on(&left), "big");
        let is_after = found == *after;
        assert!(is_after || (!is_committed && found == *before), "committed: {is_committed}");
        if is_after {
            disk.note(true);
        }
    });
    assert!(states > 40, "{states}");
}

#[test]
fn patch_for_another_file_is_rejected() {
    let disk = disk_with("big", FILE_BYTES);
    let log = log_of(&disk);
    assert!(matches!(Patch::recover(&log, "big", 1).unwrap(), PatchState::Absent));
    let mut patch = Patch::begin(&log, "big", FILE_BYTES as u64, 0).unwrap();
    patch.add(7, b"hello").unwrap();
    drop(patch);
    let state = Patch::recover(&log, "big", FILE_BYTES as u64).unwrap();
    assert!(matches!(state, PatchState::Obsolete { is_applied: false }));
    Patch::remove_log(&*log).unwrap();
    let mut patch = Patch::begin(&log, "big", FILE_BYTES as u64, 0).unwrap();
    patch.commit().unwrap();
    drop(patch);
    assert!(Patch::recover(&log, "other", FILE_BYTES as u64).is_err());
    assert!(Patch::recover(&log, "big", 100).is_err(), "the file was truncated");
    assert!(PageFile::open(&disk, "big", &log, options(1)).is_err(), "the log is a patch");
    let sub = Subdir::new(shared(&disk), "log");
    assert!(matches!(
        Patch::recover(&log, "big", FILE_BYTES as u64).unwrap(),
        PatchState::Committed(_)
    ));
    Patch::remove_log(&sub).unwrap();
    assert!(matches!(Patch::recover(&log, "big", 1).unwrap(), PatchState::Absent));
}
