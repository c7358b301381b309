//! Tests that a read-only log changes no file and delivers correct records, even while another
//! process appends.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use haul_append_log::{
    Error, Log, Lsn, OnDamage, Options, Position, ReadOnlyLog, ReadOnlyReport, Replay, SegmentInfo,
    SpacePriority, segment_name,
};
use haul_disk::{Op, OsDisk};
use haul_disk_sim::{Crashes, Medium, MemoryDisk, Survival, crash_everywhere};
use haul_testing::child_test;

use crate::payload::{id_of, ids, payload};
use crate::recovery::{report, start, three_segments, without_end_page};
use crate::{disk_dir, open, open_on, put, put_long, small};

type Records = Vec<(Position, Vec<u8>)>;

fn read(
    disk: Arc<dyn haul_disk::Disk>,
    options: Options,
) -> haul_append_log::Result<(ReadOnlyLog, Records, ReadOnlyReport)> {
    let mut records = Vec::new();
    let mut each = |at: Position, payload: &[u8]| records.push((at, payload.to_vec()));
    let (log, result) = Log::open_read_only(disk, options, &mut each)?;
    assert_eq!(result.records, records.len() as u64);
    Ok((log, records, result))
}

/// Asserts that each method of reading returns the same records as opening delivered.
fn check_reads(log: &ReadOnlyLog, records: &Records, damage: usize) {
    for (at, payload) in records.iter().step_by(7) {
        assert_eq!(log.read(*at).unwrap().payload(), payload);
    }
    let (mut reader, mut found, mut damaged) = (log.reader(Lsn::default()), Vec::new(), 0);
    loop {
        match reader.read_next() {
            Ok(Some((at, payload))) => found.push((at, payload.to_vec())),
            Ok(None) => break,
            Err(Error::Damaged { .. }) => damaged += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(found == *records);
    assert_eq!(damaged, damage);
    let (mut scanned, mut scan_damage) = (Vec::new(), 0);
    for segment in log.segments() {
        let mut each = |at: Position, payload: &[u8]| scanned.push((at, payload.to_vec()));
        scan_damage += log.scan(segment.number, &mut each).unwrap().len();
    }
    assert!(scanned == *records);
    assert_eq!(scan_damage, damage);
}

/// Returns the counts of calls that change the disk.
fn changes(disk: &MemoryDisk) -> Vec<(Op, u64)> {
    let kinds = [
        Op::Write,
        Op::Sync,
        Op::SyncDir,
        Op::Create,
        Op::Allocate,
        Op::Resize,
        Op::Rename,
        Op::Remove,
    ];
    kinds.into_iter().map(|op| (op, disk.calls(op))).filter(|(_, calls)| *calls > 0).collect()
}

fn check_unchanged(medium: &Medium, options: Options) -> (Records, ReadOnlyReport) {
    let disk = MemoryDisk::on(medium);
    let (log, records, result) = read(Arc::new(disk.clone()), options).unwrap();
    check_reads(&log, &records, result.damage.iter().filter(|d| d.offset > 0).count());
    assert_eq!(changes(&disk), []);
    assert!(disk.steps().is_empty());
    (records, result)
}

#[test]
fn read_only_opening_changes_nothing_and_finds_the_same_records() {
    let (disk, positions) = three_segments();
    let mut media = vec![disk.medium(), MemoryDisk::default().medium()];
    // Adds a torn tail (the remains of an interrupted write), and damage to a header page and a
    // record.
    let mut torn = disk.medium();
    let last = positions.last().unwrap().lsn;
    without_end_page(&mut torn.file(&segment_name(3)))[last.offset() as usize + 2000..].fill(0);
    media.push(torn);
    let mut damaged = disk.medium();
    damaged.file(&segment_name(2))[..4096].fill(0);
    damaged.file(&segment_name(2))[500_000] ^= 1;
    media.push(damaged);
    for (number, medium) in media.iter().enumerate() {
        let (records, result) = check_unchanged(medium, report());
        let opened = start(medium, report()).unwrap();
        assert!(records == opened.records, "{number}");
        let found = (result.closed, result.torn_bytes, result.damage);
        let expected = opened.recovered;
        if !records.is_empty() {
            let expected = (expected.closed, expected.torn_bytes, expected.damage);
            assert_eq!(found, expected, "{number}");
        }
    }
    let refused = read(Arc::new(MemoryDisk::on(&media[3])), small()).map(drop);
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
}

#[test]
fn crashed_log_reads_the_same_as_after_recovery() {
    let workload = |disk: &MemoryDisk| {
        let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
        put_long(&log, 0..40);
        log.truncate_front(Lsn::new(2, 0)).unwrap();
        let back = put_long(&log, 40..45).lsn;
        log.truncate_back(back).unwrap();
        put_long(&log, 45..48);
    };
    let crashes = Crashes { draws: 1, again_one_in: u64::MAX, ..Crashes::default() };
    crash_everywhere(&crashes, workload, |(), crash| {
        let disk = MemoryDisk::on(&crash.disk.medium());
        let (log, records, result) = read(Arc::new(disk.clone()), small()).unwrap();
        assert_eq!(changes(&disk), []);
        let opened = open_on(Arc::new(crash.disk.clone()), small()).unwrap();
        assert!(ids(&records) == ids(&opened.records));
        assert!(!result.segment_removed && result.end == log.end());
        let copy = MemoryDisk::default();
        log.copy_to(&copy).unwrap();
        // Only what is durable survives the power cut.
        let copied = start(&copy.medium().cut(Survival::Nothing), small()).unwrap();
        assert!(copied.records == records && copied.recovered.torn_bytes == 0);
    });
}

#[test]
fn records_before_a_known_end_are_not_delivered_again() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let last = put_long(&log, 0..20);
    let mut follower = Follower { last: last.lsn, records: Vec::new() };
    for round in 0..12 {
        let ids = 20 + 5 * round..25 + 5 * round;
        put_long(&log, ids.clone());
        let (_, result) =
            Log::open_read_only(Arc::new(disk.clone()), small(), &mut follower).unwrap();
        assert!(result.records <= 6 + 1, "{} records are read", result.records);
        assert!(follower.records.drain(..).eq(ids));
    }
    assert!(log.segments().len() > 2);
}

/// Receives the records after `last`.
struct Follower {
    last: Lsn,
    records: Vec<u64>,
}

impl Replay for Follower {
    fn is_known(&mut self, segment: SegmentInfo) -> bool {
        segment.number < self.last.segment()
    }

    fn known_end(&mut self, segment: SegmentInfo) -> u32 {
        if segment.number == self.last.segment() { self.last.offset() } else { 0 }
    }

    fn record(&mut self, at: Position, payload: &[u8]) {
        if at.lsn > self.last {
            self.last = at.lsn;
            self.records.push(id_of(payload).unwrap());
        }
    }
}

#[test]
fn reads_of_a_recycled_segment_are_refused() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let first = put_long(&log, 0..1);
    put_long(&log, 1..50);
    let (reader, records, _) = read(Arc::new(disk.clone()), small()).unwrap();
    assert_eq!(reader.read(first).unwrap().payload(), records[0].1);
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    put_long(&log, 50..120);
    assert_eq!(log.spare_segments(), 0, "the file is not recycled");
    assert!(matches!(reader.read(first), Err(Error::SegmentRemoved { .. })));
    let scanned_after = reader.scan(1, &mut |_, _| {});
    assert!(matches!(scanned_after, Err(Error::SegmentRemoved { .. })), "{scanned_after:?}");
    let next = reader.reader(first.lsn).read_next().map(drop);
    assert!(matches!(next, Err(Error::SegmentRemoved { .. })), "{next:?}");
    log.close().unwrap();
}

#[test]
fn delivery_stops_at_a_recycled_segment() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    put_long(&log, 0..80);
    assert_eq!(log.segments().len(), 3);
    let mut records = Records::new();
    let mut each = |at: Position, payload: &[u8]| {
        if records.is_empty() {
            log.truncate_front(Lsn::new(3, 0)).unwrap();
            put_long(&log, 80..260);
            assert_eq!(log.spare_segments(), 0, "a file is not recycled");
        }
        records.push((at, payload.to_vec()));
    };
    let (reader, result) = Log::open_read_only(Arc::new(disk.clone()), small(), &mut each).unwrap();
    // The reader had the first segment in memory when its file was recycled, so it delivered that
    // segment completely.
    assert!(result.segment_removed && result.damage.is_empty(), "{result:?}");
    assert_eq!(result.end, reader.end());
    assert_eq!(result.end, Lsn::new(2, 4096));
    check_sequence(&records);
    assert_eq!(id_of(&records[0].1), Some(0));
    log.close().unwrap();
    let (_, records, result) = read(Arc::new(disk), small()).unwrap();
    check_sequence(&records);
    assert!(result.closed && !result.segment_removed);
}

const DIR: &str = "HAUL_TEST_WRITES_FOR_READERS";

/// Runs in the process that appends and recycles segments until its standard input ends. Returns at
/// once if the test runner calls it as a test.
#[test]
fn child_that_writes_beside_readers() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let log = open(&dir).log;
    std::thread::spawn(|| {
        drop(std::io::stdin().read(&mut [0]));
        std::process::exit(0);
    });
    println!("writing");
    for id in 0.. {
        // Each batch has several records, so that a reader may see a part of it.
        let append = |part: u64| {
            let bytes = usize::try_from(8 + (id * 7 + part) * 997 % 20_000).unwrap();
            log.append(&[&payload(id * 4 + part, bytes)], SpacePriority::Ordinary).unwrap()
        };
        let tickets: Vec<_> = (0..4).map(append).collect();
        tickets.into_iter().for_each(|ticket| assert!(ticket.wait().is_ok()));
        if log.segments().len() > 3 {
            log.truncate_front(Lsn::new(log.synced().segment() - 1, 0)).unwrap();
        }
    }
}

/// Asserts that the ids are consecutive.
fn check_sequence(records: &Records) {
    let numbers: Vec<u64> = records
        .iter()
        .map(|(at, payload)| id_of(payload).unwrap_or_else(|| panic!("{}", at.lsn)))
        .collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "a gap in {numbers:?}");
}

fn read_dir(dir: &Path) -> haul_append_log::Result<(ReadOnlyLog, Records, ReadOnlyReport)> {
    let options = Options { on_damage: OnDamage::Refuse, ..small() };
    read(Arc::new(OsDisk::open(dir).unwrap()), options)
}

#[test]
fn read_only_logs_see_records_of_a_writer_in_another_process() {
    let dir = disk_dir();
    let mut command = child_test("read_only::child_that_writes_beside_readers");
    command.env(DIR, dir.path()).stdin(Stdio::piped());
    let mut writer = command.spawn().unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("writing")).unwrap().unwrap();

    let (mut segment_removed, mut rounds, mut newest) = (0, 0, 0);
    // Reads until the writer has recycled many segments meanwhile.
    while newest < 40 {
        match read_dir(dir.path()) {
            Ok((log, records, result)) => {
                check_sequence(&records);
                segment_removed += u32::from(result.segment_removed);
                newest = newest.max(result.end.segment());
                assert_eq!(result.end, log.end());
                if let Some((at, payload)) = records.first() {
                    match log.read(*at) {
                        Ok(record) => assert_eq!(record.payload(), payload),
                        Err(error) => {
                            assert!(matches!(error, Error::SegmentRemoved { .. }), "{error}")
                        }
                    }
                }
            }
            Err(Error::SegmentRemoved { .. }) => segment_removed += 1,
            Err(error) => panic!("round {rounds}: {error}"),
        }
        rounds += 1;
    }
    println!("{rounds} readings up to segment {newest}, {segment_removed} met a removed segment");
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());

    let (_, seen, result) = read_dir(dir.path()).unwrap();
    check_sequence(&seen);
    let opened = open(dir.path());
    assert!(opened.records == seen, "the log of the writer is intact");
    assert!(!result.segment_removed && opened.recovered.damage.is_empty());
    put(&opened.log, &payload(1 << 40, 100));
}

/// Knows the records of the first segment.
struct FirstIsKnown;

impl Replay for FirstIsKnown {
    fn is_known(&mut self, segment: SegmentInfo) -> bool {
        segment.number == 1
    }

    fn record(&mut self, _: Position, _: &[u8]) {}
}

#[test]
fn known_segment_is_read_up_to_its_seal() {
    let (disk, positions) = three_segments();
    let disk = Arc::new(disk);
    let (log, _) = Log::open_read_only(disk, small(), &mut FirstIsKnown).unwrap();
    let mut reader = log.reader(Lsn::default());
    let mut found = Vec::new();
    while let Some((at, _)) = reader.read_next().unwrap() {
        found.push(at);
    }
    assert!(found == positions, "{} of {} records", found.len(), positions.len());
}
