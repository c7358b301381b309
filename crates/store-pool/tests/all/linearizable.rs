//! Concurrent calls on one key take effect one after the other, each between its begin and its end,
//! also while the key moves to another member.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, Error, Precondition};
use haul_store_pool::Pool;
use haul_testing::Random;

use crate::{BUCKET, get, key, open_at, put};

const KEYS: u64 = 200;
const READERS: usize = 3;
const WRITERS: u64 = 3;

/// The number of calls of each writer on each key, and the maximum of those of a reader.
const WRITES: u64 = 6;
const READS_MAX: usize = 2000;

/// What a call did to a key, whose value is `None` if there is no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Put(u64),
    /// A put if there is no object, which succeeded or not.
    Create(u64, bool),
    /// A deletion, and whether there was an object.
    Delete(bool),
    Get(Option<u64>),
}

impl Action {
    /// Returns the value after the call, and `None` if it cannot happen with this value before it.
    fn apply(self, value: Option<u64>) -> Option<Option<u64>> {
        match self {
            Self::Put(new) => Some(Some(new)),
            Self::Create(new, true) => value.is_none().then_some(Some(new)),
            Self::Create(_, false) => value.is_some().then_some(value),
            Self::Delete(existed) => (value.is_some() == existed).then_some(None),
            Self::Get(found) => (found == value).then_some(value),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Call {
    begin: Instant,
    end: Instant,
    action: Action,
}

/// Returns `true` if the calls on a key, those of each client in their order, have an order in which
/// each follows from the one before, and none comes after one that began when it had ended.
///
/// Searches all orders; how far each client is, and the value, decide what can follow (Wing and
/// Gong; Lowe, "Testing for linearizability"). What changes nothing comes as early as it can.
fn is_linearizable(clients: &[Vec<Call>]) -> bool {
    let mut open = vec![(vec![0; clients.len()], None)];
    let mut seen = HashSet::new();
    while let Some((done, value)) = open.pop() {
        let next = clients.iter().zip(&done).enumerate();
        let next = next.filter_map(|(client, (calls, done))| Some((client, calls.get(*done)?)));
        let next: Vec<(usize, &Call)> = next.collect();
        let Some(first_end) = next.iter().map(|(_, call)| call.end).min() else { return true };
        let possible = next.iter().filter(|(_, call)| call.begin <= first_end);
        let possible = possible
            .filter_map(|(client, call)| Some((*client, call.action.apply(value)?)))
            .collect::<Vec<_>>();
        let unchanged = possible.iter().find(|(_, after)| *after == value);
        for (client, after) in unchanged.map_or(&*possible, std::slice::from_ref) {
            let mut done = done.clone();
            done[*client] += 1;
            if seen.insert((done.clone(), *after)) {
                open.push((done, *after));
            }
        }
    }
    false
}

/// Returns the call that `act` makes.
fn timed(act: impl FnOnce() -> Action) -> Call {
    let begin = Instant::now();
    let action = act();
    Call { begin, end: Instant::now(), action }
}

fn read(pool: &Pool, key: &str) -> Action {
    match get(pool, key) {
        Ok(found) => Action::Get(Some(u64::from_le_bytes(found.try_into().unwrap()))),
        Err(Error::NoSuchKey { .. }) => Action::Get(None),
        Err(error) => panic!("{error}"),
    }
}

/// Changes a key in one of three ways, or reads it. The value is new, and tells which put a get has
/// read.
fn change(pool: &Pool, key: &str, value: u64, random: &mut Random) -> Action {
    let bytes = value.to_le_bytes();
    match random.below(4) {
        0 => {
            put(pool, key, &bytes);
            Action::Put(value)
        }
        1 => match pool.put(BUCKET, key, &bytes, &Attributes::new(), &Precondition::Absent) {
            Ok(_) => Action::Create(value, true),
            Err(Error::PreconditionFailed) => Action::Create(value, false),
            Err(error) => panic!("{error}"),
        },
        2 => Action::Delete(pool.delete(BUCKET, key).unwrap()),
        _ => read(pool, key),
    }
}

/// Gives all keys the value 0, as they have it before they move.
fn reset(pool: &Pool) {
    let next = AtomicU64::new(0);
    let reset = || {
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= KEYS {
                break;
            }
            put(pool, &key(number), &0_u64.to_le_bytes());
        }
    };
    thread::scope(|scope| (0..16).for_each(|_| drop(scope.spawn(reset))));
}

/// Lets writers change the same key, one key after the other, while readers read it, and checks the
/// calls on each. The first write of a key that has to be moved moves it.
fn check_histories(pool: &Pool) {
    for number in 0..KEYS {
        let (key, begin, writing) = (&key(number), Instant::now(), &AtomicU64::new(WRITERS));
        let write = |writer| {
            move || {
                let mut random = Random(number * WRITERS + writer + 1);
                let values = (0..WRITES).map(|count| 1 + count * WRITERS + writer);
                let calls = values.map(|value| timed(|| change(pool, key, value, &mut random)));
                let calls = calls.collect();
                writing.fetch_sub(1, Relaxed);
                calls
            }
        };
        let read = || {
            let mut calls = Vec::new();
            while writing.load(Relaxed) > 0 && calls.len() < READS_MAX {
                calls.push(timed(|| read(pool, key)));
            }
            calls
        };
        let clients: Vec<Vec<Call>> = thread::scope(|scope| {
            let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
            let writers = (0..WRITERS).map(|writer| scope.spawn(write(writer)));
            let clients = readers.into_iter().chain(writers.collect::<Vec<_>>());
            clients.map(|client| client.join().unwrap()).collect()
        });
        let first = Call { begin, end: begin, action: Action::Put(0) };
        let clients = [vec![vec![first]], clients].concat();
        assert!(is_linearizable(&clients), "{key}: {clients:#?}");
    }
}

#[test]
fn calls_are_linearizable_while_keys_move() {
    let disk = MemoryDisk::default();
    // So slowly that most keys are moved by their first write.
    let mut pool = open_at(&disk, 0..2, 100);
    pool.create_bucket(BUCKET).unwrap();
    reset(&pool);
    check_histories(&pool);
    reset(&pool);
    let dir = pool.members()[1].dir().to_owned();
    pool.remove_member(&dir).unwrap();
    check_histories(&pool);
    let moved_in_background = pool.move_progress().unwrap().keys;
    assert!(moved_in_background < KEYS / 4, "{moved_in_background}");
}

#[test]
fn stale_and_lost_values_are_noticed() {
    let start = Instant::now();
    let call = |begin, end, action| {
        let at = |ms| start + std::time::Duration::from_millis(ms);
        Call { begin: at(begin), end: at(end), action }
    };
    let is_possible = |clients: &[&[Call]]| {
        is_linearizable(&clients.iter().map(|calls| calls.to_vec()).collect::<Vec<_>>())
    };
    let writer = [call(0, 10, Action::Put(1)), call(20, 30, Action::Put(2))];
    for (begin, end, found, expected) in [
        (5, 25, None, true),
        (12, 15, None, false),
        (12, 15, Some(1), true),
        (25, 26, Some(1), true),
        (25, 26, Some(2), true),
        (32, 33, Some(1), false),
        (12, 15, Some(2), false),
    ] {
        let reader = [call(begin, end, Action::Get(found))];
        assert_eq!(is_possible(&[&writer, &reader]), expected, "{begin}, {end}, {found:?}");
    }
    // Of two readers, the later one may not see the older value.
    let reads = [call(21, 23, Action::Get(Some(2))), call(24, 26, Action::Get(Some(1)))];
    assert!(!is_possible(&[&writer, &reads[..1], &reads[1..]]));
    let creations = [call(0, 9, Action::Create(1, true)), call(1, 8, Action::Create(2, true))];
    assert!(!is_possible(&[&creations[..1], &creations[1..]]));
    let deletions = [call(11, 19, Action::Delete(true)), call(12, 18, Action::Delete(true))];
    assert!(!is_possible(&[&writer[..1], &deletions[..1], &deletions[1..]]));
}
