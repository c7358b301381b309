//! The store: its life, its buckets, its upkeep.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use haul_append_log::{Position, Room};
use haul_disk::{DirLock, Disk, Locked, OsDisk};
use parking_lot::{Mutex, RwLock};

use crate::background::Background;
use crate::clock::Clock;
use crate::compact::{ASKED_DEAD_PERCENT_MIN, Compacted};
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::inner::Inner;
use crate::keys::check_bucket;
use crate::locks::KeyLocks;
use crate::object::{Attributes, BucketInfo};
use crate::objects::Objects;
use crate::options::Options;
use crate::recover::{Recovered, is_new, recover};
use crate::upkeep::Upkeep;

/// A store of objects in buckets, in a directory of its own.
///
/// All calls block, and may be made from several threads at once.
#[derive(Debug)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    background: Background,
}

impl Store {
    /// Opens the store in `dir`, or makes one where there is nothing yet.
    ///
    /// # Errors
    /// [`Error::Locked`] when another process has it open, [`Error::NotAStore`] when the
    /// directory holds something else, and the kernel's refusals.
    ///
    /// # Durability
    /// Everything the store shows is on the medium.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, Recovered)> {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open_or_create(dir)?);
        // A directory that holds something else is refused before a lock is left in it.
        is_new(&*disk)?;
        match DirLock::take(dir, &options.holder)? {
            Locked::Ours(lock) => Self::open_locked(disk, options, Some(lock)),
            Locked::HeldBy(holder) => Err(Error::Locked { dir: dir.to_path_buf(), holder }),
        }
    }

    /// Opens the store in the root of any disk, such as a simulated one. It is the caller's to
    /// see that nobody else has it open.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<(Self, Recovered)> {
        Self::open_locked(disk, options, None)
    }

    fn open_locked(
        disk: Arc<dyn Disk>,
        options: Options,
        lock: Option<DirLock>,
    ) -> Result<(Self, Recovered)> {
        options.check()?;
        let opened = recover(&disk, &options)?;
        let segments = opened.log.segments();
        let current = segments.last().map_or(0, |segment| segment.number);
        let inner = Arc::new(Inner {
            dir: disk.root().to_path_buf(),
            options,
            volumes: opened.volumes,
            objects: Arc::new(Objects::new(opened.objects)),
            log: opened.log,
            clock: Clock::after(opened.index.newest),
            index: RwLock::new(opened.index),
            keys: KeyLocks::new(),
            gate: RwLock::new(()),
            counters: Counters::default(),
            upkeep: Mutex::new(Upkeep { damaged: opened.damaged_volumes, ..Upkeep::default() }),
            current_volume: AtomicU32::new(current),
            _lock: lock,
        });
        let background = Background::start(&inner)?;
        Ok((Self { inner, background }, opened.recovered))
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// Creates a bucket.
    ///
    /// # Errors
    /// [`Error::InvalidBucketName`], [`Error::BucketExists`].
    ///
    /// # Durability
    /// It survives a power cut when this returns.
    pub fn create_bucket(&self, bucket: &str) -> Result<()> {
        check_bucket(bucket)?;
        let _alone = self.inner.gate.write();
        let _turn = self.inner.keys.lock(bucket, "");
        if self.inner.index.read().buckets.contains_key(bucket) {
            return Err(Error::BucketExists { bucket: bucket.to_owned() });
        }
        self.change_bucket(Kind::BucketCreated, bucket)
    }

    /// Deletes a bucket that has no objects and no uploads.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::BucketNotEmpty`].
    ///
    /// # Durability
    /// It is gone for good when this returns.
    pub fn delete_bucket(&self, bucket: &str) -> Result<()> {
        let _alone = self.inner.gate.write();
        // No object has an empty key: compaction, which does not pass the gate, holds this one
        // while it moves the bucket's needle, and must not bring it back behind this change.
        let _turn = self.inner.keys.lock(bucket, "");
        let index = self.inner.index.read();
        let missing = || Error::NoSuchBucket { bucket: bucket.to_owned() };
        let objects = index.buckets.get(bucket).ok_or_else(missing)?.objects.len();
        let uploading = index.uploads.values().any(|upload| upload.bucket == bucket);
        if objects > 0 || uploading {
            return Err(Error::BucketNotEmpty { bucket: bucket.to_owned() });
        }
        drop(index);
        self.change_bucket(Kind::BucketDeleted, bucket)
    }

    fn change_bucket(&self, kind: Kind, bucket: &str) -> Result<()> {
        let mut head = self.inner.head(kind, bucket, "");
        head.version = self.inner.clock.next();
        let room = if kind == Kind::BucketDeleted { Room::Reserve } else { Room::Ordinary };
        let at = self.inner.append(&head.encode(&Attributes::new()), &[], room)?.wait()?;
        self.take_in(vec![head], at);
        Ok(())
    }

    /// A bucket, and exactly what is in it.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`].
    pub fn bucket(&self, bucket: &str) -> Result<BucketInfo> {
        let index = self.inner.index.read();
        let found = index.buckets.get(bucket).map(|found| found.info(bucket));
        found.ok_or_else(|| Error::NoSuchBucket { bucket: bucket.to_owned() })
    }

    /// All buckets, sorted by name.
    #[must_use]
    pub fn buckets(&self) -> Vec<BucketInfo> {
        let index = self.inner.index.read();
        index.buckets.iter().map(|(name, bucket)| bucket.info(name)).collect()
    }

    /// Lets the index take in the needles of a record that is on the medium, in one step, and
    /// sees to what follows from it.
    pub(crate) fn take_in(&self, needles: Vec<Head>, at: Position) {
        let inner = &*self.inner;
        let mut index = inner.index.write();
        let freed: Vec<u128> =
            needles.into_iter().flat_map(|needle| index.apply(needle, at)).collect();
        let is_worn = index.volumes.take_worn();
        drop(index);
        inner.remove_files(&freed);
        let now = at.lsn.segment();
        let before = inner.current_volume.fetch_max(now, Ordering::Relaxed);
        if is_worn || before < now {
            self.background.wake();
        }
    }

    /// Compacts every volume of which a tenth or more is dead, but the one being written and those
    /// with damage.
    ///
    /// # Errors
    /// [`crate::Error::Full`] when what lives in the next volume finds no space; volumes with
    /// nothing living in them are removed before that. The kernel's refusals; a volume that
    /// cannot be read is left out when this is called again.
    ///
    /// # Durability
    /// What was moved is on the medium in its new place before its old one is removed.
    pub fn compact(&self) -> Result<Compacted> {
        self.inner.compact(ASKED_DEAD_PERCENT_MIN, &AtomicBool::new(false))
    }

    /// Waits for what is in flight and closes the store. Dropping does the same and keeps
    /// failures to itself.
    ///
    /// # Errors
    /// When a write or sync failed, now or earlier.
    pub fn close(mut self) -> Result<()> {
        self.background.stop();
        let objects = Arc::clone(&self.inner.objects);
        let latched = self.inner.log.is_latched();
        // Readers may still hold on to `inner`; the log closes with the last of them.
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => inner.log.close()?,
            Err(_shared) if latched => {
                let what = "the log stopped after a failed sync".to_owned();
                return Err(Error::Invalid { what });
            }
            Err(_shared) => {}
        }
        objects.check()
    }
}
