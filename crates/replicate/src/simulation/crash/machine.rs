//! A simulated machine, and the process that runs on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haul_disk::Disk;
use haul_disk_sim::{Device, MemoryDisk};
use haul_file_store::{Attributes, Options as StoreOptions, Precondition, Store};
use haul_testing::Random;

use crate::error::{Error, Result};
use crate::lease::Clock;
use crate::options::Options;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::ship::Shipper;
use crate::ship::merger::MergeJobs;
use crate::simulation::crash::cloud::{Cloud, Connection, Line};
use crate::simulation::crash::model::{BUCKET, Contents, Object, contents};
use crate::standby::{Takeover, finish_takeover};
use crate::store::StoreSource;
use crate::tier::TieredDisk;
use crate::tier::thread::{Mover, Shared};

/// The length in bytes at or above which an object has its own file.
pub(super) const BIG_BYTES: u64 = 1 << 20;

/// The owners' lease, if they have one. It is so long that no thread renews it.
pub(super) const LEASE: Duration = Duration::from_hours(1);

/// A clock that only the simulation advances.
#[derive(Debug, Default)]
pub(super) struct SlowClock(AtomicU64);

impl SlowClock {
    pub(super) fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap() + 1, Ordering::SeqCst);
    }
}

impl Clock for SlowClock {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// A machine, which is on.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) disk: MemoryDisk,
    pub(super) remote: Remote,
    cloud: Arc<Cloud>,
    line: Arc<Line>,
}

impl Machine {
    pub(super) fn new(cloud: &Arc<Cloud>, disk: MemoryDisk) -> Self {
        let line = Line::new(cloud, &disk);
        let remote = Remote::new(Arc::new(Connection(Arc::clone(&line))), "copy").unwrap();
        Self { disk, remote, cloud: Arc::clone(cloud), line }
    }

    pub(super) fn local(&self) -> Arc<dyn Disk> {
        Arc::new(self.disk.clone())
    }

    pub(super) fn is_off(&self) -> bool {
        self.disk.is_off()
    }

    /// Makes the power fail during some later disk change or some later request.
    pub(super) fn cut_power_later(&self, random: &mut Random) {
        let below = *random.pick(&[3, 10, 40, 150]);
        match random.below(3) {
            0 => self.line.cut_power_after(random.below(below)),
            _ => self.disk.cut_power_after(random.below(below)),
        }
    }

    /// Cancels a power cut that has not happened yet. Returns `true` if the machine is on.
    pub(super) fn keeps_power(&self) -> bool {
        self.line.keep_power();
        self.disk.keep_power();
        !self.is_off()
    }

    /// Returns the machine that is started again after a power cut, or after its process was
    /// killed.
    pub(super) fn restart(&self, random: &mut Random) -> Self {
        let medium = self.disk.medium();
        let left = match self.is_off() {
            true => medium.states(*random.pick(&Device::ALL)).draw(random),
            false => medium,
        };
        Self::new(&self.cloud, MemoryDisk::on(&left))
    }
}

pub(super) fn store_options(progress: Option<&Arc<Progress>>) -> StoreOptions {
    StoreOptions {
        volume_bytes: 4 << 20,
        big_object_bytes: BIG_BYTES,
        idle_watermark_ms: 0,
        lifecycle_check_every: Duration::ZERO,
        replication: progress.map(|progress| Arc::clone(progress) as _),
        ..StoreOptions::default()
    }
}

pub(super) fn random_options(random: &mut Random, lease: Option<Duration>) -> Options {
    let chunk_bytes = *random.pick(&[64 << 10, 1 << 20, 2 << 20, 4 << 20]);
    Options {
        chunk_bytes,
        tail_bytes_max: *random.pick(&[0, 4 << 10, 64 << 10]),
        checkpoint_every: Duration::ZERO,
        keep: *random.pick(&[Duration::ZERO, Duration::from_millis(300), Duration::from_hours(9)]),
        // Each manifest is kept.
        keep_every: Duration::ZERO,
        // Mostly at once, so that nothing depends on the delay.
        delete_after: *random.pick(&[Duration::ZERO, Duration::ZERO, Duration::from_hours(1)]),
        lease,
        ..Options::default()
    }
}

/// A process with an open store.
pub(super) struct Process {
    pub(super) machine: Machine,
    pub(super) store: Arc<Store>,
    tiered: Option<Arc<TieredDisk>>,
    /// The space for local parts; `None` if everything is fetched.
    local_space: Option<u64>,
    pub(super) progress: Arc<Progress>,
    /// `None` before the copy was claimed.
    shipper: Option<Shipper<StoreSource>>,
    merges: Option<MergeJobs<StoreSource>>,
}

impl Process {
    pub(super) fn open(
        machine: &Machine,
        progress: Arc<Progress>,
        local_space: Option<u64>,
    ) -> Result<Self> {
        let local = machine.local();
        let is_tiered = local_space.is_some() || TieredDisk::is_needed(&*local)?;
        let tier = || Arc::new(TieredDisk::new(Arc::clone(&local), &machine.remote, 1 << 20));
        let tiered = is_tiered.then(tier);
        let disk = tiered.clone().map_or_else(|| Arc::clone(&local), |tiered| tiered as _);
        let (store, mut report) = Store::open_on(disk, store_options(Some(&progress)))?;
        report.damage.retain(|damage| !damage.what.contains("this copy of the manifest"));
        assert!(report.damage.is_empty(), "{report:?}");
        let (machine, store) = (machine.clone(), Arc::new(store));
        Ok(Self { machine, store, tiered, local_space, progress, shipper: None, merges: None })
    }

    fn source(&self) -> StoreSource {
        StoreSource::new(Arc::clone(&self.store), self.machine.local())
    }

    /// Claims the copy. Waits until an earlier owner's lease has run out.
    pub(super) fn claim(&mut self, options: Options, clock: &Arc<SlowClock>) -> Result<()> {
        self.progress.set_lease(options.lease, &(Arc::clone(clock) as Arc<dyn Clock>));
        let source = Arc::new(self.source());
        let (shipper, wait) =
            Shipper::claim(source, &self.machine.remote, options, &self.progress)?;
        clock.advance(wait);
        shipper.note_waited()?;
        self.start(shipper)
    }

    /// Continues the copy that a standby has taken over.
    pub(super) fn follow(&mut self, takeover: Takeover, options: Options) -> Result<()> {
        let source = Arc::new(self.source());
        let remote = &self.machine.remote;
        self.start(Shipper::continue_owned(source, remote, options, takeover.owned)?)
    }

    fn start(&mut self, mut shipper: Shipper<StoreSource>) -> Result<()> {
        drop(shipper.find_leftovers());
        self.merges = Some(shipper.create_merger());
        self.shipper = Some(shipper);
        finish_takeover(&self.machine.remote, &self.store, &*self.machine.local())?;
        Ok(())
    }

    pub(super) fn has_claimed(&self) -> bool {
        self.shipper.is_some()
    }

    /// Creates the bucket, unless it exists.
    pub(super) fn create_bucket(&self) -> haul_file_store::Result<()> {
        match self.store.create_bucket(BUCKET) {
            Err(haul_file_store::Error::BucketExists { .. }) => Ok(()),
            created => created,
        }
    }

    pub(super) fn change(&self, key: &str, object: Option<Object>) -> haul_file_store::Result<()> {
        let (none, condition) = (Attributes::new(), Precondition::None);
        match object {
            Some(object) => {
                self.store.put(BUCKET, key, &object.content(), &none, &condition).map(drop)
            }
            None => self.store.delete(BUCKET, key).map(drop),
        }
    }

    /// Runs a round, after which all changes before it are acknowledged as copied. Returns the
    /// generation and the epoch of the manifest.
    pub(super) fn ship(&mut self) -> Result<(u64, u64)> {
        let shipper = self.shipper.as_mut().unwrap();
        let end = self.store.log().synced();
        shipper.ship(&self.progress)?;
        self.progress.wait_for(end, Duration::ZERO).unwrap();
        let manifest = shipper.object.current();
        Ok((manifest.generation, manifest.epoch))
    }

    /// Merges a segment if a round has requested that.
    pub(super) fn merge(&self) -> bool {
        let job =
            self.merges.as_ref().and_then(|jobs| Some((jobs, jobs.segments.try_recv().ok()?)));
        job.is_some_and(|(jobs, segment)| jobs.merge(segment))
    }

    /// Renews the lease if that is due.
    pub(super) fn renew(&self) -> Result<()> {
        match (&self.shipper, self.progress.lease()) {
            (Some(shipper), Some(lease)) => shipper.object.shared.renew_if_due(lease),
            _ => Ok(()),
        }
    }

    /// Drops store parts, or fetches them.
    pub(super) fn move_parts(&self) -> Result<()> {
        let Some(disk) = self.tiered.clone() else { return Ok(()) };
        let (store, local_bytes_max) = (Arc::clone(&self.store), self.local_space);
        Mover { store, disk, local_bytes_max }.move_parts(&Shared::default()).map(drop)
    }

    /// Returns the number of segments that are only in the copy.
    pub(super) fn remote_parts(&self) -> u64 {
        let segments = self.store.log().segments();
        segments.iter().filter(|segment| !segment.is_local).count() as u64
    }

    /// Ends shipping.
    pub(super) fn stop(&mut self) {
        if let Some(mut shipper) = self.shipper.take()
            && shipper.ship(&self.progress).is_ok()
        {
            shipper.finish();
        }
    }

    /// Reads all objects, while all requests succeed.
    pub(super) fn contents(&self) -> Contents {
        self.machine.cloud.calmly(|| contents(&self.store))
    }
}

/// `true` if the copy lacks a segment that the machine expected there.
pub(super) fn is_missing(error: &Error) -> bool {
    haul_disk::error_chain(error).to_string().contains("it does not have segment")
}

/// `true` if the remote store caused the error, in a request or in a local call that needed it.
pub(super) fn is_remote(error: &Error) -> bool {
    haul_disk::error_chain(error).to_string().contains("no answer")
}
