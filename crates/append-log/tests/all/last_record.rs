//! Tests the newest record of a log, and what readers deliver.

use haul_append_log::{Error, Log, Lsn, Position, SpacePriority, segment_name};
use haul_testing::Random;

use crate::concurrent::on_memory;
use crate::payload::payload;
use crate::recovery::{report, start};
use crate::{put, small};

/// Records with their positions.
pub(crate) type Records = Vec<(Position, Vec<u8>)>;

/// Appends `count` records of up to 60,000 bytes, most of them short, and returns all of them.
fn append(log: &Log, seed: u64, count: u64) -> Records {
    let mut random = Random(seed);
    let append = |id| {
        let bytes_max = [100, 100, 5000, 60_000][usize::try_from(random.below(4)).unwrap()];
        let bytes = usize::try_from(random.below(bytes_max)).unwrap();
        if random.below(20) == 0 {
            log.write_watermark().unwrap();
        }
        let payload = payload(id, bytes);
        (put(log, &payload), payload)
    };
    (0..count).map(append).collect()
}

pub(crate) fn read_all(log: &Log) -> Records {
    let mut reader = log.reader(Lsn::default());
    let mut records = Records::new();
    while let Some((at, bytes)) = reader.read_next().unwrap() {
        records.push((at, bytes.to_vec()));
    }
    records
}

#[test]
fn last_record_is_the_newest_over_segments_sessions_and_truncations() {
    for seed in 0..4 {
        let (disk, log) = on_memory();
        let all = append(&log, seed, 300);
        assert!(log.segments().len() > 2, "{seed}");
        assert_eq!(log.last_record().unwrap(), all.last().map(|(at, _)| *at), "{seed}");
        log.close().unwrap();
        let log = start(&disk.medium(), small()).unwrap().log;
        assert_eq!(log.last_record().unwrap(), all.last().map(|(at, _)| *at), "{seed}, again");
        for cut in [200, 100, 1] {
            log.truncate_back(all[cut].0.lsn).unwrap();
            assert_eq!(log.last_record().unwrap(), Some(all[cut - 1].0), "{seed}, cut at {cut}");
        }
        assert!(read_all(&log) == all[..1], "{seed}");
    }
}

#[test]
fn empty_log_has_no_last_record() {
    let (_, log) = on_memory();
    assert_eq!(log.last_record().unwrap(), None);
    log.write_watermark().unwrap();
    assert_eq!(log.last_record().unwrap(), None);
    let unwritten = log.append(&[b"unwritten"], SpacePriority::Ordinary).unwrap();
    assert_eq!(log.last_record().unwrap(), None, "it is not durable");
    let at = unwritten.wait().unwrap();
    assert_eq!(log.last_record().unwrap(), Some(at));
}

#[test]
fn damage_after_the_last_record_is_no_older_last_record() {
    let (disk, log) = on_memory();
    let at: Vec<_> = (0..6).map(|id| put(&log, &payload(id, 3000))).collect();
    log.write_watermark().unwrap();
    let mut medium = disk.medium();
    medium.file(&segment_name(1))[(at[5].lsn.offset() + 40) as usize] ^= 1;
    let log = start(&medium, report()).unwrap().log;
    let refused = log.last_record();
    assert!(matches!(refused, Err(Error::Damaged { offset, .. })
        if offset == u64::from(at[5].lsn.offset())));
}

#[test]
fn reader_reports_damage_once_and_delivers_the_records_after_it() {
    let (disk, log) = on_memory();
    let at: Vec<_> = (0..6).map(|id| put(&log, &payload(id, 3000))).collect();
    log.write_watermark().unwrap();
    for (damaged, within) in [(0, 40), (3, 0), (3, 40), (5, 8)] {
        let mut medium = disk.medium();
        let offset = at[damaged].lsn.offset();
        medium.file(&segment_name(1))[(offset + within) as usize] ^= 1;
        let log = start(&medium, report()).unwrap().log;
        let mut reader = log.reader(Lsn::default());
        for (id, at) in at.iter().enumerate() {
            let next = reader.read_next();
            if id == damaged {
                let Err(Error::Damaged { offset: reported, .. }) = next else {
                    panic!("damage of record {damaged} is not reported");
                };
                assert_eq!(reported, u64::from(offset), "record {damaged}");
            } else {
                assert_eq!(next.unwrap().unwrap(), (*at, &*payload(id as u64, 3000)));
            }
        }
        assert!(reader.read_next().unwrap().is_none());
    }
}

#[test]
fn payload_that_contains_a_copy_of_the_log_is_not_read_as_records() {
    let (disk, log) = on_memory();
    let first = put(&log, &payload(0, 3000));
    let copy = disk.medium().file(&segment_name(1))[..20_000].to_vec();
    let second = put(&log, &copy);
    let third = put(&log, &payload(1, 100));
    let positions = |records: &Records| records.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    assert_eq!(positions(&read_all(&log)), [first, second, third]);
    let opened = start(&disk.medium(), small()).unwrap();
    assert_eq!(positions(&opened.records), [first, second, third]);
}
