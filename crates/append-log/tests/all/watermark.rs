//! Tests watermarks, which prove that the last records of an idle log were synced.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use haul_append_log::{Error, Log, Lsn, Options, Position, SpacePriority, segment_name};
use haul_disk::{Disk, Op, OsDisk};
use haul_disk_sim::{FaultyDisk, Medium, MemoryDisk, Survival};
use rustix::io::Errno;

use crate::concurrent::on_memory;
use crate::payload::{ids, payload};
use crate::recovery::{bytes_of, report, start};
use crate::{disk_dir, open_on, put, small, started, within_a_minute};

fn batches(log: &Log) -> u64 {
    log.stats().batches
}

/// Appends two batches with one record each and one batch with three records.
fn three_batches(disk: &MemoryDisk, log: &Log) -> Vec<Position> {
    let append = |id| log.append(&[&payload(id, 48)], SpacePriority::Ordinary).unwrap();
    let mut positions = vec![append(0).wait().unwrap()];
    let together = || (2..5).map(append).collect::<Vec<_>>();
    let (first, others) = disk.during_a_sync(|| started(append(1)), together);
    let tickets = [first].into_iter().chain(others);
    positions.extend(tickets.map(|ticket| ticket.wait().unwrap()));
    positions
}

#[test]
fn damage_of_any_byte_before_a_watermark_is_reported() {
    let (disk, log) = on_memory();
    let positions = three_batches(&disk, &log);
    log.write_watermark().unwrap();
    let medium = disk.medium();
    let mut bytes = 0;
    for position in &positions {
        for at in bytes_of(*position) {
            let mut damaged = medium.clone();
            damaged.file(&segment_name(1))[at] ^= 1;
            let refused = start(&damaged, small()).map(drop).unwrap_err();
            let Error::Damaged { file, offset, .. } = refused else { panic!("{refused:?}") };
            assert_eq!(file, Path::new("memory").join(segment_name(1)));
            assert_eq!(offset, u64::from(position.lsn.offset()), "byte {at}");
            let opened = start(&damaged, report()).unwrap();
            assert_eq!(opened.records.len(), positions.len() - 1, "byte {at}");
            assert_eq!(opened.recovered.damage.len(), 1, "byte {at}");
            bytes += 1;
        }
    }
    println!("{bytes} bytes damaged, each reported");
    assert_eq!(bytes, 5 * 80);
}

#[test]
fn watermark_survives_power_cut_and_is_not_repeated() {
    let (disk, log) = on_memory();
    let positions = three_batches(&disk, &log);
    log.write_watermark().unwrap();
    let medium = disk.medium().cut(Survival::Nothing);
    let disk = MemoryDisk::on(&medium);
    let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
    let delivered: Vec<Position> = opened.records.iter().map(|(at, _)| *at).collect();
    assert_eq!(delivered, positions);
    assert_eq!((opened.recovered.torn_bytes, opened.recovered.closed), (0, false));
    opened.log.write_watermark().unwrap();
    assert_eq!(batches(&opened.log), 0, "a second watermark for the same records");

    put(&opened.log, &payload(5, 48));
    opened.log.write_watermark().unwrap();
    opened.log.write_watermark().unwrap();
    assert_eq!(batches(&opened.log), 2, "not one watermark for the new record");
    let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    assert!(ids(&again.records).keys().copied().eq(0..6));
}

#[test]
fn recovered_records_without_a_watermark_get_one() {
    let (disk, log) = on_memory();
    three_batches(&disk, &log);
    let opened = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    opened.log.write_watermark().unwrap();
    assert_eq!(batches(&opened.log), 1);

    log.close().unwrap();
    let opened = start(&disk.medium(), small()).unwrap();
    opened.log.write_watermark().unwrap();
    assert_eq!(batches(&opened.log), 0, "a watermark after the close record");
}

#[test]
fn idle_log_writes_exactly_one_watermark() {
    within_a_minute("an idle log", || {
        let disk = MemoryDisk::default();
        let options = Options { idle_watermark_ms: 1, ..small() };
        let log = open_on(Arc::new(disk.clone()), options).unwrap().log;
        let mut reader = log.reader(Lsn::default());
        for id in 0..50 {
            put(&log, &payload(id, 100));
            // If the log wrote more than one watermark, a later round would count too many batches.
            while batches(&log) < 2 * (id + 1) {
                thread::yield_now();
            }
            assert_eq!(batches(&log), 2 * (id + 1));
            assert!(reader.read_next().unwrap().is_some());
            assert!(reader.read_next().unwrap().is_none(), "a watermark was delivered");
        }
        assert_eq!(log.stats().records, 50);
        log.close().unwrap();
        assert_eq!(start(&disk.medium(), small()).unwrap().records.len(), 50);
    });
}

#[test]
fn log_with_an_unwaited_ticket_is_not_idle() {
    let (_, log) = on_memory();
    put(&log, &payload(0, 100));
    let ticket = log.append(&[&payload(1, 100)], SpacePriority::Ordinary).unwrap();
    log.write_watermark().unwrap();
    assert_eq!(batches(&log), 3, "both records, then the watermark");
    ticket.wait().unwrap();
    assert_eq!(batches(&log), 3);
}

#[test]
fn full_segment_is_sealed_instead_of_a_watermark() {
    within_a_minute("a full segment", || {
        let dir = disk_dir();
        let disk = FaultyDisk::new(Arc::new(OsDisk::open(dir.path()).unwrap()));
        let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
        disk.fail_always(Op::Create, Errno::NOSPC);
        let mut id = 0;
        for bytes in [30_000, 8] {
            while log.append(&[&payload(id, bytes)], SpacePriority::Ordinary).map(drop).is_ok() {
                id += 1;
            }
        }
        log.write_watermark().unwrap();
        let before = batches(&log);
        log.write_watermark().unwrap();
        assert_eq!(batches(&log), before, "a watermark without space");
        disk.heal();
        // This append requests the next segment, for which it does not wait.
        assert!(log.try_append(&[&payload(id, 8)], SpacePriority::Ordinary).unwrap().is_none());
        while batches(&log) == before {
            log.write_watermark().unwrap();
            thread::yield_now();
        }
        assert_eq!(batches(&log), before + 1);
        assert_eq!(log.segments().len(), 2, "the first segment is sealed");
        log.close().unwrap();
        assert!(ids(&crate::open(dir.path()).records).keys().copied().eq(0..id));
    });
}

#[test]
fn watermark_in_a_new_segment_proves_the_end_of_the_previous() {
    // If the next segment is ready, the seal, which ends the segment, is written in the batch of
    // the last record. The writer therefore waits until the next segment has its name. The log may
    // use the segment only a moment later, so filling is repeated until the seal is in that batch.
    let (disk, log, last) = (0..100)
        .map(|_| {
            let (disk, log) = on_memory();
            let put_next = |id| {
                while id > 32 && !disk.list("").unwrap().contains(&segment_name(2)) {
                    thread::yield_now();
                }
                put(&log, &payload(id, 16_000))
            };
            let last = (0..).map(put_next).find(|_| log.segments().len() == 2).unwrap();
            (disk, log, last)
        })
        .find(|(_, log, last)| (last.lsn.segment(), log.synced().segment()) == (1, 1))
        .expect("the seal is in the batch of the last record");
    log.write_watermark().unwrap();
    let mut medium: Medium = disk.medium();
    medium.file(&segment_name(1))[bytes_of(last).end - 1] ^= 1;
    let refused = start(&medium, small()).map(drop);
    assert!(matches!(refused, Err(Error::Damaged { offset, .. })
        if offset == u64::from(last.lsn.offset())));
}

#[test]
fn truncation_at_the_lsn_of_a_later_watermark_works() {
    let (disk, log) = on_memory();
    put(&log, &payload(0, 100));
    let end = log.synced();
    log.write_watermark().unwrap();
    put(&log, &payload(1, 100));
    log.truncate_back(end).unwrap();
    log.write_watermark().unwrap();
    put(&log, &payload(2, 100));
    let left = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    assert!(ids(&left.records).keys().copied().eq([0, 2]));
}
