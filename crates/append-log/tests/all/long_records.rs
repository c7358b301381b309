//! Tests records that are longer than an append buffer: every call that appends and reads them,
//! many threads, and the memory that they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haul_append_log::{BatchRecord, Log, Lsn, RecordRequest, SpacePriority};
use haul_disk::Op;
use haul_disk_sim::Survival;
use haul_testing::{Random, disk_dir, eventually};

use crate::concurrent::on_memory;
use crate::last_record::{Records, read_all};
use crate::payload::{id_of, ids, payload};
use crate::recovery::{report, start};
use crate::{block_on, open, open_on, put, small, started, within_a_minute};

const BUFFER_BYTES: usize = 64 << 10;

/// Lengths around that of a buffer, and of several buffers.
fn lengths(log: &Log) -> Vec<usize> {
    let longest = usize::try_from(log.payload_bytes_max()).unwrap();
    let around = BUFFER_BYTES - 5000..BUFFER_BYTES + 5000;
    let several = [2, 3, 7].map(|buffers| buffers * BUFFER_BYTES + 1);
    around.step_by(500).chain(several).chain([longest, 100]).collect()
}

/// Asserts that each function that reads returns exactly these records.
fn check_reads(log: &Log, records: &Records) {
    assert!(read_all(log) == *records);
    assert_eq!(log.last_record().unwrap(), records.last().map(|(at, _)| *at));
    for (at, payload) in records {
        assert!(log.read(*at).unwrap().payload() == payload);
        assert!(log.read_hinted(at.lsn, 1000).unwrap().payload() == payload);
    }
    let request = |(tag, (at, _)): (u64, &(_, Vec<u8>))| {
        let at: haul_append_log::Position = *at;
        RecordRequest { lsn: at.lsn, payload_bytes: at.payload_bytes, tag }
    };
    let mut found = 0;
    for (tag, record) in log.read_batch((0..).zip(records).map(request).collect()) {
        let BatchRecord::Whole(record) = record.unwrap() else { panic!("a part of a record") };
        assert!(record.payload() == records[usize::try_from(tag).unwrap()].1);
        found += 1;
    }
    assert_eq!(found, records.len());
}

#[test]
fn long_records_are_appended_and_read_by_every_function() {
    let (disk, log) = on_memory();
    let mut records = Records::new();
    for (id, bytes) in (0_u64..).zip(lengths(&log)) {
        let payload = payload(id, bytes);
        let (front, rest) = payload.split_at(bytes / 3);
        let ticket = if id % 3 == 1 {
            loop {
                match log.try_append(&[front, rest], SpacePriority::Ordinary).unwrap() {
                    Some(ticket) => break ticket,
                    None => thread::yield_now(),
                }
            }
        } else {
            log.append(&[front, rest], SpacePriority::Ordinary).unwrap()
        };
        let at = if id % 2 == 0 { ticket.wait() } else { block_on(ticket) };
        records.push((at.unwrap(), payload));
    }
    check_reads(&log, &records);
    log.close().unwrap();
    let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
    assert!(opened.records == records && opened.recovered.closed);
    check_reads(&opened.log, &records);
    drop(opened);
    let mut delivered = Records::new();
    let mut each = |at, payload: &[u8]| delivered.push((at, payload.to_vec()));
    let (read_only, _) = Log::open_read_only(Arc::new(disk), small(), &mut each).unwrap();
    assert!(delivered == records);
    assert!(records.iter().all(|(at, bytes)| read_only.read(*at).unwrap().payload() == bytes));
}

#[test]
fn long_record_takes_one_write_together_with_short_ones() {
    let (disk, log) = on_memory();
    put(&log, &payload(0, 100));
    let calls = || [Op::Write, Op::Sync].map(|op| disk.calls(op));
    let before = calls();
    let append = |id, bytes| log.append(&[&payload(id, bytes)], SpacePriority::Ordinary).unwrap();
    let tickets = [append(1, 1000), append(2, 2 * BUFFER_BYTES), append(3, 1000)];
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert_eq!(calls(), before.map(|calls| calls + 1));
    assert_eq!(read_all(&log).len(), 4);
}

#[test]
fn long_and_short_records_of_many_threads_and_futures_are_all_durable() {
    const THREADS: u64 = 6;
    const EACH: u64 = 40;
    within_a_minute("long and short records", || {
        let (disk, log) = on_memory();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let log = &log;
                scope.spawn(move || {
                    let mut random = Random(thread);
                    for id in thread * EACH..(thread + 1) * EACH {
                        let bytes_max = if random.below(4) == 0 { 400_000 } else { 3000 };
                        let bytes = usize::try_from(random.below(bytes_max)).unwrap();
                        let payload = payload(id, bytes);
                        let parts: &[&[u8]] = &[&payload];
                        let at = match thread % 3 {
                            0 => put(log, &payload),
                            1 => started(log.append(parts, SpacePriority::Ordinary).unwrap())
                                .position(),
                            _ => block_on(log.append(parts, SpacePriority::Ordinary).unwrap())
                                .unwrap(),
                        };
                        assert_eq!(at.payload_bytes as usize, payload.len());
                    }
                });
            }
        });
        log.sync().unwrap();
        let found = read_all(&log);
        assert!(ids(&found).keys().copied().eq(0..THREADS * EACH));
        let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
        assert!(again.records == found);
    });
}

#[test]
fn short_records_do_not_starve_a_record_of_a_whole_segment() {
    within_a_minute("a long record among short ones", || {
        let (_, log) = on_memory();
        let longest = usize::try_from(log.payload_bytes_max()).unwrap();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 1..4_u64 {
                let (log, is_done) = (&log, &is_done);
                scope.spawn(move || {
                    for id in thread << 32.. {
                        put(log, &payload(id, 3000));
                        if is_done.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            for id in 0..8 {
                let ticket = log.append(&[&payload(id, longest)], SpacePriority::Ordinary).unwrap();
                let at = if id % 2 == 0 { ticket.wait() } else { block_on(ticket) }.unwrap();
                assert_eq!(id_of(log.read(at).unwrap().payload()), Some(id));
            }
            is_done.store(true, Ordering::Relaxed);
        });
    });
}

/// Returns the lengths of the append buffers of a log.
fn buffers(log: &Log) -> Vec<usize> {
    // The log and its appender print the same state, which begins with the filling batch. A state
    // that a background thread has locked is not printed.
    let mut text = String::new();
    eventually("the state of the log is not locked", || {
        let printed = format!("{log:?}");
        text = printed.split("filling: ").nth(1).map(str::to_owned).unwrap_or_default();
        !text.is_empty()
    });
    let bytes = |part: &str| part.split_once(" bytes)").unwrap().0.parse().unwrap();
    text.split("AlignedBuf(").skip(1).map(bytes).collect()
}

#[test]
fn memory_of_long_records_is_freed_when_they_are_durable() {
    within_a_minute("the memory of long records", || {
        let dir = disk_dir();
        let log = open(dir.path()).log;
        assert_eq!(buffers(&log), [BUFFER_BYTES; 2]);
        let ticket = log.append(&[&payload(0, 5 * BUFFER_BYTES)], SpacePriority::Ordinary).unwrap();
        let longest = buffers(&log).into_iter().max();
        assert!(longest.is_some_and(|bytes| bytes > 5 * BUFFER_BYTES), "{longest:?}");
        ticket.wait().unwrap();
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let log = &log;
                scope.spawn(move || {
                    for id in 1..20 {
                        put(log, &payload(thread << 32 | id, 3 * BUFFER_BYTES));
                        put(log, &payload(thread << 40 | id, 10));
                    }
                });
            }
        });
        put(&log, b"the last one");
        assert_eq!(buffers(&log), [BUFFER_BYTES; 2]);
    });
}

#[test]
fn damage_in_a_long_record_loses_only_this_record() {
    let (disk, log) = on_memory();
    let lengths = [1000, 300_000, 2000, 500_000, 3000];
    let at: Vec<_> =
        (0..).zip(lengths).map(|(id, bytes)| put(&log, &payload(id, bytes)).lsn).collect();
    log.close().unwrap();
    disk.rot("0000000001.segment", u64::from(at[1].offset()) + 200_000, 3);
    let opened = start(&disk.medium(), report()).unwrap();
    assert!(ids(&opened.records).keys().copied().eq([0, 2, 3, 4]));
    let [damage] = &opened.recovered.damage[..] else { panic!("{:?}", opened.recovered.damage) };
    assert_eq!((damage.offset, damage.end), (at[1].offset().into(), at[2].offset().into()));
    let mut reader = opened.log.reader(Lsn::default());
    let mut results = Vec::new();
    loop {
        match reader.read_next() {
            Ok(None) => break,
            found => results.push(found.ok().flatten().and_then(|(_, bytes)| id_of(bytes))),
        }
    }
    assert_eq!(results, [Some(0), None, Some(2), Some(3), Some(4)]);
}
