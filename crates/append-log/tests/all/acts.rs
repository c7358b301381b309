//! Anything a log can do, in an order that chance decides.

use haul_append_log::{Error, Options, Room};
use haul_disk::Op;
use haul_disk_sim::{Random, Survival};
use rustix::io::Errno;

use crate::history::History;
use crate::small;

/// The payload of a record of whole pages: what follows it on the medium is not overwritten by
/// chance.
pub(crate) const PAGES: usize = 8192 - 32;

/// Short segments with a reserve.
pub(crate) fn options() -> Options {
    Options { reserve_bytes: 16 << 10, ..small() }
}

/// Does something.
pub(crate) fn act(history: &mut History, random: &mut Random) {
    match random.below(16) {
        0..5 => history.put(&[PAGES; 3], Room::Ordinary).unwrap(),
        5..9 => history.put(&[60_000; 9], Room::Ordinary).unwrap(),
        9 => history.put(&[8, 700, 3000, 100], Room::Ordinary).unwrap(),
        10..12 => history.truncate_front(1 + index(random.below(2))).unwrap(),
        12..14 => {
            let there = history.now.acknowledged.len();
            let back = index(1 + random.below(12)).min(there);
            history.truncate_back(there - back).unwrap();
        }
        14 => history.reopen(),
        _ if random.below(2) == 0 => fill_the_disk(history),
        _ => fail_the_medium(history, random),
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

/// No new file can be made until the log is full, and its reserve too.
fn fill_the_disk(history: &mut History) {
    history.disk.fail_always(Op::Create, Errno::NOSPC);
    for (bytes, room) in [(60_000, Room::Ordinary), (3000, Room::Reserve)] {
        while match history.put(&[bytes], room) {
            Ok(()) => true,
            Err(Error::Full { .. }) => false,
            Err(other) => panic!("{other}"),
        } {}
    }
    history.disk.heal();
    history.put(&[1000], Room::Ordinary).unwrap();
}

/// A write or sync fails under appending or under a truncation, and the log is opened again.
fn fail_the_medium(history: &mut History, random: &mut Random) {
    let op = if random.below(3) == 0 { Op::Write } else { Op::Sync };
    let seed = random.number();
    history.disk.after_a_failed_sync(match random.below(3) {
        0 => Survival::Nothing,
        1 => Survival::Half { seed },
        _ => Survival::Everything,
    });
    history.disk.fail_once(op, 1 + random.below(2), Errno::IO);
    let there = history.now.acknowledged.len();
    let failed = match random.below(2) {
        0 => history.put(&[PAGES; 5], Room::Ordinary),
        _ => history.truncate_back(there.saturating_sub(3)),
    };
    if failed.is_ok() {
        drop(history.put(&[20_000], Room::Ordinary));
    }
    // What the thread that prepares met is told to whoever needs the segment, and not final.
    history.disk.heal();
    history.reopen();
}
