//! Tests that the loss of a segment's file is reported if the caller removes segments in order.

use std::sync::Arc;
use std::thread;

use haul_append_log::{Error, Log, Lsn, OnDamage, Options, Position, SpacePriority, segment_name};
use haul_disk::{Disk, Op};
use haul_disk_sim::{Crash, Crashes, Medium, MemoryDisk, Survival, crash_everywhere};
use rustix::io::Errno;

use crate::payload::{ids, payload};
use crate::recovery::{report, start};
use crate::{open_on, put, put_long, small};

fn five_segments(options: Options) -> (MemoryDisk, Vec<Position>) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), options).unwrap().log;
    let positions: Vec<_> = (0..150).map(|id| put(&log, &payload(id, 30_000))).collect();
    assert_eq!(log.segments().len(), 5);
    log.close().unwrap();
    (disk, positions)
}

fn without(disk: &MemoryDisk, numbers: &[u32]) -> Medium {
    let disk = MemoryDisk::on(&disk.medium());
    numbers.iter().for_each(|number| disk.remove(&segment_name(*number)).unwrap());
    disk.sync_dir("").unwrap();
    disk.medium()
}

/// Opens the log for writing and read-only. Asserts that the segments `lost` are reported, and that
/// the records of all others are delivered.
fn check(medium: &Medium, positions: &[Position], lost: &[u32]) {
    let opened = start(medium, report()).unwrap();
    let expected: Vec<_> = lost.iter().map(|number| segment_name(*number)).collect();
    let names = |damage: &[haul_append_log::Damage]| -> Vec<String> {
        damage.iter().map(|d| d.file.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&opened.recovered.damage), expected);
    assert!(opened.records.iter().map(|(at, _)| at).eq(positions));
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::on(medium));
    let mut each = |_: Position, _: &[u8]| {};
    let (_, found) = Log::open_read_only(Arc::clone(&disk), report(), &mut each).unwrap();
    assert_eq!((names(&found.damage), found.records), (expected, positions.len() as u64));
    let refusing = Options { on_damage: OnDamage::Refuse, ..small() };
    let read = Log::open_read_only(disk, refusing.clone(), &mut each).map(drop);
    for refused in [start(medium, refusing).map(drop), read] {
        match refused {
            Ok(()) => assert!(lost.is_empty(), "{lost:?} are not reported"),
            Err(Error::Damaged { file, .. }) => assert!(file.ends_with(segment_name(lost[0]))),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn lost_segments_between_others_are_reported() {
    let (disk, positions) = five_segments(small());
    let removals =
        [&[][..], &[2], &[3], &[2, 4], &[1], &[1, 2], &[1, 3], &[2, 3], &[2, 3, 4], &[1, 3, 4]];
    for removed in removals {
        let left: Vec<_> =
            positions.iter().copied().filter(|at| !removed.contains(&at.lsn.segment())).collect();
        let first = left[0].lsn.segment();
        let lost: Vec<_> = removed.iter().copied().filter(|number| *number > first).collect();
        check(&without(&disk, removed), &left, &lost);
    }
}

#[test]
fn segments_removed_in_any_order_are_not_reported() {
    let (disk, positions) = five_segments(Options { removes_in_order: false, ..small() });
    let left: Vec<_> = positions.into_iter().filter(|at| at.lsn.segment() != 3).collect();
    check(&without(&disk, &[3]), &left, &[]);
}

#[test]
fn only_the_oldest_segment_can_be_removed_in_order() {
    let (disk, positions) = five_segments(small());
    let log = start(&disk.medium(), small()).unwrap().log;
    let refused = log.remove_segment(2);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    log.remove_segment(1).unwrap();
    log.remove_segment(2).unwrap();
    assert_eq!(log.truncate_front(Lsn::new(4, 0)).unwrap(), 1);
    assert!(log.read(positions[149]).is_ok());
}

#[test]
fn failure_and_truncation_leave_no_apparent_gap() {
    let (disk, positions) = five_segments(small());
    let log = start(&disk.medium(), small()).unwrap().log;
    let cut = positions.iter().find(|at| at.lsn.segment() == 3).unwrap().lsn;
    log.truncate_back(cut).unwrap();
    put_long(&log, 200..280);
    drop(log);
    let faulty = haul_disk_sim::FaultyDisk::new(Arc::new(disk.clone()));
    let log = open_on(Arc::new(faulty.clone()), small()).unwrap().log;
    put_long(&log, 150..160);
    faulty.fail_always(Op::Sync, Errno::IO);
    assert!(log.append(&[&payload(1000, 100)], SpacePriority::Ordinary).unwrap().wait().is_err());
    drop(log);
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    put_long(&log, 160..240);
    log.close().unwrap();
    let opened = start(&disk.medium(), small()).unwrap();
    let found = ids(&opened.records);
    assert!(found.keys().copied().filter(|id| *id < 1000).eq(0..240), "{found:?}");
}

/// Removes segments on two threads at once, and appends.
fn workload(disk: &MemoryDisk) {
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    for id in 0..70 {
        put(&log, &payload(id, 60_000));
        if id % 35 == 34 {
            let last = log.segments().last().unwrap().number;
            thread::scope(|scope| {
                scope.spawn(|| log.truncate_front(Lsn::new(last, 0)).unwrap());
                log.truncate_front(Lsn::new(last - 1, 0)).unwrap();
            });
        }
    }
    let back = log.last_record().unwrap().unwrap().lsn;
    log.truncate_back(back).unwrap();
    put_long(&log, 200..210);
}

#[test]
fn crash_leaves_no_apparent_gap() {
    let crashes = Crashes { draws: 1, again_one_in: 64, ..Crashes::default() };
    let states = crash_everywhere(&crashes, workload, |(), crash: &Crash| {
        let opened = open_on(Arc::new(crash.disk.clone()), small()).unwrap();
        put_long(&opened.log, 1000..1003);
        let medium = crash.disk.medium().cut(Survival::Nothing);
        assert!(start(&medium, small()).unwrap().recovered.damage.is_empty());
    });
    assert!(states > 200, "{states}");
}
