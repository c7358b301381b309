//! Tests writers, futures, readers and truncations that run at the same time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use haul_append_log::{Log, Lsn, Position, SpacePriority};
use haul_disk_sim::{MemoryDisk, Survival};
use haul_testing::Random;

use crate::payload::{id_of, payload};
use crate::recovery::start;
use crate::{block_on, open_on, put, small, within_a_minute};

pub(crate) fn on_memory() -> (MemoryDisk, Log) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    (disk, log)
}

fn length(random: &mut Random) -> usize {
    usize::try_from(8 + random.below(9000)).unwrap()
}

/// `true` if these bytes of a record would survive a power cut now.
fn is_durable(disk: &MemoryDisk, at: Position, bytes: &[u8]) -> bool {
    let mut medium = disk.medium().cut(Survival::Nothing);
    let start = at.lsn.offset() as usize + 32;
    let name = haul_append_log::segment_name(at.lsn.segment());
    medium.file(&name)[start..start + bytes.len()] == *bytes
}

#[test]
fn each_reader_sees_each_durable_record_once_in_order() {
    const WRITERS: u64 = 6;
    const EACH: u64 = 120;
    within_a_minute("writers and readers", || {
        let (disk, log) = on_memory();
        let written = Mutex::new(Vec::new());
        let is_done = AtomicBool::new(false);
        let seen: Vec<Vec<(Lsn, u64)>> = thread::scope(|scope| {
            let (log, disk, written, is_done) = (&log, &disk, &written, &is_done);
            let readers: Vec<_> = (0..3)
                .map(|number: usize| {
                    scope.spawn(move || {
                        let mut reader = log.reader(Lsn::default());
                        let mut seen = Vec::new();
                        loop {
                            // With the short timeout, the wait often ends beside an append.
                            let timeout = Duration::from_millis([1, 20, 20][number]);
                            let next = reader.wait_next(Some(timeout));
                            match next.unwrap() {
                                Some((at, bytes)) => {
                                    let id = id_of(bytes).expect("a record as it was appended");
                                    if seen.len() % 8 == 0 {
                                        assert!(is_durable(disk, at, bytes), "{}", at.lsn);
                                    }
                                    seen.push((at.lsn, id));
                                }
                                None if is_done.load(Ordering::SeqCst) => break,
                                None => {}
                            }
                            if seen.len() as u64 == WRITERS * EACH {
                                break;
                            }
                        }
                        seen
                    })
                })
                .collect();
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    scope.spawn(move || {
                        let mut random = Random(writer);
                        for n in 0..EACH {
                            let id = writer * EACH + n;
                            let bytes = payload(id, length(&mut random));
                            let at = if writer % 2 == 0 {
                                put(log, &bytes)
                            } else {
                                block_on(log.append(&[&bytes], SpacePriority::Ordinary).unwrap())
                                    .unwrap()
                            };
                            written.lock().unwrap().push((at.lsn, id));
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_done.store(true, Ordering::SeqCst);
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        let mut written = written.into_inner().unwrap();
        written.sort_unstable();
        assert!(log.segments().len() > 2);
        for seen in seen {
            assert_eq!(seen, written);
        }
    });
}

#[test]
fn readers_follow_a_log_truncated_at_the_front_without_gaps() {
    within_a_minute("readers and a moving front", || {
        let (_, log) = on_memory();
        let (last, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let (log, last, is_done) = (&log, &last, &is_done);
            for slow in [false, true] {
                scope.spawn(move || {
                    let mut reader = log.reader(Lsn::default());
                    let (mut before, mut segment) = (None, 0);
                    while let Some((at, bytes)) = reader.wait_next(None).unwrap() {
                        let id = id_of(bytes).expect("a record as it was appended");
                        // Within a segment no record is skipped, because truncation removes whole
                        // segments.
                        if let Some(before) = before.filter(|_| at.lsn.segment() == segment) {
                            assert_eq!(id, before + 1);
                        }
                        assert!(before.is_none_or(|before| id > before));
                        (before, segment) = (Some(id), at.lsn.segment());
                        if slow {
                            thread::yield_now();
                        }
                        if id == 1999 {
                            return;
                        }
                    }
                    panic!("the last record was not delivered");
                });
            }
            scope.spawn(move || {
                loop {
                    // After the last record, truncates once more.
                    let is_last = is_done.load(Ordering::SeqCst);
                    log.truncate_front(Lsn(last.load(Ordering::SeqCst))).unwrap();
                    if is_last {
                        return;
                    }
                    thread::yield_now();
                }
            });
            for id in 0..2000 {
                last.store(put(log, &payload(id, 5000)).lsn.0, Ordering::SeqCst);
            }
            is_done.store(true, Ordering::SeqCst);
        });
        assert!(log.segments().len() <= 2);
    });
}

#[test]
fn truncate_back_among_writers_removes_its_records_and_no_others() {
    within_a_minute("truncations among writers", || {
        let (disk, log) = on_memory();
        let done = AtomicU64::new(0);
        let acknowledged = Mutex::new(Vec::new());
        let cuts: Mutex<Vec<(Lsn, u32)>> = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let (log, done, acknowledged, cuts) = (&log, &done, &acknowledged, &cuts);
            for writer in 0..4_u64 {
                scope.spawn(move || {
                    let mut random = Random(writer);
                    // Appends until a few truncations have happened, which takes longer on a busy
                    // machine.
                    let is_enough = |n| n >= 150 && cuts.lock().unwrap().len() > 3;
                    for n in (0..).take_while(|n| !is_enough(*n)) {
                        let id = (writer << 32) + n;
                        let at = put(log, &payload(id, length(&mut random)));
                        acknowledged.lock().unwrap().push((at.lsn, id));
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
            scope.spawn(move || {
                let mut reader = log.reader(Lsn::default());
                let mut last = Lsn(0);
                while let Some((at, bytes)) =
                    reader.wait_next(Some(Duration::from_millis(50))).unwrap()
                {
                    assert!(at.lsn > last && id_of(bytes).is_some(), "{}", at.lsn);
                    last = at.lsn;
                }
            });
            scope.spawn(move || {
                let mut behind = 0;
                while done.load(Ordering::SeqCst) < 4 {
                    let newest = acknowledged.lock().unwrap().iter().map(|(lsn, _)| *lsn).max();
                    // A writer may add a record to `acknowledged` after the record was truncated.
                    let Some(lsn) = newest.filter(|lsn| lsn.segment() >= behind) else { continue };
                    log.truncate_back(lsn).unwrap();
                    let numbers = log.segments().into_iter().map(|segment| segment.number);
                    behind = numbers.into_iter().find(|number| *number > lsn.segment()).unwrap();
                    cuts.lock().unwrap().push((lsn, behind));
                }
            });
        });
        let cuts = cuts.into_inner().unwrap();
        let is_gone =
            |lsn: Lsn| cuts.iter().any(|(from, behind)| lsn >= *from && lsn.segment() < *behind);
        let mut expected = acknowledged.into_inner().unwrap();
        expected.retain(|(lsn, _)| !is_gone(*lsn));
        expected.sort_unstable();
        log.close().unwrap();
        let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
        let found: Vec<_> =
            again.records.iter().map(|(at, bytes)| (at.lsn, id_of(bytes).unwrap())).collect();
        println!("{} truncations, {} records left", cuts.len(), found.len());
        assert!(cuts.len() > 3);
        assert_eq!(found, expected);
    });
}
