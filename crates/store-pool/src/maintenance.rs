//! The state of all members together, and work on all of them, one after the other.

use std::path::Path;

use haul_file_store::{
    CompactionReport, Damage, ExpiredEntry, OngoingFailure, ReplicationStatus, Result,
    SnapshotInfo, Stats, Store, SweepReport, VerificationReport, VolumeMap,
};

use crate::member::Member;
use crate::pool::Pool;
use crate::progress::MoveProgress;
use crate::snapshot;

impl Pool {
    /// Compacts all open members like [`Store::compact_with_progress`].
    ///
    /// # Errors
    /// Fails like [`Store::compact_with_progress`].
    pub fn compact_with_progress(
        &self,
        progress: &mut dyn FnMut(&CompactionReport),
    ) -> Result<CompactionReport> {
        let mut done = CompactionReport::default();
        for store in self.stores() {
            let before = done;
            done = before
                .plus(&store.compact_with_progress(&mut |part| progress(&before.plus(part)))?);
        }
        Ok(done)
    }

    /// Verifies all open members like [`Store::verify`].
    ///
    /// # Errors
    /// Fails like [`Store::verify`].
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerificationReport> {
        let mut all = VerificationReport::default();
        for store in self.stores() {
            let (objects, bytes) = (all.objects, all.bytes);
            let verified = store.verify(&mut |done, done_bytes| {
                progress(objects + done, bytes + done_bytes);
            })?;
            all.objects += verified.objects;
            all.bytes += verified.bytes;
            all.damage.extend(verified.damage);
        }
        Ok(all)
    }

    /// Accepts the loss of unknown objects in all open members, like [`Store::accept_damage`].
    ///
    /// # Errors
    /// Fails like [`Store::accept_damage`].
    ///
    /// # Durability
    /// The acceptance survives a power cut when this returns.
    pub fn accept_damage(&self) -> Result<Vec<Damage>> {
        let mut accepted = Vec::new();
        for store in self.stores() {
            accepted.extend(store.accept_damage()?);
        }
        Ok(accepted)
    }

    /// Calls `visit` with everything that a sweep would delete now, like [`Store::expirable`]:
    /// member by member.
    ///
    /// # Errors
    /// Fails like [`Store::expirable`]; [`haul_file_store::Error::MemberMissing`].
    pub fn expirable(
        &self,
        bucket: &str,
        visit: &mut dyn FnMut(ExpiredEntry) -> bool,
    ) -> Result<SweepReport> {
        let (mut report, mut goes_on) = (SweepReport::default(), true);
        for store in self.all_stores()? {
            if goes_on {
                report.add(&store.expirable(bucket, &mut |entry| {
                    goes_on = visit(entry);
                    goes_on
                })?);
            }
        }
        Ok(report)
    }

    /// Deletes what has expired, like [`Store::expire_now`]: member by member.
    ///
    /// # Errors
    /// Fails like [`Store::expire_now`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The deletions that the report counts survive a power cut when this returns.
    pub fn expire_now(&self, bucket: &str) -> Result<SweepReport> {
        let mut report = SweepReport::default();
        for store in self.all_stores()? {
            report.add(&store.expire_now(bucket)?);
        }
        Ok(report)
    }

    /// Creates a snapshot like [`Store::snapshot`]. That of a pool has a directory
    /// for each member, named after its number, which together are a pool. It has each key in a
    /// state that it had during the call.
    ///
    /// 1. Creates the snapshot of each member. After a crash, those that exist are stores of their
    ///    own.
    /// 2. Writes the pool file of each.
    ///
    /// # Errors
    /// Fails like [`Store::snapshot`]; [`haul_file_store::Error::MemberMissing`];
    /// [`haul_file_store::Error::Invalid`] while keys are moved between members.
    ///
    /// # Durability
    /// The snapshot survives a power cut when this returns.
    pub fn snapshot(&self, to: &Path) -> Result<SnapshotInfo> {
        match &self.shared {
            Some(shared) => snapshot::create(&self.members, shared, to),
            None => self.members[0].store()?.snapshot(to),
        }
    }

    /// Returns the statistics of all open members together, like [`Store::stats`].
    #[must_use]
    pub fn stats(&self) -> Stats {
        let stats = self.stores().map(Store::stats);
        stats.reduce(|sum, stats| sum.plus(&stats)).unwrap_or_default()
    }

    /// Returns the memory of pinned files, like [`Store::pinned_bytes`].
    #[must_use]
    pub fn pinned_bytes(&self) -> u64 {
        self.stores().map(Store::pinned_bytes).sum()
    }

    /// Returns the work that fails in any member, like [`Store::ongoing_failures`]. The reasons begin
    /// with the directory of one of several members.
    #[must_use]
    pub fn ongoing_failures(&self) -> Vec<OngoingFailure> {
        if let Some(store) = self.own_store() {
            return store.ongoing_failures();
        }
        let named = |member: &Member| {
            let (dir, store) = (member.dir().display().to_string(), member.store().ok());
            let failures = store.map(|store| store.ongoing_failures()).unwrap_or_default();
            failures.into_iter().map(move |failure| OngoingFailure {
                reason: format!("{dir}: {}", failure.reason),
                ..failure
            })
        };
        self.members.iter().flat_map(named).collect()
    }

    /// Returns the last error of a lifecycle sweep in any member, like
    /// [`Store::last_lifecycle_error`].
    #[must_use]
    pub fn last_lifecycle_error(&self) -> Option<String> {
        self.stores().find_map(Store::last_lifecycle_error)
    }

    /// Returns the state of the copy, like [`Store::replication_status`]. Of several copies, it has
    /// the longest time behind, the sums of the counters, and the first failure, which begins with
    /// the directory of its member; `copied` is then zero.
    #[must_use]
    pub fn replication_status(&self) -> Option<ReplicationStatus> {
        if let Some(store) = self.own_store() {
            return store.replication_status();
        }
        let mut all = None::<ReplicationStatus>;
        for member in self.members.iter() {
            let status = member.store().ok().and_then(|store| store.replication_status());
            let Some(status) = status else { continue };
            let all = all.get_or_insert_default();
            let named = |why: String| format!("{}: {why}", member.dir().display());
            all.behind = all.behind.max(status.behind);
            all.requests += status.requests;
            all.sent_bytes += status.sent_bytes;
            all.last_error = all.last_error.take().or(status.last_error.map(named));
            all.stopped = all.stopped.take().or(status.stopped.map(named));
        }
        all
    }

    /// Waits until all changes that are visible now may be acknowledged, like [`Store::confirm`].
    ///
    /// # Errors
    /// Fails like [`Store::confirm`].
    pub fn confirm(&self) -> Result<()> {
        self.stores().try_for_each(Store::confirm)
    }

    /// Returns the maps of all members' volumes, like [`Store::volume_maps`].
    ///
    /// # Errors
    /// Fails like [`Store::volume_maps`].
    pub fn volume_maps(&self) -> Result<Vec<VolumeMap>> {
        let mut maps = Vec::new();
        for store in self.stores() {
            maps.extend(store.volume_maps()?);
        }
        Ok(maps)
    }

    /// Returns the progress of moving keys between members; `None` for a store of its own.
    #[must_use]
    pub fn move_progress(&self) -> Option<MoveProgress> {
        Some(self.shared.as_ref()?.moves.progress())
    }
}
