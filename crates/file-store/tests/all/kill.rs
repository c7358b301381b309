//! Repeated SIGKILL of a process with writing threads.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::thread;

use haul_file_store::Store;
use haul_testing::{PrintOnPanic, Random, child_test, replay_command, seed};

use crate::{BIG, BUCKET, big_files, dump, new_store, put, reopen};

pub(crate) const THREADS: u64 = 8;
const DIR: &str = "FILE_STORE_KILL_DIR";
const SEED: &str = "FILE_STORE_KILL_SEED";

pub(crate) type Objects = BTreeMap<String, Vec<u8>>;

/// Returns the sequence of acts of a thread on its own keys: puts and deletions.
pub(crate) fn acts(seed: u64, thread: u64) -> impl Iterator<Item = (String, Option<Vec<u8>>)> {
    let mut random = Random(seed.wrapping_mul(THREADS) + thread);
    std::iter::from_fn(move || {
        let key = format!("{thread}/{}", random.below(10));
        let length = match random.below(16) {
            0..4 => return Some((key, None)),
            4 => BIG + 12_345,
            _ => usize::try_from(random.below(20_000)).unwrap(),
        };
        Some((key, Some(random.bytes(length))))
    })
}

fn apply(objects: &mut Objects, (key, bytes): (String, Option<Vec<u8>>)) {
    match bytes {
        Some(bytes) => drop(objects.insert(key, bytes)),
        None => drop(objects.remove(&key)),
    }
}

/// Not a test: the program of the killed process. It prints a line for each acknowledged act.
#[test]
fn killed_process() {
    let (Ok(dir), Ok(seed)) = (std::env::var(DIR), std::env::var(SEED)) else { return };
    let seed: u64 = seed.parse().unwrap();
    let (store, _) = reopen(Path::new(&dir));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for (number, (key, bytes)) in acts(seed, thread).enumerate() {
                    match bytes {
                        Some(bytes) => drop(put(store, &key, &bytes)),
                        None => drop(store.delete(BUCKET, &key).unwrap()),
                    }
                    println!("ack {thread} {} .", number + 1);
                }
            });
        }
        loop {
            store.compact().unwrap();
        }
    });
}

/// Runs the process until it has acknowledged `acts` acts. Returns their number by thread.
fn run_and_kill(dir: &Path, seed: u64, acts: u64) -> BTreeMap<u64, usize> {
    let mut child = child_test("kill::killed_process")
        .env(DIR, dir)
        .env(SEED, seed.to_string())
        .spawn()
        .unwrap();
    let mut acknowledged = BTreeMap::new();
    let mut lines = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // The last line may be truncated. Complete lines count.
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        if let ["ack", thread, number, "."] = words[..] {
            acknowledged.insert(thread.parse().unwrap(), number.parse().unwrap());
            lines += 1;
            if lines == acts {
                child.kill().unwrap();
            }
        }
    }
    assert!(!child.wait().unwrap().success(), "the process was killed");
    assert!(lines >= acts, "the process ended on its own");
    acknowledged
}

/// Checks that the keys of a thread are as after its acknowledged acts, or after one more.
pub(crate) fn check(
    found: &Objects,
    before: &Objects,
    seed: u64,
    thread: u64,
    acknowledged: usize,
) {
    let own = |objects: &Objects| -> Objects {
        let prefix = format!("{thread}/");
        let own = objects.iter().filter(|(key, _)| key.starts_with(&prefix));
        own.map(|(key, bytes)| (key.clone(), bytes.clone())).collect()
    };
    let (found, mut expected) = (own(found), own(before));
    let mut acts = acts(seed, thread);
    acts.by_ref().take(acknowledged).for_each(|act| apply(&mut expected, act));
    if found != expected {
        apply(&mut expected, acts.next().unwrap());
    }
    assert!(found == expected, "thread {thread} after {acknowledged} acts");
}

pub(crate) fn objects(store: &Store) -> Objects {
    let found = dump(store).remove(BUCKET).unwrap();
    found.into_iter().map(|(key, (bytes, _))| (key, bytes)).collect()
}

#[test]
fn killed_process_loses_no_acknowledged_acts() {
    let first = seed();
    let _context = PrintOnPanic(format!("killed\n{}", replay_command(first)));
    let (dir, store) = new_store();
    store.close().unwrap();
    let (mut before, mut random, mut compacted) = (Objects::new(), Random(first), 0);
    for round in 0..10 {
        let seed = first.wrapping_add(round);
        let acknowledged = run_and_kill(dir.path(), seed, 50 + random.below(600));
        let (store, recovered) = reopen(dir.path());
        assert!(recovered.after_crash && recovered.index_rebuilt.is_none());
        assert_eq!(recovered.damage, []);
        let found = objects(&store);
        for thread in 0..THREADS {
            let acknowledged = acknowledged.get(&thread).copied().unwrap_or(0);
            check(&found, &before, seed, thread, acknowledged);
        }
        assert_eq!(big_files(dir.path()).len() as u64, store.stats().big_files);
        compacted += store.stats().volumes_compacted;
        store.close().unwrap();
        before = found;
    }
    println!("{} objects, {compacted} volumes compacted", before.len());
}
