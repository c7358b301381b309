//! Moves the keys of all slots that the table says are moving.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use haul_disk::error_chain;
use haul_file_store::{Error, Result};

use crate::member::Member;
use crate::moves::move_key;
use crate::moves::plan::{must_spread, spread_slots};
use crate::shared::Shared;
use crate::stop::Stop;
use crate::weights::weights;

/// The keys that are looked up together.
const PAGE_KEYS: usize = 1000;

/// The threads that move keys, so that they share the syncs of both logs.
const THREADS: usize = 16;

/// Moves the keys of all moving slots. Then spreads the slots that could not be spread before, since
/// a slot has one old member, and moves their keys, too.
///
/// 1. Moves each key that an old member still has. After a crash, the pool continues: a key that was
///    copied and not removed is only removed.
/// 2. Writes the table without old members. Before that, a crash leaves slots without keys to move.
/// 3. Spreads the slots, if a member waits for some or leaves with some, and begins again.
///
/// # Errors
/// The first failure, after all keys were tried: the moves then go on later.
pub(crate) fn move_keys(members: &[Member], shared: &Shared, stop: &Stop) -> Result<()> {
    loop {
        let donors = shared.routes.read().donors();
        let mut outcome = Ok(());
        for donor in (0..members.len()).filter(|member| donors[*member]) {
            outcome = outcome.and(empty_member(members, shared, donor, stop));
        }
        outcome?;
        if stop.is_requested() {
            return Ok(());
        }
        if donors.contains(&true) {
            if leaves_with_events(members, shared) {
                return Ok(());
            }
            shared.end_moves(members)?;
        }
        if !begin_moves(members, shared)? {
            return Ok(());
        }
    }
}

/// Spreads the slots if they must be. Returns `true` if moves have begun.
///
/// Waits for all calls of keys, and all new ones wait for it. Therefore it does nothing while a call
/// takes long, and is repeated later.
fn begin_moves(members: &[Member], shared: &Shared) -> Result<bool> {
    let mut table = shared.table.lock().clone();
    let is_busy = |member: &Member| member.store().is_err() || member.waiting().calls > 0;
    if !must_spread(&table) || shared.unsettled.is_some() || members.iter().any(is_busy) {
        return Ok(false);
    }
    let weights = weights(members);
    if !spread_slots(&mut table, |position| weights[position]) {
        return Ok(false);
    }
    shared.change_table(members, |changed| changed.slots = table.slots)?;
    Ok(true)
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
            match move_key(&members[donor], &members[route.to], bucket, key) {
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
