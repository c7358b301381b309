//! What the store, its readers and its background thread share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use haul_append_log::{Log, Room, SegmentInfo, Ticket};
use haul_disk::{DirLock, Disk};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::clock::{Clock, Version};
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::index::Index;
use crate::locks::KeyLocks;
use crate::names;
use crate::object::Etag;
use crate::objects::Objects;
use crate::options::Options;
use crate::upkeep::Upkeep;

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
    pub(crate) index: RwLock<Index>,
    /// Held while a key is written, from the look at what is there to the new entry; for a bucket
    /// itself, that of the empty key.
    pub(crate) keys: KeyLocks,
    /// Held for reading by every writer of objects, until the index has taken in what it wrote;
    /// for writing by the creation and deletion of buckets: no object can slip into a bucket that
    /// is being deleted.
    pub(crate) gate: RwLock<()>,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) upkeep: Mutex<Upkeep>,
    /// The volume last written to, to notice when one was sealed.
    pub(crate) current_volume: AtomicU32,
    pub(crate) _lock: Option<DirLock>,
}

impl Inner {
    /// A writer of objects' leave to begin: the bucket is there, and stays until this is dropped.
    pub(crate) fn enter(&self, bucket: &str) -> Result<RwLockReadGuard<'_, ()>> {
        let entered = self.gate.read();
        if self.index.read().buckets.contains_key(bucket) {
            Ok(entered)
        } else {
            Err(Error::NoSuchBucket { bucket: bucket.to_owned() })
        }
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
        }
    }

    /// Puts needles into the log as one record.
    pub(crate) fn append(&self, needles: &[u8], data: &[u8], room: Room) -> Result<Ticket<'_>> {
        Ok(self.log.append(&[needles, data], room)?)
    }

    /// Waits until the index has taken in all that was appended before.
    pub(crate) fn wait_for_writers(&self) {
        // Whoever appends has entered, and leaves only then.
        drop(self.gate.write());
    }

    /// Removes the files of big objects nobody refers to any more.
    pub(crate) fn remove_files(&self, freed: &[u128]) {
        for id in freed {
            self.objects.remove(*id);
        }
    }

    /// The volumes nothing is appended to any more, oldest first; the index has taken in all that
    /// is in them. The caller holds [`Upkeep`], so that no compaction appends meanwhile.
    pub(crate) fn sealed_volumes(&self) -> Vec<SegmentInfo> {
        let mut volumes = self.log.segments();
        volumes.pop();
        self.wait_for_writers();
        volumes
    }

    /// The number of the oldest volume that has a file, be it one that cannot be opened.
    pub(crate) fn oldest_volume(&self) -> Result<Option<u32>> {
        Ok(self.volumes.list("")?.iter().filter_map(|name| names::parse_volume(name)).min())
    }
}
