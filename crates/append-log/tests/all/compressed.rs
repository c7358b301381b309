//! Tests logs with compressed records.

use std::sync::Arc;

use haul_append_log::{
    BatchRecord, Compression, Error, Log, Lsn, Options, Position, RecordRequest, Replay,
    segment_name,
};
use haul_disk_sim::{Crash, Crashes, Medium, MemoryDisk, Survival, crash_everywhere};

use crate::payload::{id_of, ids, payload};
use crate::recovery::{report, start};
use crate::recycled::crc32c_of;
use crate::{open_on, put, put_long, small};

type Records = Vec<(Position, Vec<u8>)>;

fn lz4() -> Options {
    Options { compression: Compression::Lz4, ..small() }
}

/// Appends compressible records, and some that are not, over several segments.
fn written() -> (MemoryDisk, Log, Records) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), lz4()).unwrap().log;
    let record = |id: u64| match id % 4 {
        0 => payload(id, 8),
        1 => (0..4000_u64).flat_map(|n| crc32c_of(&n.to_le_bytes(), &[]).to_le_bytes()).collect(),
        2 => vec![7; 50_000],
        _ => payload(id, 60_000),
    };
    let put = |id| {
        let bytes = record(id);
        (put(&log, &bytes), bytes)
    };
    let records = (0..700).map(put).collect();
    assert!(log.segments().len() >= 3, "{:?}", log.segments());
    (disk, log, records)
}

fn end_of(at: Position) -> u64 {
    u64::from(at.lsn.offset()) + 32 + u64::from(at.payload_bytes).next_multiple_of(8)
}

#[test]
fn every_function_that_reads_returns_the_appended_payload() {
    let (disk, log, records) = written();
    for (at, payload) in records.iter().step_by(3) {
        let read = log.read(*at).unwrap();
        assert_eq!((read.position(), read.payload()), (*at, &payload[..]));
        for hint in [0, 100, 1 << 20] {
            let read = log.read_hinted(at.lsn, hint).unwrap();
            assert_eq!((read.position(), read.payload()), (*at, &payload[..]));
        }
        let wrong = Position { payload_bytes: at.payload_bytes + 1, ..*at };
        assert!(log.read(wrong).is_err());
    }
    let request = |(tag, (at, _)): (u64, &(Position, Vec<u8>))| RecordRequest {
        lsn: at.lsn,
        payload_bytes: at.payload_bytes,
        tag,
    };
    for (tag, found) in log.read_batch((0..).zip(&records).map(request).collect()) {
        let BatchRecord::Whole(found) = found.unwrap() else { panic!("a part of a record") };
        let (at, payload) = &records[usize::try_from(tag).unwrap()];
        assert_eq!((found.position(), found.payload()), (*at, &payload[..]));
    }
    let mut reader = log.reader(Lsn::default());
    let mut found = Records::new();
    while let Some((at, payload)) = reader.read_next().unwrap() {
        found.push((at, payload.to_vec()));
    }
    assert!(found == records, "reader");
    let mut reverse = log.reverse_reader(log.synced());
    found.clear();
    while let Some((at, payload)) = reverse.read_previous().unwrap() {
        found.insert(0, (at, payload.to_vec()));
    }
    assert!(found == records, "reverse reader");
    let opened = start(&disk.medium(), small()).unwrap();
    assert!(opened.records == records, "recovery");
    let read_only = Arc::new(MemoryDisk::on(&disk.medium()));
    let mut stored = Stored::default();
    let (copy, result) = Log::open_read_only(read_only, small(), &mut stored).unwrap();
    let mut reader = copy.reader(Lsn::default());
    for (at, payload) in &records {
        assert_eq!(reader.read_next().unwrap(), Some((*at, &payload[..])));
    }
    assert_eq!(result.compressed_records, 350, "half of the records are compressible");
    assert_eq!((stored.records, stored.compressed), (700, 350));
}

/// Counts the records, and those stored with fewer bytes than they have.
#[derive(Default)]
struct Stored {
    records: u64,
    compressed: u64,
    bytes: Option<u32>,
}

impl Replay for Stored {
    fn stored_bytes(&mut self, bytes: u32) {
        self.bytes = Some(bytes);
    }

    fn record(&mut self, at: Position, _: &[u8]) {
        self.records += 1;
        if let Some(bytes) = self.bytes.take() {
            assert!(bytes < at.payload_bytes);
            self.compressed += 1;
        }
    }
}

#[test]
fn compressed_records_take_less_space_and_others_are_stored_as_they_are() {
    let (_, log, records) = written();
    for pair in records.windows(2).filter(|pair| pair[0].0.lsn.segment() == pair[1].0.lsn.segment())
    {
        let ((at, payload), next) = (&pair[0], pair[1].0.lsn.offset());
        match payload.len() {
            8 | 16_000 => assert_eq!(end_of(*at), u64::from(next)),
            _ => assert!(u64::from(next) < end_of(*at) - 40_000, "{at:?}"),
        }
    }
    let (at, _) = records[2];
    let invalid = |error: Error| assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    invalid(log.read_front(at, &mut [0; 8]).unwrap_err());
    invalid(log.read_front_hinted(at.lsn, &mut [0; 64]).map(drop).unwrap_err());
    invalid(log.pin(at).unwrap().read_payload_at(0, &mut [0; 8]).unwrap_err());
    let request = RecordRequest { lsn: at.lsn, payload_bytes: 8, tag: 0 };
    invalid(log.read_batch(vec![request]).next().unwrap().1.map(drop).unwrap_err());
    log.read_front(records[1].0, &mut [0; 8]).unwrap();
}

#[test]
fn option_decides_the_format_version_of_new_segments_only() {
    let version = |disk: &MemoryDisk, number| disk.medium().file(&segment_name(number))[8];
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let plain = put(&log, &payload(0, 30_000));
    log.close().unwrap();
    assert_eq!(version(&disk, 1), 3, "a program without compression must read it");
    let log = open_on(Arc::new(disk.clone()), lz4()).unwrap().log;
    let in_old = put(&log, &payload(1, 30_000));
    let next = put(&log, &payload(2, 30_000));
    assert_eq!(end_of(in_old), u64::from(next.lsn.offset()), "compressed in version 3");
    put_long(&log, 3..80);
    assert_eq!(log.segments().len(), 2);
    assert_eq!((version(&disk, 1), version(&disk, 2)), (3, 4));
    log.close().unwrap();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    put_long(&log, 80..100);
    assert_eq!(log.read(plain).unwrap().payload(), payload(0, 30_000));
    let opened = start(&disk.medium(), lz4()).unwrap();
    assert!(ids(&opened.records).keys().copied().eq(0..100));
}

#[test]
fn every_damaged_byte_of_a_compressed_record_is_reported() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), lz4()).unwrap().log;
    let positions: Vec<Position> = (0..3).map(|id| put(&log, &payload(id, 4000))).collect();
    log.write_watermark().unwrap();
    let (from, to) = (positions[1].lsn.offset(), positions[2].lsn.offset());
    assert!(to - from < 400, "{}", to - from);
    for at in from..to {
        let mut medium = disk.medium();
        medium.file(&segment_name(1))[at as usize] ^= 1;
        check_damaged(&medium, positions[1]);
    }
}

/// Asserts that the record at this position is damaged, and that all others are delivered.
fn check_damaged(medium: &Medium, at: Position) {
    let is_padding = start(medium, small()).is_ok_and(|opened| opened.records.len() == 3);
    let opened = start(medium, report()).unwrap();
    assert!(opened.records.iter().all(|(_, payload)| id_of(payload).is_some()), "{at:?}");
    if !is_padding {
        assert_eq!((opened.records.len(), opened.recovered.damage.len()), (2, 1), "{at:?}");
        assert!(opened.log.read(at).is_err());
        assert_eq!(opened.recovered.damage[0].offset, u64::from(at.lsn.offset()));
    }
}

/// Declares another original length in a compressed record, with correct checksums.
#[test]
fn wrong_original_length_with_correct_checksums_is_damage() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), lz4()).unwrap().log;
    let positions: Vec<Position> = (0..3).map(|id| put(&log, &payload(id, 4000))).collect();
    log.write_watermark().unwrap();
    for length in [0_u32, 3999, 4001, 1 << 20, u32::MAX] {
        let mut medium = disk.medium();
        let mut file = medium.file(&segment_name(1));
        let nonce: [u8; 8] = file[24..32].try_into().unwrap();
        let record = &mut file[positions[1].lsn.offset() as usize..];
        let stored = u32::from_le_bytes(record[4..8].try_into().unwrap()) as usize;
        record[32..36].copy_from_slice(&length.to_le_bytes());
        let checksum = crc32c_of(&record[32..32 + stored], &[]);
        record[28..32].copy_from_slice(&checksum.to_le_bytes());
        let checksum = crc32c_of(&nonce, &record[4..32]);
        record[..4].copy_from_slice(&checksum.to_le_bytes());
        drop(file);
        check_damaged(&medium, positions[1]);
    }
}

fn workload(disk: &MemoryDisk) {
    let log = open_on(Arc::new(disk.clone()), lz4()).unwrap().log;
    for id in 0..60 {
        // Long records of one byte value are compressed, those of noise are not.
        put(&log, &if id % 3 == 0 { payload(id, 40_000) } else { noise(id, 30_000) });
        disk.note(id);
    }
    assert_eq!(log.segments().len(), 2);
    log.close().unwrap();
}

/// Returns a payload that begins with its id and cannot be compressed.
fn noise(id: u64, bytes: usize) -> Vec<u8> {
    let mut random = haul_testing::Random(id);
    let mut noise = id.to_le_bytes().to_vec();
    noise.extend((0..bytes / 8).flat_map(|_| random.number().to_le_bytes()));
    noise
}

fn recover(crash: &Crash) {
    let opened = open_on(Arc::new(crash.disk.clone()), lz4()).unwrap();
    let count = opened.records.len() as u64;
    for (id, (_, found)) in (0..).zip(&opened.records) {
        let expected = if id % 3 == 0 { payload(id, 40_000) } else { noise(id, 30_000) };
        assert!(*found == expected, "record {id}");
    }
    let acknowledged = crash.notes().last().map_or(0, |id: &u64| id + 1);
    assert!(count >= acknowledged, "{count} of {acknowledged} acknowledged records");
    for id in count..count + 2 {
        put(&opened.log, &if id % 3 == 0 { payload(id, 40_000) } else { noise(id, 30_000) });
        crash.disk.note(id);
    }
}

#[test]
fn compressed_records_survive_crash_at_any_step() {
    let recover = |(): &(), crash: &Crash| recover(crash);
    let states = crash_everywhere(&Crashes::default(), workload, recover);
    assert!(states > 500, "{states}");
}

#[test]
fn compressed_log_survives_a_power_cut_without_a_close_record() {
    let (disk, _log, records) = written();
    let opened = start(&disk.medium().cut(Survival::Nothing), lz4()).unwrap();
    assert!(opened.records == records);
}
