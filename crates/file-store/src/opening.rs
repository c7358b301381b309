//! Opens a store: reads its state from the disk, and starts its threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use haul_disk::{Disk, Locked, OsDisk, scheduled};
use haul_md5_lanes::Md5Queue;
use haul_sync::{Mutex, Sharded, ShardedRwLock};

use crate::access::completing::CompletingThread;
use crate::big_files::directory::Objects;
use crate::buckets::quota;
use crate::catalog::due::CheckpointDue;
use crate::catalog::merge_signal::MergeSignal;
use crate::checkpoint::index_thread::IndexThread;
use crate::checkpoint::merge::MergeThread;
use crate::checkpoint::write::checkpoint;
use crate::clock::Clock;
use crate::compaction::thread::Background;
use crate::damage::found::FoundDamage;
use crate::error::{Error, Result};
use crate::expiration::thread::LifecycleThread;
use crate::failures::OngoingFailures;
use crate::inner::Inner;
use crate::keyspace::Keyspace;
use crate::lifecycle::state::LifecycleState;
use crate::locks::KeyLocks;
use crate::maintenance::Maintenance;
use crate::maintenance::admission::Admission;
use crate::maintenance::volume_states::VolumeStates;
use crate::memory::locked::LockedMemory;
use crate::options::Options;
use crate::pending_put::queue::PendingPuts;
use crate::quota_group::SharedQuotas;
use crate::recovery::marker;
use crate::recovery::recover::{RecoveryReport, recover};
use crate::settings::cache::SettingsCache;
use crate::store::Store;
use crate::verification::scrub::Scrub;
use crate::volumes::Volumes;
use crate::worker::Worker;
use crate::writers::Writers;

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
    /// Fails like [`Store::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<(Self, RecoveryReport)> {
        options.check()?;
        let disk = scheduled(disk, options.disk_kind);
        let lock = match disk.lock("", &options.holder)? {
            Locked::Acquired(lock) => lock,
            Locked::HeldBy(holder) => {
                return Err(Error::InUse { dir: disk.root().to_path_buf(), holder });
            }
        };
        let opened = recover(&disk, &options)?;
        let index = Arc::new(ShardedRwLock::new(opened.index));
        let newest = index.read().newest;
        let own_quotas = || SharedQuotas::new(options.enforces_quotas);
        let shared_quotas = options.shared_quotas.clone().unwrap_or_else(own_quotas);
        shared_quotas.join(Arc::clone(&index) as _);
        let segments = opened.log.segments();
        let current = segments.last().map_or(0, |segment| segment.number);
        let failures = Arc::<OngoingFailures>::default();
        let inner = Arc::new(Inner {
            dir: disk.root().to_path_buf(),
            objects: Arc::new(Objects::new(
                opened.objects,
                options.pinned_bytes_max,
                Arc::clone(&failures),
            )),
            volumes: Volumes {
                disk: opened.volumes,
                log: opened.log,
                indexes: opened.indexes,
                manifest: opened.manifest,
                damage: FoundDamage::new(&opened.recovered.damage, &opened.recovered.hidden),
                buffers: Arc::default(),
                locked: LockedMemory::new(options.locked_bytes_max),
            },
            keyspace: Keyspace {
                clock: Clock::after(newest, options.time.clone()),
                index,
                index_files: opened.index_files,
                checkpoint_due: CheckpointDue::new(&options),
                merges: MergeSignal::default(),
                keys: KeyLocks::new(),
                gate: Arc::default(),
                writers: Arc::new(Writers::new(current)),
                pending_puts: PendingPuts::default(),
                settings: SettingsCache::default(),
                shared_quotas,
                has_versions: AtomicBool::new(opened.has_versions),
            },
            maintenance: Maintenance {
                admission: Arc::new(Admission::new(options.volume_bytes)),
                volume_states: Mutex::new(VolumeStates {
                    damaged: opened.damaged_volumes,
                    indexed: opened.indexed_volumes,
                    ..VolumeStates::default()
                }),
                lifecycle: LifecycleState::new(options.lifecycle_day),
                failures,
            },
            options,
            counters: Sharded::default(),
            md5: Md5Queue::default(),
            _lock: lock,
        });
        quota::load(&inner)?;
        inner.measure_space()?;
        if opened.is_checkpoint_due && !inner.options.is_read_only {
            // An error is harmless: the next opening takes as long as this one.
            drop(checkpoint(&inner));
        }
        let workers = start_workers(&inner)?;
        let store = Self { inner, workers };
        Ok((store, opened.recovered))
    }
}

/// Starts a store's threads. Returns them in the order in which they are stopped.
fn start_workers(inner: &Arc<Inner>) -> Result<Vec<Box<dyn Worker>>> {
    let merges = MergeThread::start(inner)?;
    let completing = CompletingThread::start(inner)?;
    let background = Background::start(inner)?;
    let index_thread = IndexThread::start(inner)?;
    let scrub = Scrub::start(inner)?;
    let lifecycle = LifecycleThread::start(inner)?;
    Ok(vec![
        Box::new(lifecycle),
        Box::new(completing),
        Box::new(scrub),
        Box::new(background),
        Box::new(merges),
        Box::new(index_thread),
    ])
}

#[cfg(test)]
mod tests {
    use haul_disk::DeviceKind;
    use haul_disk_sim::MemoryDisk;

    use super::*;

    #[test]
    fn only_a_rotational_disk_has_turns() {
        for (disk_kind, has_turns) in [
            (None, false),
            (Some(DeviceKind::SolidState), false),
            (Some(DeviceKind::Rotational), true),
        ] {
            let options = Options { disk_kind, ..Options::default() };
            let (store, _) = Store::open_on(Arc::new(MemoryDisk::default()), options).unwrap();
            assert_eq!(store.inner.volumes.disk.scheduler().is_some(), has_turns, "{disk_kind:?}");
        }
    }
}
