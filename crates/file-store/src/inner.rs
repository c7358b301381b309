//! The state that the store, its readers and its threads share.

use std::path::PathBuf;
use std::sync::Arc;

use haul_append_log::{Position, SegmentInfo};
use haul_disk::Lock;
use haul_md5_lanes::Md5Queue;
use haul_sync::Sharded;

use crate::big_files::directory::Objects;
use crate::counters::Counters;
use crate::damage::report::Damage;
use crate::error::{Error, Result};
use crate::keyspace::Keyspace;
use crate::maintenance::Maintenance;
use crate::object::ObjectLocation;
use crate::options::Options;
use crate::volumes::Volumes;

/// The state of an open store.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// The volumes: the log, their indexes, the manifest and the damage found.
    pub(crate) volumes: Volumes,
    /// The index of all needles, and the locks, writers and quotas that guard changes to it.
    pub(crate) keyspace: Keyspace,
    /// The state of background maintenance: admission of writers, compaction, lifecycle and
    /// failures.
    pub(crate) maintenance: Maintenance,
    /// Big objects' files.
    pub(crate) objects: Arc<Objects>,
    pub(crate) counters: Sharded<Counters>,
    /// The queue in which concurrent puts are hashed together.
    pub(crate) md5: Md5Queue,
    pub(crate) _lock: Lock,
}

impl Inner {
    /// Returns the location of an object at a position.
    pub(crate) fn location(&self, at: Position) -> ObjectLocation {
        ObjectLocation::from(at).in_member(self.options.member)
    }

    /// Rejects changes to a store that is open for reading only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.is_read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Records damage to an index file, so that the next opening of the store rebuilds the index.
    /// Returns an error that advises to reopen the store.
    pub(crate) fn note_index_damage(&self, error: Error) -> Error {
        let Error::Damaged { file, offset, what } = error else { return error };
        self.keyspace.index_files.discard_catalog();
        let what = format!("{what}: close and reopen the store to rebuild its index");
        self.volumes.damage.add(Damage::in_file(file.clone(), offset, what.clone()));
        Error::Damaged { file, offset, what }
    }

    /// Removes big objects' files that are no longer referenced.
    pub(crate) fn remove_files(&self, freed: &[u128]) {
        for id in freed {
            self.objects.remove(*id);
        }
    }

    /// Returns the sealed volumes whose needles are all in the index, from oldest to newest. The
    /// caller holds the [`VolumeStates`] lock, so that compaction appends nothing meanwhile.
    pub(crate) fn sealed_volumes(&self) -> Vec<SegmentInfo> {
        let mut volumes = self.volumes.log.segments();
        if let Some(current) = volumes.pop() {
            self.keyspace.writers.wait_until_settled_before(current.number);
        }
        volumes
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
                // The lock keeps needles from being applied to the index.
                let index = store.inner.keyspace.index.read();
                let writing = scope.spawn(writer);
                while store.inner.volumes.log.stats().batches == synced {
                    thread::yield_now();
                }
                assert!(store.inner.keyspace.writers.is_any_active(), "writer {number}");
                drop(index);
                writing.join().unwrap();
            });
            assert!(!store.inner.keyspace.writers.is_any_active(), "writer {number} left");
        }
    }
}
