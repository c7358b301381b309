//! The background thread: it writes sealed volumes' indexes, and compacts volumes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_append_log::{SegmentInfo, stored_bytes};
use haul_sync::thread::JoinHandle;

use crate::compaction::compact::compact_next;
use crate::error::Result;
use crate::failures::WorkKind;
use crate::format::needles;
use crate::inner::Inner;
use crate::maintenance::admission::Admission;
use crate::maintenance::volume_states::VolumeStates;
use crate::names;
use crate::volume_index::format::FIRST_RECORD;
use crate::volumes::volume_id;
use crate::worker::{Worker, spawn};

/// A store's background thread.
#[derive(Debug)]
pub(crate) struct Background {
    admission: Arc<Admission>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = spawn(&inner.dir, "store-background", {
            let (inner, stop) = (Arc::clone(inner), Arc::clone(&stop));
            move || run(&inner, &stop)
        })?;
        Ok(Self { admission: Arc::clone(&inner.maintenance.admission), stop, thread: Some(thread) })
    }
}

impl Worker for Background {
    /// Makes the thread end after its current step.
    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.admission.background.stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Indexes and compacts until `stop` is set: once at the start, and then whenever the thread is
/// woken.
///
/// All of this work can be repeated later, so a failure affects no object. The log itself reports
/// its failures to every writer. After a failure, writers that wait for space stop waiting.
fn run(inner: &Inner, stop: &AtomicBool) {
    if inner.options.is_read_only {
        return;
    }
    loop {
        let pass = inner.maintenance.admission.begin_pass();
        loop {
            let indexed = index_sealed_volumes(inner, stop);
            inner.maintenance.failures.note(WorkKind::Indexing, &indexed);
            let compacted = compact_next(inner, stop);
            inner.maintenance.failures.note(WorkKind::Compaction, &compacted);
            if !compacted.unwrap_or(false) {
                break;
            }
        }
        inner.maintenance.admission.end_pass(pass);
        let next_look = inner.maintenance.volume_states.lock().hot.next_look();
        if !inner.maintenance.admission.background.wait(next_look) {
            return;
        }
    }
}

/// Completes sealed volumes' indexes, and writes missing or incomplete ones.
pub(crate) fn index_sealed_volumes(inner: &Inner, stop: &AtomicBool) -> Result<()> {
    let mut volume_states = inner.maintenance.volume_states.lock();
    let covered_before = inner.keyspace.index_files.applied().segment();
    remove_covered_indexes(inner, &mut volume_states, covered_before)?;
    if inner.is_tight() {
        return Ok(());
    }
    for volume in inner.sealed_volumes() {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        if volume.number < covered_before {
            continue;
        }
        if volume_states.indexed.contains(&volume.number) {
            continue;
        }
        if inner.volumes.indexes.complete(volume_id(&volume))? {
            volume_states.indexed.insert(volume.number);
        } else if volume.is_local && !volume_states.damaged.contains(&volume.number) {
            let volumes = match write_index(inner, volume)? {
                true => &mut volume_states.indexed,
                false => &mut volume_states.damaged,
            };
            volumes.insert(volume.number);
        }
    }
    Ok(())
}

/// Removes the indexes of volumes whose needles are all in the checkpoint.
fn remove_covered_indexes(
    inner: &Inner,
    volume_states: &mut VolumeStates,
    covered_before: u32,
) -> Result<()> {
    if volume_states.covered_before == covered_before || inner.volumes.manifest.is_none() {
        return Ok(());
    }
    // Without its index, only the manifest records that a volume existed.
    inner.volumes.list_new_volumes()?;
    let mut removed = false;
    for name in inner.volumes.disk.list("")? {
        let Some(volume) = names::parse_index(&name).filter(|n| *n < covered_before) else {
            continue;
        };
        inner.volumes.indexes.forget(volume);
        volume_states.indexed.remove(&volume);
        inner.volumes.disk.remove(&name)?;
        removed = true;
    }
    for volume in inner.sealed_volumes().iter().filter(|v| v.number < covered_before) {
        inner.volumes.indexes.forget(volume.number);
    }
    volume_states.covered_before = covered_before;
    if removed {
        inner.volumes.disk.sync_dir("")?;
    }
    Ok(())
}

/// Writes a sealed volume's index by reading the volume. Returns `false` for a damaged volume,
/// whose index is not changed: without a complete index, opening the store reads the volume itself
/// and reports its damage.
fn write_index(inner: &Inner, volume: SegmentInfo) -> Result<bool> {
    let mut found = Vec::new();
    let mut end = FIRST_RECORD;
    let mut is_whole = true;
    let scanned = inner.volumes.log.scan(volume.number, &mut |at, record| {
        end = at.lsn.offset() + stored_bytes(at);
        for needle in needles(record) {
            match needle {
                Ok((head, _)) => found.push((at, head)),
                Err(_) => is_whole = false,
            }
        }
    });
    if !is_whole || !scanned.is_ok_and(|damage| damage.is_empty()) {
        return Ok(false);
    }
    inner.volumes.indexes.replace(volume_id(&volume), end, &found)?;
    Ok(true)
}
