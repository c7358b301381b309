//! Crashes at every step while a pool begins, grows and shrinks.

use std::cell::Cell;

use haul_disk_sim::{Crash, Crashes, Device, MemoryDisk, crash_everywhere, print_count};
use haul_store_pool::Pool;
use haul_testing::depth;

use crate::{BUCKET, check, fill, key, open, wait_for_moves};

const OBJECTS: u64 = 24;

/// The number of crash states for each unit of depth.
const STATES: u64 = 300;

/// The objects are stored.
struct Filled;

/// What happens to the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// A store of its own becomes a pool of three.
    Begin,
    /// A member joins a pool of two.
    Join,
    /// A member leaves a pool of three.
    Leave,
}

impl Event {
    fn before(self) -> std::ops::Range<usize> {
        match self {
            Self::Begin => 0..1,
            Self::Join => 0..2,
            Self::Leave => 0..3,
        }
    }

    fn execute(self, disk: &MemoryDisk) -> Pool {
        let mut pool = open(disk, 0..3);
        if self == Self::Leave {
            // After a crash, it may have left already.
            let first = pool.members()[0].dir().to_owned();
            if first.ends_with("d0") {
                pool.remove_member(&first).unwrap();
            }
        }
        wait_for_moves(&pool);
        pool
    }
}

fn recover(event: Event, crash: &Crash, checked: &Cell<u64>) {
    if crash.notes::<Filled>().count() == 0 {
        return;
    }
    checked.set(checked.get() + 1);
    let pool = open(&crash.disk, 0..3);
    check(&pool, 0..OBJECTS);
    wait_for_moves(&pool);
    check(&pool, 0..OBJECTS);
    // Each key is in one member, and no file of a big object is left over.
    for number in 0..OBJECTS {
        let has = pool.stores().filter(|store| store.stat(BUCKET, &key(number)).is_ok());
        assert_eq!(has.count(), 1, "{}", key(number));
    }
    let big = (0..OBJECTS).filter(|number| number.is_multiple_of(8)).count() as u64;
    assert_eq!(pool.stats().big_files, big);
    pool.close().unwrap();
    if checked.get().is_multiple_of(8) {
        // The event can be completed, and the pool opened again.
        event.execute(&crash.disk).close().unwrap();
        check(&open(&crash.disk, 0..3), 0..OBJECTS);
    }
}

fn crash_in(event: Event) {
    let mut crashes = Crashes {
        steps: 120,
        worst: Device::StaleBlocks,
        all_up_to: 1,
        draws: 1,
        again_one_in: 40,
        again_steps: 6,
        ..Crashes::default()
    };
    let (checked, first) = (Cell::new(0), crashes.seed);
    while checked.get() < STATES * depth() {
        let run = |disk: &MemoryDisk| {
            let pool = open(disk, event.before());
            pool.create_bucket(BUCKET).unwrap();
            fill(&pool, 0..OBJECTS);
            pool.close().unwrap();
            disk.note(Filled);
            event.execute(disk).close().unwrap();
        };
        crash_everywhere(&crashes, run, |(), crash| recover(event, crash, &checked));
        crashes.seed = crashes.seed.wrapping_add(1);
    }
    print_count(&format!("{} crash states of a pool, {event:?}", checked.get()), first);
}

#[test]
fn crash_while_a_pool_begins_loses_and_doubles_no_key() {
    crash_in(Event::Begin);
}

#[test]
fn crash_while_a_member_joins_loses_and_doubles_no_key() {
    crash_in(Event::Join);
}

#[test]
fn crash_while_a_member_leaves_loses_and_doubles_no_key() {
    crash_in(Event::Leave);
}
