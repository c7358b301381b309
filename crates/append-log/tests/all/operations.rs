//! Executes random operations on a log, for tests of crashes and of a model.

use haul_append_log::{Error, Options, SpacePriority};
use haul_disk::Op;
use haul_disk_sim::Survival;
use haul_testing::Random;
use rustix::io::Errno;

use crate::history::History;
use crate::small;

/// The payload length, in bytes, of a record that fills whole pages. Its write overwrites no bytes
/// after it.
pub(crate) const PAGES: usize = 8192 - 32;

/// Returns options with short segments and a reserve.
pub(crate) fn options() -> Options {
    Options { reserve_bytes: 16 << 10, ..small() }
}

/// Executes a random operation.
pub(crate) fn run_random(history: &mut History, random: &mut Random) {
    match random.below(16) {
        0..5 => history.put(&[PAGES; 3], SpacePriority::Ordinary).unwrap(),
        5..9 => history.put(&[60_000; 9], SpacePriority::Ordinary).unwrap(),
        9 => history.put(&[8, 700, 3000, 100], SpacePriority::Ordinary).unwrap(),
        10..12 => history.truncate_front(1 + index(random.below(2))).unwrap(),
        12..14 => {
            let records = history.now.acknowledged.len();
            let back = index(1 + random.below(12)).min(records);
            history.truncate_back(records - back).unwrap();
        }
        14 => history.reopen(),
        _ if random.below(2) == 0 => fill_the_disk(history),
        _ => fail_write_or_sync(history, random),
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

/// Makes file creation fail until the log and its reserve are full.
fn fill_the_disk(history: &mut History) {
    history.disk.fail_always(Op::Create, Errno::NOSPC);
    for (bytes, room) in [(60_000, SpacePriority::Ordinary), (3000, SpacePriority::Reserve)] {
        while match history.put(&[bytes], room) {
            Ok(()) => true,
            Err(Error::Full { .. }) => false,
            Err(other) => panic!("{other}"),
        } {}
    }
    history.disk.heal();
    history.put(&[1000], SpacePriority::Ordinary).unwrap();
}

/// Makes a write or sync fail during appends or a truncation, and opens the log again.
fn fail_write_or_sync(history: &mut History, random: &mut Random) {
    let op = if random.below(3) == 0 { Op::Write } else { Op::Sync };
    let seed = random.number();
    history.disk.after_a_failed_sync(match random.below(3) {
        0 => Survival::Nothing,
        1 => Survival::Half { seed },
        _ => Survival::Everything,
    });
    history.disk.fail_once(op, 1 + random.below(2), Errno::IO);
    let records = history.now.acknowledged.len();
    let failed = match random.below(2) {
        0 => history.put(&[PAGES; 5], SpacePriority::Ordinary),
        _ => history.truncate_back(records.saturating_sub(3)),
    };
    if failed.is_ok() {
        drop(history.put(&[20_000], SpacePriority::Ordinary));
    }
    // A failure in the preparing thread is returned to the next append that needs the segment.
    history.disk.heal();
    history.reopen();
}
