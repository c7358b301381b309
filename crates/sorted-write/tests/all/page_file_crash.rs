//! The power is cut at every step of a page file and of a patch, and any call may fail.

use haul_disk::{Op, Subdir};
use haul_disk_sim::{Crashes, Medium, MemoryDisk, Random, Survival, crash_everywhere};
use haul_sorted_write::{Leftover, Options, PageFile, Patch, Role, SortedWriter};
use rustix::io::Errno;

use crate::helper::{add_file, content, disk_with, original, put, shared};
use crate::page_file::{log_of, open, options};

const FILE_BYTES: usize = 20_000;

fn writes(seed: u64, count: u8) -> Vec<(usize, Vec<u8>)> {
    let mut random = Random(seed);
    let mut below = |n: u64| usize::try_from(random.below(n)).unwrap();
    (1..=count).map(|n| (below(18_000), vec![n; below(5000) + 1])).collect()
}

/// The file after each number of writes.
fn states(writes: &[(usize, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut states = vec![original(FILE_BYTES)];
    for (offset, bytes) in writes {
        let mut next = states[states.len() - 1].clone();
        put(&mut next, *offset, bytes);
        states.push(next);
    }
    states
}

/// Begun where there is a file.
#[derive(Debug, Clone, Copy)]
struct Acknowledged(usize);

#[test]
fn after_a_crash_the_file_is_as_after_some_write_not_before_the_last_acknowledged() {
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
        // It goes on where it was.
        if let Some((offset, bytes)) = first.get(number.unwrap()) {
            page_file.write(*offset as u64, bytes).unwrap().wait().unwrap();
            crash.disk.note(Acknowledged(number.unwrap() + 1));
        }
        page_file.close().unwrap();
    });
    assert!(states > 50, "{states}");
}

#[test]
fn whatever_call_fails_nothing_acknowledged_is_lost_and_nobody_hangs() {
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
                    let done = page_file.write(*offset as u64, bytes).and_then(|t| Ok(t.wait()?));
                    if done.is_err() {
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
    let file = writer.open(disk, "big", Role::Bulk).unwrap();
    patch.apply(&writer, file, &mut |_, _| {}).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_patch_is_in_the_file_wholly_or_not_at_all() {
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
        Patch::forget(&*log).unwrap();
    };
    let states = crash_everywhere(&crashes, workload, |(), crash| {
        let Some(is_committed) = crash.notes::<bool>().last().copied() else { return };
        let disk = &crash.disk;
        let log = log_of(disk);
        match Patch::left_in(&log, "big", FILE_BYTES as u64).unwrap() {
            Leftover::Nothing | Leftover::Rest { .. } => {}
            Leftover::Committed(patch) => {
                disk.note(true);
                apply(&patch, disk);
            }
        }
        Patch::forget(&*log).unwrap();
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
fn a_patch_for_another_file_is_refused() {
    let disk = disk_with("big", FILE_BYTES);
    let log = log_of(&disk);
    assert!(matches!(Patch::left_in(&log, "big", 1).unwrap(), Leftover::Nothing));
    let mut patch = Patch::begin(&log, "big", FILE_BYTES as u64, 0).unwrap();
    patch.add(7, b"hello").unwrap();
    drop(patch);
    let rest = Patch::left_in(&log, "big", FILE_BYTES as u64).unwrap();
    assert!(matches!(rest, Leftover::Rest { is_applied: false }));
    Patch::forget(&*log).unwrap();
    let mut patch = Patch::begin(&log, "big", FILE_BYTES as u64, 0).unwrap();
    patch.commit().unwrap();
    drop(patch);
    assert!(Patch::left_in(&log, "other", FILE_BYTES as u64).is_err());
    assert!(Patch::left_in(&log, "big", 100).is_err(), "it became shorter");
    assert!(PageFile::open(&disk, "big", &log, options(1)).is_err(), "it is a patch");
    let sub = Subdir::new(shared(&disk), "log");
    assert!(matches!(
        Patch::left_in(&log, "big", FILE_BYTES as u64).unwrap(),
        Leftover::Committed(_)
    ));
    Patch::forget(&sub).unwrap();
    assert!(matches!(Patch::left_in(&log, "big", 1).unwrap(), Leftover::Nothing));
}
