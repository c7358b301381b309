//! Removes what the other store has, or everything.

use haul_append_log::{Lsn, SpacePriority};

use crate::error::Result;
use crate::format::{Head, Kind};
use crate::index::entry::Change;
use crate::index::version_rows::VersionRow;
use crate::inner::Inner;
use crate::key_move::locks::{lock_source, peek_state, try_enter, wait_for_gate};
use crate::key_move::moved::MovedKey;
use crate::key_move::plan::plan;
use crate::key_move::state::{HeldUpload, HeldVersion, KeyName, KeyState, read_state};
use crate::needles::apply::Pending;
use crate::versions::retain::{tombstone, version_tombstone};

/// The maximum number of tombstones in a record.
const RECORD_TOMBSTONES: usize = 64;

/// The maximum number of tombstones that are appended while the key is locked.
const BATCH_TOMBSTONES: usize = 1024;

/// The outcome of [`remove_batch`].
#[derive(Debug)]
pub(super) enum RemoveStep {
    /// The other store lacks something, or its copy may lack something: nothing was removed.
    NotCopied,
    /// A part was removed, or everything.
    Removed { moved: MovedKey, is_all: bool },
}

/// Removes a batch of what `to` has of a key, too.
///
/// 1. Locks the key in `from`, and compares both stores again: `to` has everything, and its log before
///    `confirmed`, which has been confirmed, has all of that. What `to` deletes from then on was
///    deleted after the move.
/// 2. Enters `from`. If its gate is closed, begins again.
/// 3. Appends tombstones to the log of `from`, and the newest version's last: what remains after a
///    crash is a state in which the newest version is the same. Locks of versions do not matter,
///    because `to` has the versions with their locks.
/// 4. Waits until they are durable, applies them, and removes the files of big objects.
///
/// # Errors
/// [`crate::Error::Damaged`]; [`crate::Error::Full`] if there is no space for tombstones.
pub(super) fn remove_batch(
    from: &Inner,
    to: &Inner,
    name: KeyName<'_>,
    confirmed: Lsn,
) -> Result<RemoveStep> {
    loop {
        if let Some(step) = try_remove_batch(from, to, name, confirmed)? {
            return Ok(step);
        }
        wait_for_gate(from, name)?;
    }
}

/// Removes a batch like [`remove_batch`]; `None` if the gate of `from` is closed.
fn try_remove_batch(
    from: &Inner,
    to: &Inner,
    name: KeyName<'_>,
    confirmed: Lsn,
) -> Result<Option<RemoveStep>> {
    let source = lock_source(from, to, name)?;
    let here = read_state(from, name)?;
    if here.is_empty() {
        return Ok(Some(RemoveStep::Removed { moved: MovedKey::default(), is_all: true }));
    }
    let there = peek_state(to, name)?;
    if !plan(&here, &there).is_empty() || there.last_lsn() >= Some(confirmed) {
        return Ok(Some(RemoveStep::NotCopied));
    }
    let Some(writer) = try_enter(from, name)? else { return Ok(None) };
    // Dropped in this order, as each writer releases its key before it leaves.
    let _locks = (source, writer);
    let (moved, is_all) = append_removals(from, name, here)?;
    Ok(Some(RemoveStep::Removed { moved, is_all }))
}

/// Removes a batch of what a store has of a key, whatever other stores have. Returns `true` if that
/// was everything.
///
/// # Errors
/// Fails like [`remove_batch`].
pub(super) fn discard_batch(from: &Inner, name: KeyName<'_>) -> Result<bool> {
    let _writer = from.keyspace.enter(name.bucket)?;
    let _key = from.keyspace.keys.lock(name.bucket, name.key);
    let state = read_state(from, name)?;
    Ok(state.is_empty() || append_removals(from, name, state)?.1)
}

/// Appends tombstones for a batch of `state`, and waits until they are durable. Returns what was
/// removed, and `true` if that was everything.
fn append_removals(from: &Inner, name: KeyName<'_>, state: KeyState) -> Result<(MovedKey, bool)> {
    let mut removals = removals(from, name, state);
    let is_all = removals.len() <= BATCH_TOMBSTONES;
    removals.truncate(BATCH_TOMBSTONES);
    let mut moved = MovedKey::default();
    removals.iter().for_each(|removal| moved.add(removal.moved));
    let changes: Vec<Change> = removals.into_iter().map(|removal| removal.change).collect();
    let pending = Pending::start(|records| {
        for record in changes.chunks(RECORD_TOMBSTONES) {
            records.push(from.append_heads(record.to_vec(), SpacePriority::Reserve)?);
        }
        Ok(())
    });
    from.finish(pending)?;
    Ok((moved, is_all))
}

/// A tombstone, and what it removes.
struct Removal {
    change: Change,
    moved: MovedKey,
}

/// Returns the tombstones for everything under a key, in the order in which they are appended.
fn removals(from: &Inner, name: KeyName<'_>, state: KeyState) -> Vec<Removal> {
    let KeyName { bucket, key } = name;
    let end = |(id, upload): (u128, HeldUpload)| {
        let mut head = Head::new(Kind::UploadEnded, bucket, key);
        (head.upload, head.version) = (id, from.keyspace.clock.next());
        let bytes = upload.parts.values().map(|part| part.bytes).sum();
        Removal { change: head.into(), moved: MovedKey { objects: 0, uploads: 1, bytes } }
    };
    let copy = |row: VersionRow| {
        let change = version_tombstone(from, bucket, key, row);
        Removal { change, moved: MovedKey::default() }
    };
    let version = |held: HeldVersion| {
        let HeldVersion { name, entry, is_current } = held;
        let moved = MovedKey { objects: 1, uploads: 0, bytes: entry.bytes };
        let change = match is_current {
            true => tombstone(from, bucket, key, Some(entry)),
            false => version_tombstone(from, bucket, key, VersionRow { name, entry }),
        };
        Removal { change, moved }
    };
    let KeyState { versions, copy: current_copy, uploads } = state;
    let ends = uploads.into_iter().map(end);
    // From oldest to newest.
    let versions = versions.into_iter().rev().map(version);
    ends.chain(current_copy.map(copy)).chain(versions).collect()
}
