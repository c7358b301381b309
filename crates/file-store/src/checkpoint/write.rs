//! Writes checkpoints of an open store.

use std::sync::Arc;

use haul_append_log::Lsn;

use crate::catalog::chunks;
use crate::catalog::format::{encode_changes, encode_state};
use crate::error::Result;
use crate::failures::WorkKind;
use crate::index::keys::Memtable;
use crate::index::locations::dump::Snapshot;
use crate::index::{Index, LocationChange};
use crate::inner::Inner;
use crate::names::{self, IndexFile};

/// The location table is rewritten when its changes exceed its size divided by this number.
const CHANGED_PART: u64 = 32;

/// The approximate size of a location-table entry in its file.
const SLOT_BYTES: u64 = 7;

/// The number of changes that are encoded into one chunk.
const CHANGES_PER_CHUNK: usize = 8192;

/// The maximum number of changes that opening replays after a store was closed without a
/// checkpoint.
const REPLAY_MAX: u64 = 4096;

/// An index snapshot at a log position.
struct FrozenIndex {
    applied: Lsn,
    recent: Arc<Memtable>,
    /// The whole location table, if it is written instead of its changes.
    whole: Option<Snapshot>,
    /// The changes to the location table since the last checkpoint, if they are known.
    changes: Option<Vec<LocationChange>>,
    /// The number of needles since the last checkpoint.
    change_count: u64,
    state: Vec<u8>,
    secret: [u64; 2],
    /// `false` if a run is damaged, and while damage hides keys, because a checkpoint would claim
    /// to contain them.
    may_publish: bool,
}

/// Returns `true` if the recent changes fill their share of the index memory, or would take long to
/// replay.
pub(crate) fn is_checkpoint_due(inner: &Inner, index: &Index) -> bool {
    !inner.options.is_read_only && inner.keyspace.checkpoint_due.is_reached(index.recent_changes())
}

pub(crate) fn checkpoint_if_due(inner: &Inner) {
    let index = inner.keyspace.index.read();
    let (is_due, recent) = (is_checkpoint_due(inner, &index), index.recent_changes());
    drop(index);
    if !is_due {
        return;
    }
    let written = checkpoint(inner);
    inner.maintenance.failures.note(WorkKind::Indexing, &written);
    match written {
        Ok(()) => inner.keyspace.checkpoint_due.reset(),
        // The disk may be full. The next attempt follows after more changes.
        Err(_) => inner.keyspace.checkpoint_due.postpone(recent),
    }
}

/// Writes a checkpoint before the store is closed, if opening it would otherwise take long.
pub(crate) fn checkpoint_at_close(inner: &Inner) {
    if !inner.options.is_read_only && inner.keyspace.index.read().change_count > REPLAY_MAX {
        // An error is harmless: opening then replays more of the log.
        drop(checkpoint(inner));
    }
}

/// Writes a checkpoint that contains all needles durable now.
///
/// 1. With no active writer, all durable needles are applied. Freezes the recent keys and the
///    location changes, and encodes the index's small parts.
/// 2. Writes and syncs the run and the locations. After a crash, no catalog lists their files.
/// 3. Replaces the catalog. From here on, opening replays the log from the position of step 1.
/// 4. Replaces the frozen keys by the run. If a step failed, they become recent keys again.
///
/// # Errors
/// A failed system call. No data is lost: the log has all needles.
///
/// # Durability
/// The checkpoint survives a power cut when this returns.
pub(crate) fn checkpoint(inner: &Inner) -> Result<()> {
    let _exclusive = inner.keyspace.index_files.checkpointing.lock();
    let Some(mut frozen) = freeze(inner) else { return Ok(()) };
    let run = match frozen.recent.len() {
        0 => Ok(None),
        _ => inner.keyspace.index_files.write_run(&frozen.recent).map(Some),
    };
    let published = run.and_then(|run| {
        let number = run.as_ref().map(|run| run.info().id);
        if frozen.may_publish {
            publish(inner, &mut frozen, number)
                .inspect_err(|_| inner.keyspace.index_files.remove(number.into_iter()))?;
        } else {
            inner.keyspace.index.write().location_changes = None;
        }
        Ok(run)
    });
    let mut index = inner.keyspace.index.write();
    match published {
        Ok(run) => {
            index.keys.thaw_into(run);
            drop(index);
            inner.keyspace.merges.wake();
            // The indexes of volumes that the checkpoint covers can be removed.
            inner.maintenance.admission.background.set();
            Ok(())
        }
        Err(error) => {
            index.keys.unfreeze();
            index.change_count += frozen.change_count;
            let later = index.location_changes.take();
            index.location_changes = frozen.changes.zip(later).map(|(mut changes, later)| {
                changes.extend(later);
                changes
            });
            Err(error)
        }
    }
}

/// Takes a snapshot of the index between two needles. `None` if the log has failed.
fn freeze(inner: &Inner) -> Option<FrozenIndex> {
    let earlier =
        inner.keyspace.index_files.catalog.lock().as_ref().map(|catalog| catalog.change_count);
    let _no_writer = inner.keyspace.gate.write();
    let mut index = inner.keyspace.index.write();
    if inner.volumes.log.is_latched() {
        return None;
    }
    // No writer is between the log and the index: the totals are exact.
    index.check_totals();
    debug_assert!(
        inner.volumes.log.synced() >= inner.keyspace.index_files.applied(),
        "checkpoints advance"
    );
    let nonces = inner.volumes.nonces();
    let state = encode_state(&index, |volume| nonces.get(&volume).copied().unwrap_or(0));
    let changes = index.location_changes.replace(Vec::new());
    let objects = index.locations.len();
    let are_few = changes.as_ref().zip(earlier).is_some_and(|(changes, earlier)| {
        // On a full disk, the changes are written regardless of their number.
        (earlier + changes.len() as u64) * CHANGED_PART < objects
            || !inner.has_space_for_index(SLOT_BYTES * objects).unwrap_or(false)
    });
    Some(FrozenIndex {
        applied: inner.volumes.log.synced(),
        recent: index.keys.freeze(),
        whole: (!are_few).then(|| index.locations.snapshot()),
        changes,
        change_count: std::mem::take(&mut index.change_count),
        state,
        secret: index.hash.secret,
        may_publish: index.hidden.any().is_none() && !inner.keyspace.index_files.is_damaged(),
    })
}

/// Writes the locations and replaces the catalog. After an error, removes the locations file.
fn publish(inner: &Inner, frozen: &mut FrozenIndex, run: Option<u64>) -> Result<()> {
    let number = inner.keyspace.index_files.next_number();
    let published = publish_as(inner, frozen, run, number);
    published.inspect_err(|_| inner.keyspace.index_files.remove([number].into_iter()))
}

fn publish_as(
    inner: &Inner,
    frozen: &mut FrozenIndex,
    run: Option<u64>,
    number: u64,
) -> Result<()> {
    let files = &inner.keyspace.index_files;
    let mut current = files.catalog.lock();
    let mut catalog = current.clone().unwrap_or_default();
    if let Some(snapshot) = frozen.whole.take() {
        let name = names::index_file(IndexFile::Locations, number);
        chunks::write(&*files.disk, &name, number, snapshot.chunks())?;
        catalog.locations = number;
        (catalog.changes, catalog.change_count) = (Vec::new(), 0);
    } else {
        let changes = frozen.changes.as_deref().unwrap_or_default();
        let name = names::index_file(IndexFile::Changes, number);
        let encoded = changes.chunks(CHANGES_PER_CHUNK).map(encode_changes);
        chunks::write(&*files.disk, &name, number, encoded)?;
        catalog.changes.push(number);
        catalog.change_count += changes.len() as u64;
    }
    // Also lists the runs that were written while nothing could be published.
    let listed = inner.keyspace.index.read().keys.runs().iter().map(|run| run.info().id).collect();
    catalog.runs = listed;
    catalog.runs.splice(0..0, run);
    debug_assert!(frozen.applied >= catalog.applied, "a checkpoint covers the one before it");
    debug_assert!(catalog.locations > 0, "changes refer to a table");
    catalog.applied = frozen.applied;
    catalog.secret = frozen.secret;
    catalog.state.clone_from(&frozen.state);
    catalog.last_file = files.last_number();
    files.publish(&mut current, catalog)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haul_append_log::segment_name;
    use haul_disk_sim::MemoryDisk;

    use super::checkpoint_if_due;
    use crate::{Attributes, Options, Precondition, Store};

    /// The maximum number of needles replayed with this test's options.
    const NEEDLES_MAX: u64 = 64;

    fn open_on(disk: &MemoryDisk) -> Store {
        let options = Options {
            volume_bytes: 4 << 20,
            big_object_bytes: 64 << 10,
            idle_watermark_ms: 0,
            index_memory_bytes: NEEDLES_MAX << 10,
            ..Options::default()
        };
        Store::open_on(Arc::new(disk.clone()), options).unwrap().0
    }

    fn overwrite(store: &Store, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let (bytes, none) = (number.to_le_bytes(), Attributes::new());
            drop(store.put("bucket", "key", &bytes, &none, &Precondition::None).unwrap());
            checkpoint_if_due(&store.inner);
            assert!(store.inner.keyspace.index.read().change_count <= NEEDLES_MAX);
        }
    }

    fn number(store: &Store) -> Vec<u8> {
        store.get("bucket", "key").unwrap().read(0, 4).unwrap().to_vec()
    }

    #[test]
    fn killed_store_replays_few_needles_after_overwrites_of_one_key() {
        let disk = MemoryDisk::default();
        let store = open_on(&disk);
        store.create_bucket("bucket").unwrap();
        overwrite(&store, 0..1000);
        let applied = store.inner.keyspace.index_files.applied();
        let mut medium = disk.medium();
        drop(store);
        // The bytes before the checkpoint are not read.
        let name = format!("volumes/{}", segment_name(applied.segment()));
        medium.file(&name)[4096..applied.offset() as usize].fill(0xff);

        let disk = MemoryDisk::on(&medium);
        let store = open_on(&disk);
        assert!(store.inner.keyspace.index.read().change_count <= NEEDLES_MAX);
        assert_eq!((number(&store), store.damage()), (999_u32.to_le_bytes().to_vec(), vec![]));
        overwrite(&store, 1000..1100);
        let medium = disk.medium();
        drop(store);
        let store = open_on(&MemoryDisk::on(&medium));
        assert_eq!((number(&store), store.damage()), (1099_u32.to_le_bytes().to_vec(), vec![]));
    }
}
