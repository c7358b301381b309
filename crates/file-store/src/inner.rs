//! The state that the store, its readers and its threads share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use haul_append_log::{Log, Room, SegmentInfo, Ticket};
use haul_disk::{Disk, Lock};
use haul_md5_lanes::Md5Queue;
use haul_sync::{ArcRwLockReadGuard, Mutex, RwLock, Sharded, ShardedRwLock};

use crate::big_files::directory::Objects;
use crate::catalog::due::CheckpointDue;
use crate::catalog::files::IndexFiles;
use crate::catalog::merge_signal::MergeSignal;
use crate::clock::{Clock, Version};
use crate::counters::Counters;
use crate::damage::found::FoundDamage;
use crate::damage::place::Damage;
use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::index::Index;
use crate::lifecycle::state::LifecycleState;
use crate::locks::KeyLocks;
use crate::maintenance::admission::Admission;
use crate::maintenance::upkeep::Upkeep;
use crate::manifest::ManifestFile;
use crate::memory::buffers::Buffers;
use crate::memory::locked::LockedMemory;
use crate::names;
use crate::object::Etag;
use crate::options::Options;
use crate::pending_put::queue::PendingPuts;
use crate::settings::cache::SettingsCache;
use crate::troubles::{Troubles, Work};
use crate::volume_index::IndexWriter;
use crate::writers::{BucketWriter, Writers};

/// The state of an open store.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// `true` if versioning was enabled or suspended in a bucket, now or earlier.
    pub(crate) has_versions: AtomicBool,
    /// The volumes and their indexes.
    pub(crate) volumes: Arc<dyn Disk>,
    /// The files of big objects.
    pub(crate) objects: Arc<Objects>,
    pub(crate) log: Log,
    /// The thread that writes the indexes of volumes.
    pub(crate) indexes: IndexWriter,
    /// The manifest; `None` if both copies were lost and there was no space for new ones.
    pub(crate) manifest: Option<ManifestFile>,
    pub(crate) damage: FoundDamage,
    pub(crate) troubles: Troubles,
    /// Reusable buffers of long objects.
    pub(crate) buffers: Arc<Buffers>,
    /// The memory for locked objects of volumes.
    pub(crate) locked: LockedMemory,
    pub(crate) index: ShardedRwLock<Index>,
    /// The files of the index.
    pub(crate) index_files: Arc<IndexFiles>,
    pub(crate) checkpoint_due: CheckpointDue,
    pub(crate) merges: MergeSignal,
    /// The locks of keys. A writer holds the lock of its key from the lookup of the current object
    /// to the application of the new needle. The empty key is the lock of the bucket itself.
    pub(crate) keys: KeyLocks,
    /// Read-locked by writers of objects, write-locked by the creation and deletion of buckets, so
    /// that no object can be stored in a bucket that is being deleted.
    pub(crate) gate: Arc<RwLock<()>>,
    pub(crate) clock: Clock,
    pub(crate) counters: Sharded<Counters>,
    pub(crate) lifecycle: LifecycleState,
    pub(crate) settings: SettingsCache,
    pub(crate) upkeep: Mutex<Upkeep>,
    /// The writers whose needles may not be in the index yet.
    pub(crate) writers: Arc<Writers>,
    /// Puts that the completing thread applies to the index.
    pub(crate) pending_puts: PendingPuts,
    /// Delays writers while compaction falls behind.
    pub(crate) admission: Arc<Admission>,
    /// The queue in which concurrent puts are hashed together.
    pub(crate) md5: Md5Queue,
    pub(crate) _lock: Lock,
}

impl Inner {
    /// Registers a writer in a bucket. The bucket exists as long as the result does.
    pub(crate) fn enter(&self, bucket: &str) -> Result<BucketWriter> {
        self.enter_with(self.gate.read_arc(), bucket)
    }

    /// Registers a writer like [`Self::enter`]; `None` if that would wait for a lock.
    pub(crate) fn try_enter(&self, bucket: &str) -> Result<Option<BucketWriter>> {
        let gate = self.gate.try_read_arc();
        gate.map(|gate| self.enter_with(gate, bucket)).transpose()
    }

    fn enter_with(&self, gate: ArcRwLockReadGuard<()>, bucket: &str) -> Result<BucketWriter> {
        let index = self.index.read();
        index.check_bucket(bucket)?;
        Ok(BucketWriter { _bucket: gate, _writer: self.writers.enter() })
    }

    /// Returns the error for a request to a bucket that is not in the index.
    pub(crate) fn missing_bucket(&self, bucket: &str) -> Error {
        self.index.read().missing_bucket(bucket)
    }

    /// Creates a head with these names and no other fields.
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
            is_versioned: false,
            files: Vec::new(),
            blocks: Box::default(),
        }
    }

    /// Appends needles to the log as one record.
    pub(crate) fn append(&self, needles: &[u8], data: &[u8], room: Room) -> Result<Ticket> {
        self.check_append(room)?;
        let appended = self.log.append(&[needles, data], room).map_err(Error::from);
        self.note_refusal(&appended);
        appended
    }

    /// Appends a record like [`Self::append`], or returns `None` if this would block.
    pub(crate) fn try_append(
        &self,
        needles: &[u8],
        data: &[u8],
        room: Room,
    ) -> Result<Option<Ticket>> {
        self.check_append(room)?;
        let appended = self.log.try_append(&[needles, data], room).map_err(Error::from);
        self.note_refusal(&appended);
        appended
    }

    /// Records that the log refuses records. On a full disk, it may accept the record once
    /// compaction has freed space.
    fn note_refusal<T>(&self, appended: &Result<T>) {
        if matches!(appended, Err(error) if !matches!(error, Error::Full { .. })) {
            self.troubles.note(Work::Changes, appended);
        }
    }

    /// Refuses changes of a store that is open for reading only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.is_read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    fn check_append(&self, room: Room) -> Result<()> {
        self.check_writable()?;
        if room == Room::Ordinary && self.index.read().addresses.is_nearly_full() {
            let what =
                "the volumes have reached the maximum total size of a store, 8 TiB".to_owned();
            return Err(Error::Invalid { what });
        }
        Ok(())
    }

    /// Records damage to a file of the index, so that the next opening of the store rebuilds the
    /// index. Returns the error with the advice to reopen the store.
    pub(crate) fn note_index_damage(&self, error: Error) -> Error {
        let Error::Damaged { file, offset, what } = error else { return error };
        self.index_files.discard_catalog();
        let what = format!("{what}: close and reopen the store to rebuild its index");
        self.damage.add(Damage::of_file(file.clone(), offset, what.clone()));
        Error::Damaged { file, offset, what }
    }

    /// Removes the files of big objects that are no longer referenced.
    pub(crate) fn remove_files(&self, freed: &[u128]) {
        for id in freed {
            self.objects.remove(*id);
        }
    }

    /// Returns the sealed volumes, from oldest to newest, whose needles the index has completely.
    /// The caller holds the lock of [`Upkeep`], so that compaction appends nothing meanwhile.
    pub(crate) fn sealed_volumes(&self) -> Vec<SegmentInfo> {
        let mut volumes = self.log.segments();
        if let Some(current) = volumes.pop() {
            self.writers.wait_until_settled_before(current.number);
        }
        volumes
    }

    /// Returns the nonces of all volumes.
    pub(crate) fn volume_nonces(&self) -> HashMap<u32, u64> {
        self.log.segments().iter().map(|segment| (segment.number, segment.nonce)).collect()
    }

    /// Returns the number of the oldest volume that exists in any form: a file that may be
    /// unreadable, only an index, or only an entry of the manifest, because a missing volume may be
    /// restored.
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

    /// Between its sync and its application, a needle is in no structure: compaction, which
    /// consults the index, would consider it dead and remove its volume.
    #[test]
    fn writer_is_active_until_its_needles_are_in_the_index() {
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
                // The lock prevents the application of needles to the index.
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
