//! What the store, its readers and its background thread share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use haul_append_log::{Log, Room, SegmentInfo, Ticket};
use haul_disk::{Disk, Lock};
use haul_md5_lanes::Md5Queue;
use parking_lot::{ArcRwLockReadGuard, Mutex, RawRwLock, RwLock};

use crate::access::buffers::Buffers;
use crate::access::pending_put::queue::PendingPuts;
use crate::access::writers::{Entered, Writers};
use crate::big_files::directory::Objects;
use crate::checkpoint::due::CheckpointDue;
use crate::checkpoint::files::IndexFiles;
use crate::checkpoint::merge_signal::MergeSignal;
use crate::clock::{Clock, Version};
use crate::compaction::admission::Admission;
use crate::compaction::upkeep::Upkeep;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::index::Index;
use crate::lifecycle::state::LifecycleState;
use crate::locks::KeyLocks;
use crate::manifest::ManifestFile;
use crate::names;
use crate::object::Etag;
use crate::options::Options;
use crate::recovery::damage::Damage;
use crate::recovery::found_damage::FoundDamage;
use crate::volume_index::IndexWriter;

/// An open store.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// The volumes and their indexes.
    pub(crate) volumes: Arc<dyn Disk>,
    /// The files of big objects.
    pub(crate) objects: Arc<Objects>,
    pub(crate) log: Log,
    /// What the indexes of volumes get.
    pub(crate) indexes: IndexWriter,
    /// `None` if both copies were lost and there was no space for new ones.
    pub(crate) manifest: Option<ManifestFile>,
    pub(crate) damage: FoundDamage,
    /// Buffers of long objects.
    pub(crate) buffers: Arc<Buffers>,
    pub(crate) index: RwLock<Index>,
    /// The files of the index.
    pub(crate) index_files: Arc<IndexFiles>,
    pub(crate) checkpoint_due: CheckpointDue,
    pub(crate) merges: MergeSignal,
    /// Held while a key is written, from the look at what is there to the new entry; for a bucket
    /// itself, that of the empty key.
    pub(crate) keys: KeyLocks,
    /// Held for reading by every writer of objects, for writing by the creation and deletion of
    /// buckets: no object can slip into a bucket that is being deleted.
    pub(crate) gate: Arc<RwLock<()>>,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) lifecycle: LifecycleState,
    pub(crate) upkeep: Mutex<Upkeep>,
    /// Writers whose needles the index may not know yet.
    pub(crate) writers: Arc<Writers>,
    /// Puts that the completing thread applies to the index.
    pub(crate) pending_puts: PendingPuts,
    /// Delays writers while compaction is behind.
    pub(crate) admission: Arc<Admission>,
    /// The queue in which concurrent puts are hashed together.
    pub(crate) md5: Md5Queue,
    pub(crate) _lock: Lock,
}

impl Inner {
    /// A writer of objects' leave to begin: the bucket is there, and stays until this is dropped.
    pub(crate) fn enter(&self, bucket: &str) -> Result<Entered> {
        self.enter_with(self.gate.read_arc(), bucket)
    }

    /// Enters a bucket like [`Self::enter`] unless this would wait for a holder of the gate.
    pub(crate) fn try_enter(&self, bucket: &str) -> Result<Option<Entered>> {
        let gate = self.gate.try_read_arc();
        gate.map(|gate| self.enter_with(gate, bucket)).transpose()
    }

    fn enter_with(&self, gate: ArcRwLockReadGuard<RawRwLock, ()>, bucket: &str) -> Result<Entered> {
        let index = self.index.read();
        index.check_bucket(bucket)?;
        Ok(Entered { _bucket: gate, _writer: self.writers.enter() })
    }

    /// Returns the error for a request to a bucket that is not in the index.
    pub(crate) fn missing_bucket(&self, bucket: &str) -> Error {
        self.index.read().missing_bucket(bucket)
    }

    /// A head with nothing in it yet but its names.
    pub(crate) fn head(&self, kind: Kind, bucket: &str, key: &str) -> Head {
        Head {
            kind,
            version: Version::default(),
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            bytes: 0,
            etag: Etag { md5: [0; 16], parts: 0 },
            part: 0,
            upload: 0,
            files: Vec::new(),
            blocks: Box::default(),
        }
    }

    /// Puts needles into the log as one record.
    pub(crate) fn append(&self, needles: &[u8], data: &[u8], room: Room) -> Result<Ticket> {
        self.check_addresses(room)?;
        Ok(self.log.append(&[needles, data], room)?)
    }

    /// Appends a record like [`Self::append`], or returns `None` if this would block.
    pub(crate) fn try_append(
        &self,
        needles: &[u8],
        data: &[u8],
        room: Room,
    ) -> Result<Option<Ticket>> {
        self.check_addresses(room)?;
        Ok(self.log.try_append(&[needles, data], room)?)
    }

    fn check_addresses(&self, room: Room) -> Result<()> {
        if room == Room::Ordinary && self.index.read().addresses.is_nearly_full() {
            let what = "the volumes take all of the 8 TiB that a store can have".to_owned();
            return Err(Error::Invalid { what });
        }
        Ok(())
    }

    /// Notes that a file of the index is damaged, if that is the error, so that it is rebuilt when
    /// the store is opened. Returns the error with this advice.
    pub(crate) fn note_index_damage(&self, error: Error) -> Error {
        let Error::Damaged { file, offset, what } = error else { return error };
        self.index_files.discard_catalog();
        let what = format!("{what}: close and open the store to rebuild its index");
        self.damage.add(Damage::of_file(file.clone(), offset, what.clone()));
        Error::Damaged { file, offset, what }
    }

    /// Removes the files of big objects to which nothing refers any more.
    pub(crate) fn remove_files(&self, freed: &[u128]) {
        for id in freed {
            self.objects.remove(*id);
        }
    }

    /// The volumes nothing is appended to any more, oldest first; the index has taken in all that
    /// is in them. The caller holds [`Upkeep`], so that no compaction appends meanwhile.
    pub(crate) fn sealed_volumes(&self) -> Vec<SegmentInfo> {
        let mut volumes = self.log.segments();
        if let Some(current) = volumes.pop() {
            self.writers.wait_until_settled_before(current.number);
        }
        volumes
    }

    /// The nonces of all volumes.
    pub(crate) fn volume_nonces(&self) -> HashMap<u32, u64> {
        self.log.segments().iter().map(|segment| (segment.number, segment.nonce)).collect()
    }

    /// Returns the number of the oldest volume that has a file, be it one that cannot be opened,
    /// or only an index, or that is listed and missing: it may be brought back.
    pub(crate) fn oldest_volume(&self) -> Result<Option<u32>> {
        let number = |name: &String| names::parse_volume(name).or_else(|| names::parse_index(name));
        let found = self.volumes.list("")?.iter().filter_map(number).min();
        let listed =
            self.manifest.as_ref().and_then(|manifest| manifest.numbers().first().copied());
        Ok(found.into_iter().chain(listed).min())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use crate::{Attributes, Options, Precondition, Store};

    /// Between its sync and the index a needle is known to nobody: compaction, which asks the
    /// index, would take it for dead and remove its volume.
    #[test]
    fn whoever_appends_stays_inside_until_the_index_has_taken_it_in() {
        let dir = tempfile::tempdir().unwrap();
        let options =
            Options { volume_bytes: 4 << 20, big_object_bytes: 64 << 10, ..Options::default() };
        let (store, _) = Store::open(dir.path(), options).unwrap();
        store.create_bucket("bucket").unwrap();
        let none = Attributes::new();
        let put = |key: &str| {
            drop(store.put("bucket", key, b"", &none, &Precondition::None).unwrap());
        };
        put("deleted");
        let upload = store.start_upload("bucket", "aborted", &none).unwrap();
        let copy = || {
            let from_to = (("bucket", "deleted"), ("bucket", "copy"));
            drop(store.copy(from_to.0, from_to.1, None, &Precondition::None).unwrap());
        };
        let writers: [&(dyn Fn() + Sync); 5] = [
            &|| put("key"),
            &copy,
            &|| assert!(store.delete("bucket", "deleted").unwrap()),
            &|| drop(store.start_upload("bucket", "started", &none).unwrap()),
            &|| store.abort_upload("bucket", "aborted", &upload).unwrap(),
        ];
        for (number, writer) in writers.iter().enumerate() {
            let synced = store.stats().log_batches;
            thread::scope(|scope| {
                // Nothing gets into the index.
                let index = store.inner.index.read();
                let writing = scope.spawn(writer);
                while store.inner.log.stats().batches == synced {
                    thread::yield_now();
                }
                assert!(store.inner.writers.is_any_active(), "writer {number}");
                drop(index);
                writing.join().unwrap();
            });
            assert!(!store.inner.writers.is_any_active(), "writer {number} left");
        }
    }
}
