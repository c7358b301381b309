//! The store: opening and closing, buckets, and compaction on request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use haul_append_log::{Position, Room};
use haul_disk::{Disk, Locked, OsDisk};
use haul_md5_lanes::Md5Queue;
use haul_sync::{Mutex, Sharded, ShardedRwLock};

use crate::access::locked::LockedMemory;
use crate::access::pending_put::queue::PendingPuts;
use crate::access::pending_put::thread::CompletingThread;
use crate::access::writers::Writers;
use crate::background::Background;
use crate::big_files::directory::Objects;
use crate::checkpoint::due::CheckpointDue;
use crate::checkpoint::merge::MergeThread;
use crate::checkpoint::merge_signal::MergeSignal;
use crate::clock::Clock;
use crate::compaction::admission::Admission;
use crate::compaction::compact::CompactionReport;
use crate::compaction::upkeep::Upkeep;
use crate::error::{Error, Result};
use crate::format::Kind;
use crate::index::entry::Change;
use crate::index::uploads::of_bucket;
use crate::index::version_names::{locked_bucket, suspended_bucket, versions_bucket};
use crate::inner::Inner;
use crate::keys::check_bucket;
use crate::lifecycle::state::LifecycleState;
use crate::lifecycle::thread::LifecycleThread;
use crate::locks::KeyLocks;
use crate::object::{Attributes, BucketInfo};
use crate::options::Options;
use crate::recovery::found_damage::FoundDamage;
use crate::recovery::index_thread::IndexThread;
use crate::recovery::marker;
use crate::recovery::recover::{RecoveryReport, recover};
use crate::settings::cache::SettingsCache;
use crate::settings::check::check_setting;
use crate::troubles::{Trouble, Troubles};
use crate::verification::scrub::Scrub;

/// A store of objects in buckets, in a directory of its own.
///
/// All calls block except [`Store::start_put`], and may be made from several threads concurrently.
#[derive(Debug)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    lifecycle: LifecycleThread,
    // Stopped before the threads that wait for writers.
    completing: CompletingThread,
    background: Background,
    merges: MergeThread,
    index_thread: IndexThread,
    scrub: Scrub,
}

impl Store {
    /// Opens the store in `dir`, or creates one if the directory is empty or does not exist.
    ///
    /// # Errors
    /// [`Error::InUse`] if it is already open in this or another process, [`Error::NotAStore`] if
    /// the directory contains other files, and failed system calls.
    ///
    /// # Durability
    /// All data that the store returns is on stable storage.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, RecoveryReport)> {
        // Invalid options must not leave a directory behind.
        options.check()?;
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open_or_create(dir)?);
        // A directory with other files is refused before a lock file is created in it.
        marker::read(&*disk)?;
        Self::open_on(disk, options)
    }

    /// Opens the store in the root of any disk, such as a simulated one.
    ///
    /// # Errors
    /// Like [`Store::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<(Self, RecoveryReport)> {
        options.check()?;
        let lock = match disk.lock("", &options.holder)? {
            Locked::Acquired(lock) => lock,
            Locked::HeldBy(holder) => {
                return Err(Error::InUse { dir: disk.root().to_path_buf(), holder });
            }
        };
        let opened = recover(&disk, &options)?;
        let segments = opened.log.segments();
        let current = segments.last().map_or(0, |segment| segment.number);
        let checkpoint_due = CheckpointDue::new(&options);
        let lifecycle_day = options.lifecycle_day;
        let inner = Arc::new(Inner {
            dir: disk.root().to_path_buf(),
            admission: Arc::new(Admission::new(options.volume_bytes)),
            clock: Clock::after(opened.index.newest, options.time.clone()),
            volumes: opened.volumes,
            objects: Arc::new(Objects::new(opened.objects, options.pinned_bytes_max)),
            locked: LockedMemory::new(options.locked_bytes_max),
            options,
            has_versions: AtomicBool::new(opened.has_versions),
            log: opened.log,
            index: ShardedRwLock::new(opened.index),
            index_files: opened.index_files,
            checkpoint_due,
            merges: MergeSignal::default(),
            keys: KeyLocks::new(),
            gate: Arc::default(),
            counters: Sharded::default(),
            lifecycle: LifecycleState::new(lifecycle_day),
            settings: SettingsCache::default(),
            upkeep: Mutex::new(Upkeep {
                damaged: opened.damaged_volumes,
                indexed: opened.indexed_volumes,
                ..Upkeep::default()
            }),
            indexes: opened.indexes,
            manifest: opened.manifest,
            damage: FoundDamage::new(&opened.recovered),
            troubles: Troubles::default(),
            buffers: Arc::default(),
            writers: Arc::new(Writers::new(current)),
            pending_puts: PendingPuts::default(),
            md5: Md5Queue::default(),
            _lock: lock,
        });
        inner.measure_space()?;
        if opened.is_checkpoint_due && !inner.options.is_read_only {
            // An error is harmless: the next opening takes as long as this one.
            drop(inner.checkpoint());
        }
        let merges = MergeThread::start(&inner)?;
        let completing = CompletingThread::start(&inner)?;
        let background = Background::start(&inner)?;
        let index_thread = IndexThread::start(&inner)?;
        let scrub = Scrub::start(&inner)?;
        let lifecycle = LifecycleThread::start(&inner)?;
        let store = Self { inner, lifecycle, completing, background, merges, index_thread, scrub };
        Ok((store, opened.recovered))
    }

    /// Returns the directory of the store.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// Returns the work that fails for now, because the disk is full or refuses files. It is tried
    /// again with the next change, and in the background.
    #[must_use]
    pub fn troubles(&self) -> Vec<Trouble> {
        self.inner.troubles.all()
    }

    /// Creates a bucket.
    ///
    /// # Errors
    /// [`Error::InvalidBucketName`], [`Error::BucketExists`], [`Error::NotReplicated`].
    ///
    /// # Durability
    /// The bucket survives a power cut when this returns.
    pub fn create_bucket(&self, bucket: &str) -> Result<()> {
        self.create_bucket_with(bucket, &Attributes::new())
    }

    /// Creates an empty bucket with settings.
    ///
    /// # Errors
    /// Like [`Store::create_bucket`]; [`Error::Invalid`] like [`Store::set_bucket_setting`].
    ///
    /// # Durability
    /// The bucket and its settings survive a power cut when this returns.
    pub fn create_bucket_with(&self, bucket: &str, settings: &Attributes) -> Result<()> {
        check_bucket(bucket)?;
        settings.iter().try_for_each(|(name, value)| check_setting(name, value))?;
        self.inner.acknowledge(self.inner.with_space(|| self.try_create_bucket(bucket, settings)))
    }

    fn try_create_bucket(&self, bucket: &str, settings: &Attributes) -> Result<()> {
        let _exclusive = self.inner.gate.write();
        let _lock = self.inner.keys.lock(bucket, "");
        if self.inner.index.read().buckets.contains_key(bucket) {
            return Err(Error::BucketExists { bucket: bucket.to_owned() });
        }
        // Registers a writer: the index does not know this needle until it is applied.
        let _writer = self.inner.writers.enter();
        let mut head = self.inner.head(Kind::BucketCreated, bucket, "");
        head.version = self.inner.clock.next();
        let at = self.inner.append(&head.encode(settings), &[], Room::Ordinary)?.wait()?;
        self.apply(vec![head.into()], at);
        self.forget(bucket);
        Ok(())
    }

    /// Deletes a bucket without objects and uploads.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::BucketNotEmpty`], [`Error::NotReplicated`];
    /// [`Error::Damaged`] while damage may hide objects of the bucket.
    ///
    /// # Durability
    /// The deletion survives a power cut when this returns.
    pub fn delete_bucket(&self, bucket: &str) -> Result<()> {
        self.inner.acknowledge(self.inner.with_space(|| self.try_delete_bucket(bucket)))
    }

    fn try_delete_bucket(&self, bucket: &str) -> Result<()> {
        let _exclusive = self.inner.gate.write();
        // The empty key is the lock of the bucket itself: compaction, which does not take the gate,
        // holds it while it moves the needle of the bucket, and must not append that after this
        // change.
        let _lock = self.inner.keys.lock(bucket, "");
        let index = self.inner.index.read();
        let missing = || Error::NoSuchBucket { bucket: bucket.to_owned() };
        let found = index.buckets.get(bucket).filter(|_| index.has_bucket(bucket));
        // The bucket is certainly empty only if no keys are hidden.
        let doubt = if found.is_some() { index.doubt_all() } else { index.doubt_bucket(bucket) };
        if let Some(error) = doubt {
            return Err(error);
        }
        let objects = found.ok_or_else(missing)?.objects;
        let internal = [versions_bucket(bucket), suspended_bucket(bucket), locked_bucket(bucket)];
        let found = |name: &&String| index.buckets.contains_key(name.as_str());
        let internal: Vec<String> = internal.iter().filter(found).cloned().collect();
        let older = |name: &String| index.buckets.get(name.as_str()).map_or(0, |it| it.objects);
        let objects = objects + internal.iter().map(older).sum::<u64>();
        let uploading = of_bucket(&index.uploads, bucket).next().is_some();
        if objects > 0 || uploading {
            return Err(Error::BucketNotEmpty { bucket: bucket.to_owned() });
        }
        drop(index);
        let names = std::iter::once(bucket).chain(internal.iter().map(String::as_str));
        let _writer = self.inner.writers.enter();
        let change = |bucket| {
            let mut head = self.inner.head(Kind::BucketDeleted, bucket, "");
            head.version = self.inner.clock.next();
            Change::from(head)
        };
        self.inner.commit_heads(names.map(change).collect(), Room::Reserve)?;
        self.forget(bucket);
        Ok(())
    }

    /// Removes what is cached of a bucket that is created or deleted.
    pub(crate) fn forget(&self, bucket: &str) {
        self.inner.lifecycle.forget(bucket);
        self.inner.settings.forget(bucket);
    }

    /// Returns the description of a bucket.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if damage may hide its creation or deletion.
    pub fn bucket(&self, bucket: &str) -> Result<BucketInfo> {
        let index = self.inner.index.read();
        if let Some(error) = index.doubt_bucket(bucket) {
            return Err(error);
        }
        index.check_bucket(bucket)?;
        let found = index.buckets.get(bucket).map(|found| found.info(bucket));
        found.ok_or_else(|| Error::NoSuchBucket { bucket: bucket.to_owned() })
    }

    /// Returns all buckets, sorted by name.
    ///
    /// # Errors
    /// [`Error::Damaged`] while damage may hide the creation or deletion of a bucket.
    pub fn buckets(&self) -> Result<Vec<BucketInfo>> {
        let index = self.inner.index.read();
        match index.doubt_all() {
            Some(error) => Err(error),
            None => Ok(index.named_buckets().map(|(name, bucket)| bucket.info(name)).collect()),
        }
    }

    /// Applies the needles of a durable record; see [`Inner::apply`].
    pub(crate) fn apply(&self, changes: Vec<Change>, at: Position) {
        self.inner.apply(changes, at);
    }

    /// Compacts every volume of which at least a tenth is dead; where space is short, every volume
    /// with dead bytes. The volume being written is ended first, if at least a tenth of it, and a
    /// MiB, is dead. Skips damaged volumes.
    ///
    /// # Errors
    /// [`crate::Error::Full`] if there is no space for the live needles of the next volume; volumes
    /// without live needles are removed before that. [`Error::ReadOnly`]. Failed system calls; a
    /// later call skips an unreadable volume.
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
    /// Like [`Store::compact`].
    ///
    /// # Durability
    /// Like [`Store::compact`].
    pub fn compact_with_progress(
        &self,
        progress: &mut dyn FnMut(&CompactionReport),
    ) -> Result<CompactionReport> {
        self.inner.check_writable()?;
        self.inner.compact_all(&AtomicBool::new(false), progress)
    }

    /// Completes all puts that [`Store::start_put`] started, and closes the store. Dropping the
    /// store does the same but ignores failures.
    ///
    /// # Errors
    /// If a write or sync failed, now or earlier.
    pub fn close(mut self) -> Result<()> {
        self.lifecycle.stop();
        self.completing.stop();
        self.scrub.stop();
        self.background.stop();
        self.merges.stop();
        self.index_thread.stop();
        let objects = Arc::clone(&self.inner.objects);
        let latched = self.inner.log.is_latched();
        if !latched {
            self.inner.index.read().check_totals();
        }
        // Readers may still reference `inner`; the last of them closes the log.
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => inner.log.close()?,
            Err(_shared) if latched => {
                return Err(Error::Stopped { what: "a sync of the log failed" });
            }
            Err(_shared) => {}
        }
        objects.check()
    }
}
