//! Simulates power cuts and kills at every step of workloads with recycled segments, truncations, a
//! full disk and failed writes, and checks the recovered records.

use std::sync::Arc;

use haul_append_log::{Lsn, Options, SpacePriority};
use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere, crash_until};
use haul_testing::Random;

use crate::history::History;
use crate::operations::{PAGES, options, run_random};
use crate::payload::{id_of, payload};
use crate::recycled::crc32c_of;
use crate::{open_on, put, small};

/// Recovers a log, checks its records, and appends two records that must survive the next crash.
fn recover(crash: &Crash, options: Options) -> History {
    let mut history = History::recover(crash, options);
    history.put(&[PAGES], SpacePriority::Ordinary).unwrap();
    history.put(&[PAGES], SpacePriority::Ordinary).unwrap();
    history
}

#[test]
fn crash_during_random_operations_neither_loses_nor_resurrects_records() {
    crash_until(1000, &Crashes { draws: 1, ..Crashes::default() }, |crashes| {
        let workload = |disk: &MemoryDisk| {
            let (mut random, mut history) = (Random(crashes.seed), History::begin(disk, options()));
            (0..48).for_each(|_| run_random(&mut history, &mut random));
            history.close();
        };
        crash_everywhere(crashes, workload, |(), crash| drop(recover(crash, options())))
    });
}

#[test]
fn crash_while_segments_and_reserve_grow_neither_loses_nor_resurrects_records() {
    let options = || Options {
        first_segment_bytes: Some(64 << 10),
        segment_bytes: 1 << 20,
        compaction_segments: 2,
        ..options()
    };
    crash_until(500, &Crashes { draws: 1, ..Crashes::default() }, |crashes| {
        let workload = |disk: &MemoryDisk| {
            let (mut random, mut history) = (Random(crashes.seed), History::begin(disk, options()));
            (0..24).for_each(|_| run_random(&mut history, &mut random));
            history.close();
        };
        crash_everywhere(crashes, workload, |(), crash| drop(recover(crash, options())))
    });
}

#[test]
fn short_records_survive_many_crash_states() {
    let crashes = Crashes { all_up_to: 256, draws: 40, again_one_in: 32, ..Crashes::default() };
    crash_until(6500, &crashes, |crashes| {
        let workload = |disk: &MemoryDisk| few_short_records(disk, &mut Random(crashes.seed));
        crash_everywhere(crashes, workload, |(), crash| {
            let mut history = History::recover(crash, small());
            history.put(&[100], SpacePriority::Ordinary).unwrap();
        })
    });
}

fn few_short_records(disk: &MemoryDisk, random: &mut Random) {
    let mut history = History::begin(disk, small());
    for _ in 0..24 {
        match random.below(8) {
            0 => history.reopen(),
            1 => {
                let records = history.now.acknowledged.len();
                history.truncate_back(records.saturating_sub(2)).unwrap();
            }
            _ => {
                let records = 1 + random.below(3);
                let bytes = |_| usize::try_from(8 + random.below(2000)).unwrap();
                let lengths: Vec<usize> = (0..records).map(bytes).collect();
                history.put(&lengths, SpacePriority::Ordinary).unwrap();
            }
        }
    }
    history.close();
}

#[test]
fn stale_bytes_at_any_offset_are_never_delivered() {
    // The record lengths range from one word to several pages, so that records end at many offsets.
    let lengths = [8, 40, 500, 4056, 5000, 8160, 13_000, 60_000];
    let crashes = Crashes { draws: 2, again_one_in: 32, ..Crashes::default() };
    let mut random = Random(crashes.seed);
    let workload = |disk: &MemoryDisk| {
        let mut history = History::begin(disk, small());
        while history.log().segments().len() < 2 {
            lengths
                .iter()
                .for_each(|bytes| history.put(&[*bytes], SpacePriority::Ordinary).unwrap());
        }
        history.truncate_front(1).unwrap();
        assert_eq!(history.log().spare_segments(), 1);
        while history.log().synced().segment() < 3 {
            history.put(&[30_000], SpacePriority::Ordinary).unwrap();
        }
        assert_eq!(history.log().spare_segments(), 0);
        // Each new record ends at another offset, so other stale bytes of the recycled file follow
        // the end of the log.
        for _ in 0..120 {
            let bytes = lengths[usize::try_from(random.below(7)).unwrap()];
            history.put(&[bytes], SpacePriority::Ordinary).unwrap();
        }
    };
    crash_everywhere(&crashes, workload, |(), crash| drop(recover(crash, small())));
}

#[test]
fn first_batch_without_its_first_page_is_never_delivered() {
    let crashes = Crashes { draws: 12, again_one_in: u64::MAX, ..Crashes::default() };
    let workload = |disk: &MemoryDisk| {
        let mut history = History::begin(disk, small());
        for segment in 1..4 {
            while history.log().synced().segment() <= segment
                && history.log().synced().offset() < (1 << 20) - 60_000
            {
                history.put(&[30_000], SpacePriority::Ordinary).unwrap();
            }
            // The first of these records does not fit into the segment, so all of them are written
            // to the next segment in one batch.
            history.put(&[PAGES; 6], SpacePriority::Ordinary).unwrap();
        }
    };
    crash_everywhere(&crashes, workload, |(), crash| {
        let mut history = History::recover(crash, small());
        // If the crash lost the batch, the next records get the positions of the lost records.
        for _ in 0..3 {
            history.put(&[PAGES], SpacePriority::Ordinary).unwrap();
            history.reopen();
        }
    });
}

/// Returns a payload of [`FORGED_BYTES`] bytes to be written at `offset` of a file. Every 64 bytes
/// it contains a forged record of segment `number` with the correct LSN, but without the nonce.
fn forged(number: u32, offset: u32) -> Vec<u8> {
    let mut payload = vec![0; FORGED_BYTES];
    let first = offset.next_multiple_of(64);
    let places = (first..offset + u32::try_from(FORGED_BYTES).unwrap() - 64).step_by(64);
    for place in places {
        let lsn = Lsn::new(number, place).0.to_le_bytes();
        let mut record = [7; 64];
        record[4..8].copy_from_slice(&32_u32.to_le_bytes());
        record[8..16].copy_from_slice(&lsn);
        record[16..24].copy_from_slice(&lsn);
        record[24..28].copy_from_slice(&[1, 0, 0, 0]);
        let sum = crc32c_of(&record[32..], &[]);
        record[28..32].copy_from_slice(&sum.to_le_bytes());
        let sum = crc32c_of(&record[4..32], &[]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        let at = (place - offset) as usize;
        payload[at..at + 64].copy_from_slice(&record);
    }
    payload
}

const FORGED_BYTES: usize = 60_000;

#[test]
fn forged_records_in_a_recycled_file_are_never_delivered() {
    let workload = |disk: &MemoryDisk| {
        let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
        while log.segments().len() < 2 {
            // The payload begins after the record header at the end of the log.
            put(&log, &forged(3, log.synced().offset() + 32));
        }
        log.truncate_front(Lsn::new(2, 0)).unwrap();
        let mut id = 0;
        while put(&log, &payload(id, PAGES)).lsn < Lsn::new(3, 1 << 16) {
            id += 1;
        }
        assert_eq!(log.spare_segments(), 0, "the file is not recycled");
    };
    let crashes = Crashes { draws: 1, again_one_in: u64::MAX, ..Crashes::default() };
    crash_everywhere(&crashes, workload, |(), crash| {
        let opened = open_on(Arc::new(crash.disk.clone()), small()).unwrap();
        let is_appended = |bytes: &[u8]| id_of(bytes).is_some() || bytes.len() == FORGED_BYTES;
        assert!(opened.records.iter().all(|(_, bytes)| is_appended(bytes)), "a forged record");
    });
}
