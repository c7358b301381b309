//! Tests reading backwards, and the first and last records of a log.

use haul_append_log::{Error, Log, Lsn, Position, Room, footprint, segment_name};
use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_testing::Random;

use crate::concurrent::on_memory;
use crate::payload::payload;
use crate::recovery::{report, start};
use crate::{put, small};

/// Records with their positions.
pub(crate) type Records = Vec<(Position, Vec<u8>)>;

pub(crate) fn read_back(log: &Log, before: Lsn) -> Records {
    let mut reader = log.reverse_reader(before);
    let mut records = Records::new();
    while let Some((at, bytes)) = reader.read_previous().unwrap() {
        records.push((at, bytes.to_vec()));
    }
    assert!(reader.read_previous().unwrap().is_none(), "a record after the oldest one");
    records.reverse();
    records
}

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

#[test]
fn records_are_delivered_in_reverse_over_segments_and_sessions() {
    for seed in 0..4 {
        let (disk, log) = on_memory();
        let mut all = append(&log, seed, 300);
        assert!(log.segments().len() > 2, "{seed}");
        assert_eq!(read_back(&log, log.synced()), all, "{seed}");
        log.close().unwrap();
        let log = start(&disk.medium(), small()).unwrap().log;
        assert_eq!(read_back(&log, log.synced()), all, "{seed}, opened again");
        all.extend(append(&log, seed + 100, 20));
        assert_eq!(read_back(&log, log.synced()), all, "{seed}, appended to");
        for end in [0, 1, 17, 150, all.len() - 1] {
            assert_eq!(read_back(&log, all[end].0.lsn), all[..end], "{seed}, before {end}");
        }
        assert_eq!(log.first_record().unwrap(), Some(all[0].0));
        assert_eq!(log.last_record().unwrap(), all.last().map(|(at, _)| *at));
    }
}

#[test]
fn removed_records_are_not_delivered() {
    let (_, log) = on_memory();
    let all = append(&log, 7, 300);
    let second = log.segments()[1].number;
    log.truncate_front(Lsn::new(second, 0)).unwrap();
    let kept: Records = all.into_iter().filter(|(at, _)| at.lsn.segment() >= second).collect();
    assert_eq!(read_back(&log, log.synced()), kept);
    let cut = kept.len() / 2;
    log.truncate_back(kept[cut].0.lsn).unwrap();
    assert_eq!(read_back(&log, log.synced()), kept[..cut]);
    assert_eq!(log.first_record().unwrap(), Some(kept[0].0));
    assert_eq!(log.last_record().unwrap(), Some(kept[cut - 1].0));
}

#[test]
fn empty_log_has_no_first_and_no_last_record() {
    let (_, log) = on_memory();
    assert_eq!((log.first_record().unwrap(), log.last_record().unwrap()), (None, None));
    log.write_watermark().unwrap();
    assert_eq!((log.first_record().unwrap(), log.last_record().unwrap()), (None, None));
    let unwritten = log.append(&[b"unwritten"], Room::Ordinary).unwrap();
    assert_eq!(log.last_record().unwrap(), None, "it is not durable");
    let at = unwritten.wait().unwrap();
    assert_eq!((log.first_record().unwrap(), log.last_record().unwrap()), (Some(at), Some(at)));
    assert!(read_back(&log, Lsn::default()).is_empty());
}

#[test]
fn payload_that_contains_a_copy_of_the_log_is_not_read_as_records() {
    let (disk, log) = on_memory();
    let first = put(&log, &payload(0, 3000));
    let copy = disk.medium().file(&segment_name(1))[..20_000].to_vec();
    let second = put(&log, &copy);
    let third = put(&log, &payload(1, 100));
    let read: Vec<_> = read_back(&log, log.synced()).into_iter().map(|(at, _)| at).collect();
    assert_eq!(read, [first, second, third]);
}

#[test]
fn damage_is_reported_once_and_older_records_follow() {
    let (disk, log) = on_memory();
    let at: Vec<_> = (0..6).map(|id| put(&log, &payload(id, 3000))).collect();
    log.write_watermark().unwrap();
    for (damaged, within) in [(0, 40), (3, 0), (3, 40), (5, 8)] {
        let mut medium = disk.medium();
        let offset = at[damaged].lsn.offset();
        medium.file(&segment_name(1))[(offset + within) as usize] ^= 1;
        let log = start(&medium, report()).unwrap().log;
        let mut reader = log.reverse_reader(log.synced());
        for id in (damaged + 1..6).rev() {
            assert_eq!(reader.read_previous().unwrap().unwrap().0, at[id]);
        }
        let Err(Error::Damaged { offset: reported, .. }) = reader.read_previous() else {
            panic!("damage of record {damaged} is not reported");
        };
        assert_eq!(reported, u64::from(offset), "record {damaged}");
        for id in (0..damaged).rev() {
            let found = reader.read_previous().unwrap().unwrap();
            assert_eq!(found, (at[id], &*payload(id as u64, 3000)));
        }
        assert!(reader.read_previous().unwrap().is_none());
    }
}

#[test]
fn missing_seal_of_an_older_segment_is_reported() {
    let (disk, log) = on_memory();
    let all = append(&log, 5, 300);
    let second = log.segments()[1].number;
    let of_first = |record: &&(Position, Vec<u8>)| record.0.lsn.segment() < second;
    let last = all.iter().take_while(of_first).last().unwrap().0;
    let seal = last.lsn.offset() + footprint(last);
    log.close().unwrap();
    let mut medium = disk.medium();
    medium.file(&segment_name(1))[seal as usize] ^= 1;
    let log = start(&medium, report()).unwrap().log;
    let mut reader = log.reverse_reader(Lsn::new(second, 4096));
    let Err(Error::Damaged { offset, .. }) = reader.read_previous() else {
        panic!("the missing seal is not reported");
    };
    assert_eq!(offset, u64::from(seal));
    assert_eq!(reader.read_previous().unwrap().unwrap().0, last);
}

#[test]
fn segment_without_valid_records_is_reported() {
    let (disk, log) = on_memory();
    let all = append(&log, 6, 300);
    let second = log.segments()[1].number;
    log.close().unwrap();
    let mut medium = disk.medium();
    {
        let mut file = medium.file(&segment_name(second));
        let limit = file.len() - 4096;
        file[4096..limit].fill(0xa5);
    }
    let log = start(&medium, report()).unwrap().log;
    let mut reader = log.reverse_reader(Lsn::new(second + 1, 4096));
    let Err(Error::Damaged { file, .. }) = reader.read_previous() else {
        panic!("the lost records are not reported");
    };
    assert!(file.ends_with(segment_name(second)), "{file:?}");
    let is_older = |record: &&(Position, Vec<u8>)| record.0.lsn.segment() < second;
    let last = all.iter().take_while(is_older).last().unwrap().0;
    assert_eq!(reader.read_previous().unwrap().unwrap().0, last);
}

#[test]
fn reading_backwards_reads_each_byte_about_once() {
    let (disk, log) = on_memory();
    let mut last = None;
    for id in 0..900 {
        last = Some(log.append(&[&payload(id, 1000)], Room::Ordinary).unwrap());
    }
    let at = last.unwrap().wait().unwrap();
    let before = disk.calls(Op::Read);
    assert_eq!(read_back(&log, log.synced()).len(), 900);
    let pieces = u64::from(at.lsn.offset() + footprint(at)).div_ceil(256 << 10);
    let reads = disk.calls(Op::Read) - before;
    assert!(reads <= 3 * pieces, "{reads} reads of {pieces} pieces");
}

#[test]
fn record_of_the_greatest_length_is_appended_and_a_longer_one_refused() {
    let (disk, log): (MemoryDisk, Log) = on_memory();
    let bytes_max = log.payload_bytes_max() as usize;
    let longest = payload(0, bytes_max);
    let at = put(&log, &longest);
    let refused = log.append(&[&longest, b"x"], Room::Ordinary).map(drop).unwrap_err();
    assert!(
        matches!(refused, Error::TooLong { bytes, bytes_max: limit }
        if bytes == limit + 1 && limit == bytes_max as u64),
        "{refused:?}"
    );
    assert_eq!(read_back(&log, log.synced()), [(at, longest)]);
    assert_eq!(start(&disk.medium(), small()).unwrap().records.len(), 1);
}
