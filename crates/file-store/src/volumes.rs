//! An open store's volumes: their files, the log that contains them, their manifest and their
//! damage.

use std::collections::HashMap;
use std::sync::Arc;

use haul_append_log::{Log, Lsn, SegmentInfo};
use haul_disk::Disk;

use crate::damage::found::FoundDamage;
use crate::error::Result;
use crate::manifest::ManifestFile;
use crate::memory::buffers::Buffers;
use crate::memory::locked::LockedMemory;
use crate::names;
use crate::volume_index::IndexWriter;
use crate::volume_index::format::{FIRST_RECORD, VolumeId};

/// The volumes: the log, their indexes, the manifest and the damage found.
#[derive(Debug)]
pub(crate) struct Volumes {
    /// The directory with the volumes and their indexes.
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) log: Log,
    /// The needle heads that the volume indexes lack, and the indexes' files.
    pub(crate) indexes: IndexWriter,
    /// The list of volumes; `None` if both copies were lost and there was no space for new ones.
    pub(crate) manifest: Option<ManifestFile>,
    pub(crate) damage: FoundDamage,
    /// Reusable buffers for long objects.
    pub(crate) buffers: Arc<Buffers>,
    /// The memory for locked objects in volumes.
    pub(crate) locked: LockedMemory,
}

impl Volumes {
    /// Returns all volumes' nonces, by volume number.
    pub(crate) fn nonces(&self) -> HashMap<u32, u64> {
        self.log.segments().iter().map(|segment| (segment.number, segment.nonce)).collect()
    }

    /// Returns an error if a write or sync of the manifest failed.
    pub(crate) fn check_manifest(&self) -> Result<()> {
        self.manifest.as_ref().map_or(Ok(()), ManifestFile::check)
    }

    /// Returns the number of the oldest volume that exists in any form: a file that may be
    /// unreadable, only an index, or only an entry of the manifest, because a missing volume may be
    /// restored.
    pub(crate) fn oldest(&self) -> Result<Option<u32>> {
        let number = |name: &String| names::parse_volume(name).or_else(|| names::parse_index(name));
        let found = self.disk.list("")?.iter().filter_map(number).min();
        let listed =
            self.manifest.as_ref().and_then(|manifest| manifest.numbers().first().copied());
        Ok(found.into_iter().chain(listed).min())
    }

    /// Adds unlisted volumes to the manifest.
    pub(crate) fn list_new_volumes(&self) -> Result<()> {
        match &self.manifest {
            Some(manifest) => manifest.add(&nonempty_volumes(&self.log)),
            None => Ok(()),
        }
    }

    /// Marks the newest volume's end, unless the log has failed: opening then determines the end.
    pub(crate) fn close_index(&self) -> Result<()> {
        if self.log.is_latched() {
            return Ok(());
        }
        let volumes = nonempty_volumes(&self.log);
        drop(self.list_new_volumes());
        self.indexes.write(&volumes);
        let end = self.log.synced();
        match volumes.iter().find(|volume| volume.number == end.segment()) {
            Some(volume) => self.indexes.mark_closed(*volume, end.offset()),
            None => self.indexes.sync(),
        }
    }
}

/// Returns the volumes with at least one durable record. Empty preallocated volumes are left out,
/// because the log may still remove them.
pub(crate) fn nonempty_volumes(log: &Log) -> Vec<VolumeId> {
    let synced = log.synced();
    let is_begun = |segment: &SegmentInfo| Lsn::new(segment.number, FIRST_RECORD) < synced;
    log.segments().iter().filter(|segment| is_begun(segment)).map(volume_id).collect()
}

pub(crate) fn volume_id(segment: &SegmentInfo) -> VolumeId {
    VolumeId { number: segment.number, nonce: segment.nonce }
}
