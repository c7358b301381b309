//! Moves the keys of all slots that the table says are moving.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use haul_disk::error_chain;
use haul_file_store::{Error, Result};

use crate::member::Member;
use crate::moves::move_key;
use crate::moves::plan::end_moves;
use crate::shared::Shared;
use crate::stop::Stop;

/// The keys that are looked up together.
const PAGE_KEYS: usize = 1000;

/// The threads that move keys, so that they share the syncs of both logs.
const THREADS: usize = 16;

/// Moves the keys of all moving slots, and ends the moves if none is left.
///
/// 1. Moves each key that an old member still has. After a crash, the pool continues: a key that was
///    copied and not removed is only removed.
/// 2. Writes the table without old members. Before that, a crash leaves slots without keys to move.
///
/// # Errors
/// The first failure, after all keys were tried: the moves then go on later.
pub(crate) fn move_keys(members: &[Member], shared: &Shared, stop: &Stop) -> Result<()> {
    let donors: Vec<usize> = {
        let routes = shared.routes.read();
        (0..members.len()).filter(|member| routes.donors()[*member]).collect()
    };
    if donors.is_empty() {
        return Ok(());
    }
    let mut outcome = Ok(());
    for donor in donors {
        outcome = outcome.and(empty_member(members, shared, donor, stop));
    }
    outcome?;
    if stop.is_requested() || leaves_with_events(members, shared) {
        return Ok(());
    }
    shared.change_table(members, end_moves)
}

/// Returns `true` if a member that leaves still has queued events, which do not move: it stays until
/// they are delivered.
fn leaves_with_events(members: &[Member], shared: &Shared) -> bool {
    let table = shared.table.lock();
    let leaving = members
        .iter()
        .filter(|member| table.member(member.number()).is_some_and(|entry| entry.is_leaving));
    let mut queues =
        leaving.filter_map(|member| member.store().ok()).flat_map(|s| s.events().queues());
    queues.any(|(_, queue)| queue.events > 0)
}

/// Moves all keys of moving slots from a member.
fn empty_member(members: &[Member], shared: &Shared, donor: usize, stop: &Stop) -> Result<()> {
    let store = members[donor].store()?;
    let mut outcome = Ok(());
    for bucket in store.buckets()? {
        match empty_bucket(members, shared, donor, &bucket.name, stop) {
            // It was deleted meanwhile.
            Err(Error::NoSuchBucket { .. }) => {}
            moved => outcome = outcome.and(moved),
        }
    }
    outcome
}

fn empty_bucket(
    members: &[Member],
    shared: &Shared,
    donor: usize,
    bucket: &str,
    stop: &Stop,
) -> Result<()> {
    let store = members[donor].store()?;
    let (mut after, mut outcome) = (None::<String>, Ok(()));
    while !stop.is_requested() {
        let keys = store.stored_keys(bucket, after.as_deref(), PAGE_KEYS)?;
        let Some(last) = keys.last() else { break };
        after = Some(last.clone());
        outcome = outcome.and(move_page(members, shared, donor, bucket, &keys, stop));
    }
    outcome
}

fn move_page(
    members: &[Member],
    shared: &Shared,
    donor: usize,
    bucket: &str,
    keys: &[String],
    stop: &Stop,
) -> Result<()> {
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure = haul_sync::Mutex::new(Ok(()));
    let work = || {
        while let Some(key) = keys.get(next.fetch_add(1, Relaxed))
            && !stop.is_requested()
        {
            let routes = shared.routes.read();
            let route = routes.route(bucket, key);
            if route.from != Some(donor) {
                continue;
            }
            match move_key(members, donor, route.to, bucket, key) {
                Ok(moved) => {
                    shared.moves.moved(moved.bytes);
                    drop(routes);
                    let wait = shared.pace.moved(moved.bytes, Instant::now());
                    if !wait.is_zero() {
                        stop.wait(wait);
                    }
                }
                Err(error) => {
                    shared.moves.failed(format!("{bucket}/{key}: {}", error_chain(&error)));
                    has_failed.store(true, Relaxed);
                    *failure.lock() = Err(error);
                }
            }
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    failure.into_inner()
}
