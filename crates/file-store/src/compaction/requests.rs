//! Compaction on request, and the volumes' state.

use std::sync::atomic::AtomicBool;

use haul_append_log as log;

use crate::compaction::compact::CompactionReport;
use crate::compaction::compact::compact_all;
use crate::compaction::volume_map::{VolumeMap, add, merged};
use crate::error::Result;
use crate::format::needles;
use crate::store::Store;
use crate::volume_index;
use crate::volumes::volume_id;

impl Store {
    /// Compacts every volume that is at least one tenth dead; if space is short, every volume with
    /// dead bytes. First ends the volume being written, if at least a tenth of it, and at least a
    /// MiB, is dead. Skips damaged volumes.
    ///
    /// # Errors
    /// [`crate::Error::Full`] if there is no space for the next volume's live needles; volumes
    /// without live needles are removed before that. [`crate::Error::ReadOnly`]. Failed system
    /// calls; a later call skips an unreadable volume.
    ///
    /// # Durability
    /// Moved needles are durable at their new position before their volume is removed.
    pub fn compact(&self) -> Result<CompactionReport> {
        self.compact_with_progress(&mut |_report| {})
    }

    /// Compacts like [`Store::compact`], and calls `progress` after each volume with the work done
    /// so far.
    ///
    /// # Errors
    /// Fails like [`Store::compact`].
    ///
    /// # Durability
    /// Like [`Store::compact`].
    pub fn compact_with_progress(
        &self,
        progress: &mut dyn FnMut(&CompactionReport),
    ) -> Result<CompactionReport> {
        self.inner.check_writable()?;
        compact_all(&self.inner, &AtomicBool::new(false), progress)
    }

    /// Returns all volumes' live and dead parts, in log order, without damaged needles.
    ///
    /// Reads the index of each sealed volume. A volume whose index is incomplete, such as the one
    /// being written, is read as a whole.
    ///
    /// # Errors
    /// A failed system call.
    pub fn volume_maps(&self) -> Result<Vec<VolumeMap>> {
        let inner = &self.inner;
        let mut maps = Vec::new();
        for segment in inner.volumes.log.segments() {
            let volume = volume_id(&segment);
            let mut extents = Vec::new();
            let indexed =
                volume_index::read(&*inner.volumes.disk, volume.number, Some(volume.nonce));
            if let Some(indexed) = indexed.filter(|indexed| indexed.is_complete) {
                let index = inner.keyspace.index.read();
                for needle in indexed.needles {
                    add(&mut extents, needle.at, index.is_live(&needle.head, needle.at));
                }
            } else {
                let scanned = inner.volumes.log.scan(segment.number, &mut |at, record| {
                    let index = inner.keyspace.index.read();
                    for (head, _) in needles(record).flatten() {
                        add(&mut extents, at, index.is_live(&head, at));
                    }
                });
                match scanned {
                    // The volume was compacted in the meantime.
                    Err(log::Error::Invalid(_)) => continue,
                    Err(log::Error::Disk(error)) if error.is_not_found() => continue,
                    scanned => drop(scanned?),
                }
            }
            let extents = merged(extents);
            maps.push(VolumeMap { number: segment.number, bytes: segment.bytes.into(), extents });
        }
        Ok(maps)
    }
}
