//! Simulates power cuts and kills at every step of workloads with records that are longer than an
//! append buffer or than the next segment.

use haul_append_log::{Options, SpacePriority};
use haul_disk_sim::{Crashes, MemoryDisk, crash_everywhere, crash_until};
use haul_testing::Random;

use crate::history::History;
use crate::small;

fn options() -> Options {
    Options { first_segment_bytes: Some(80 << 10), spare_segments_max: 1, ..small() }
}

/// Appends records of which each fourth is long, in batches of up to three.
fn append(history: &mut History, random: &mut Random) {
    let bytes = |random: &mut Random| match random.below(8) {
        0 => 60_000 + random.below(200_000),
        1 => 60_000 + random.below(20_000),
        _ => 8 + random.below(6000),
    };
    let count = 1 + random.below(3);
    let lengths: Vec<_> = (0..count).map(|_| usize::try_from(bytes(random)).unwrap()).collect();
    history.put(&lengths, SpacePriority::Ordinary).unwrap();
}

#[test]
fn crash_while_long_records_are_appended_neither_loses_nor_resurrects_records() {
    crash_until(600, &Crashes { draws: 2, ..Crashes::default() }, |crashes| {
        let workload = |disk: &MemoryDisk| {
            let mut random = Random(crashes.seed);
            let mut history = History::begin(disk, options());
            for _ in 0..24 {
                match random.below(10) {
                    0 => history.reopen(),
                    1 => history.truncate_front(2).unwrap(),
                    2 => {
                        let records = history.now.acknowledged.len();
                        history.truncate_back(records.saturating_sub(2)).unwrap();
                    }
                    _ => append(&mut history, &mut random),
                }
            }
            history.close();
        };
        crash_everywhere(crashes, workload, |(), crash| {
            let mut history = History::recover(crash, options());
            history.put(&[100_000], SpacePriority::Ordinary).unwrap();
            history.put(&[100], SpacePriority::Ordinary).unwrap();
        })
    });
}

#[test]
fn crash_while_a_prepared_segment_is_replaced_by_a_longer_one_loses_no_record() {
    let workload = |disk: &MemoryDisk| {
        let mut history = History::begin(disk, options());
        for bytes in [100_000, 500_000, 900_000] {
            // The next segment is prepared when a quarter of the current one is written.
            history.put(&[30_000, 30_000], SpacePriority::Ordinary).unwrap();
            history.put(&[bytes], SpacePriority::Ordinary).unwrap();
        }
        history.close();
    };
    let states = crash_everywhere(&Crashes::default(), workload, |(), crash| {
        let mut history = History::recover(crash, options());
        history.put(&[200_000], SpacePriority::Ordinary).unwrap();
        history.put(&[3000], SpacePriority::Ordinary).unwrap();
    });
    assert!(states > 300, "{states}");
}
