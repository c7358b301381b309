//! Tests the padding after the records of a lone writer.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, Options, payload_bytes_in_pages};
use haul_disk_sim::{Crash, Crashes, MemoryDisk, Survival, crash_everywhere};

use crate::concurrent::on_memory;
use crate::payload::{ids, payload};
use crate::recovery::start;
use crate::{open_on, put, small};

const PAGE: u64 = 4096;

/// Appends `count` records one by one, and returns the bytes that the log writes for each.
fn written(log: &Log, payload_bytes: usize, count: u64) -> Vec<u64> {
    let one = |id| {
        let before = log.stats().written_bytes;
        put(log, &payload(id, payload_bytes));
        log.stats().written_bytes - before
    };
    (0..count).map(one).collect()
}

#[test]
fn lone_record_of_a_page_is_written_as_one_page() {
    let (_, log) = on_memory();
    let page = payload_bytes_in_pages(1) as usize;
    assert_eq!(written(&log, page, 5), [PAGE; 5]);
    // A shorter record moves the next ones. The second of them is followed by padding.
    put(&log, &payload(100, 100));
    let moved = written(&log, page, 6);
    assert_eq!(moved, [2 * PAGE, 2 * PAGE, PAGE, PAGE, PAGE, PAGE]);
    // A watermark moves the next record only.
    log.write_watermark().unwrap();
    let after_watermark = written(&log, page, 4);
    assert_eq!(after_watermark, [2 * PAGE, PAGE, PAGE, PAGE]);
    assert_eq!(written(&log, 4000, 4)[2..], [PAGE; 2], "the space for a page is not filled");
}

#[test]
fn log_without_padding_adds_no_bytes() {
    let disk = MemoryDisk::default();
    let options = Options { pads_records: false, ..small() };
    let log = open_on(Arc::new(disk), options).unwrap().log;
    let at: Vec<Lsn> = (0..10).map(|id| put(&log, &payload(id, 4000)).lsn).collect();
    assert!(at.windows(2).all(|two| two[1].offset() - two[0].offset() == 4032), "{at:?}");
}

#[test]
fn padding_takes_little_space_and_follows_no_records_of_other_lengths() {
    let (_, log) = on_memory();
    let mut appended = 0;
    for id in 0..100 {
        let bytes = if id % 2 == 0 { 4064 } else { 4000 };
        put(&log, &payload(id, bytes));
        appended += 32 + bytes as u64;
    }
    assert_eq!(u64::from(log.synced().offset()), PAGE + appended, "lengths alternate");
}

#[test]
fn padding_is_neither_delivered_nor_a_proof_of_a_sync() {
    let (disk, log) = on_memory();
    for id in 0..3 {
        put(&log, &payload(id, 4000));
    }
    assert_eq!(log.synced().offset() % 4096, 0, "padding follows the last record");
    let mut reader = log.reader(Lsn::default());
    let mut delivered = 0;
    while reader.read_next().unwrap().is_some() {
        delivered += 1;
    }
    assert_eq!(delivered, 3);
    let opened = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    assert!(ids(&opened.records).keys().copied().eq(0..3));
    opened.log.write_watermark().unwrap();
    assert_eq!(opened.log.stats().batches, 1, "the log took padding for a watermark");
}

/// Appends lone records across the end of a segment, with padding after most of them.
fn workload(disk: &MemoryDisk) {
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    for id in 0..65 {
        let bytes = match id {
            0..15 => 60_000,
            _ if id % 10 == 7 => 100,
            _ => 4000,
        };
        put(&log, &payload(id, bytes));
        disk.note(id);
        if id % 20 == 3 {
            log.write_watermark().unwrap();
        }
    }
    assert_eq!(log.segments().len(), 2);
}

/// Asserts that the acknowledged records survived, and no later one without them. Appends two more.
fn recover(crash: &Crash) {
    let opened = open_on(Arc::new(crash.disk.clone()), small()).unwrap();
    let found = ids(&opened.records);
    let count = found.len() as u64;
    assert!(found.keys().copied().eq(0..count), "not a prefix: {found:?}");
    let acknowledged = crash.notes().last().map_or(0, |id: &u64| id + 1);
    assert!(count >= acknowledged, "{count} of {acknowledged} acknowledged records");
    for id in count..count + 2 {
        put(&opened.log, &payload(id, 4000));
        crash.disk.note(id);
    }
}

#[test]
fn padded_records_survive_crash_at_any_step() {
    let recover = |(): &(), crash: &Crash| recover(crash);
    let states = crash_everywhere(&Crashes::default(), workload, recover);
    assert!(states > 300, "{states}");
}
