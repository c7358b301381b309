//! The quotas of buckets and of their owners, and what writes in progress reserve of them.
//!
//! A write reserves what it adds before it stores anything. The application of its needle to the
//! index ends the reservation under the lock of the index, with which the next reservation reads
//! the totals: what is stored and what is reserved never exceed a quota together.
//!
//! In a bucket with versions, the object that a write replaces is stored among the versions first,
//! and is in the totals twice until the write is applied. The reservation knows this copy, so that
//! it counts once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use haul_sync::Mutex;

use crate::error::{Error, QuotaExceeded, Result};
use crate::index::volumes::subtract;
use crate::object::{Quota, QuotaState, Usage};

const BYTES: &str = "bytes";
const OBJECTS: &str = "objects";

/// What buckets contain: the index, which is locked.
pub(crate) trait Totals {
    fn usage(&self, bucket: &str) -> Usage;
}

/// The quotas of an open store. Their lock is taken after the index's.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    /// `false` in a process that stores what others have accepted, such as an import.
    are_enforced: bool,
    /// `true` if quotas are enforced, and there are any.
    is_any: AtomicBool,
    /// Counts the changes of quotas, so that a reservation that began before one is not used.
    revision: AtomicU64,
    refusals: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    buckets: HashMap<Box<str>, BucketTally>,
    owners: HashMap<Arc<str>, OwnerTally>,
    /// The buckets of the owners in `owners`.
    owner_of: HashMap<Box<str>, Arc<str>>,
}

#[derive(Debug, Default)]
struct BucketTally {
    limit: Limit,
    progress: Progress,
}

#[derive(Debug, Default)]
struct OwnerTally {
    quota: Quota,
    progress: Progress,
    buckets: BTreeSet<Box<str>>,
}

/// What writes in progress change.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// What they add.
    reserved: Usage,
    /// What the totals have twice meanwhile.
    copied: Usage,
}

/// A bucket's quota, as it was read from the bucket's needle.
#[derive(Debug)]
pub(crate) enum Limit {
    Known(Quota),
    /// The needle is damaged: the bucket cannot grow until its quota is set again.
    Damaged {
        file: PathBuf,
        offset: u64,
        what: String,
    },
}

impl Default for Limit {
    fn default() -> Self {
        Self::Known(Quota::default())
    }
}

/// What a write has reserved; dropping it ends the reservation.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    reservation: Option<Arc<Reservation>>,
    /// What the change stores a second time until the write is applied.
    copy: Option<Usage>,
}

#[derive(Debug)]
struct Reservation {
    quotas: Arc<Quotas>,
    bucket: Box<str>,
    owner: Option<Arc<str>>,
    added: Usage,
    /// The object that the write replaces, once its copy is in the totals.
    copied: OnceLock<Usage>,
    revision: u64,
}

/// What the writer of new content got from the quotas before the content arrived.
#[derive(Debug, Default)]
pub(crate) struct Granted {
    pub(crate) reserved: Reserved,
    /// The bound of content whose length was not declared.
    pub(crate) bound: Option<Bound>,
}

/// What the quotas have left for content whose length was not declared.
#[derive(Debug)]
pub(crate) struct Bound {
    quotas: Arc<Quotas>,
    bytes_max: u64,
    exceeded: QuotaExceeded,
}

impl Bound {
    /// Fails for content of more bytes.
    pub(crate) fn check(&self, bytes: u64) -> Result<()> {
        if bytes <= self.bytes_max {
            return Ok(());
        }
        self.quotas.count(Err(Error::QuotaExceeded(self.exceeded.clone())))
    }
}

impl Quotas {
    pub(crate) fn new(are_enforced: bool) -> Self {
        Self { are_enforced, ..Self::default() }
    }

    /// Returns `true` if a write needs a reservation.
    pub(crate) fn is_any(&self) -> bool {
        // A change of a bucket's quota holds the gate, which orders it before later writes.
        self.is_any.load(Ordering::Relaxed)
    }

    /// Returns the number of writes that were rejected.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Reserves what a write adds to a bucket. The totals stay as they are meanwhile.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        totals: &impl Totals,
        bucket: &str,
        added: Usage,
    ) -> Result<Reserved> {
        let mut table = self.table.lock();
        self.count(table.check(totals, bucket, added))?;
        Ok(self.begin(&mut table, bucket, added))
    }

    /// Follows a write that is never rejected, such as a deletion that retains a version.
    pub(crate) fn follow(self: &Arc<Self>, bucket: &str) -> Reserved {
        self.begin(&mut self.table.lock(), bucket, Usage::default())
    }

    fn begin(self: &Arc<Self>, table: &mut Table, bucket: &str, added: Usage) -> Reserved {
        let owner = table.owner_of.get(bucket).cloned();
        if owner.is_none() && !table.buckets.contains_key(bucket) {
            return Reserved::nothing();
        }
        // The bucket may get a quota of its own before the reservation ends.
        if !table.buckets.contains_key(bucket) {
            table.buckets.insert(bucket.into(), BucketTally::default());
        }
        let (quotas, bucket) = (Arc::clone(self), bucket.into());
        let (copied, revision) = (OnceLock::new(), self.revision.load(Ordering::Relaxed));
        let reservation = Reservation { quotas, bucket, owner, added, copied, revision };
        for progress in table.progress(&reservation) {
            progress.reserved = progress.reserved.plus(added);
        }
        Reserved { reservation: Some(Arc::new(reservation)), copy: None }
    }

    /// Fails as [`Self::reserve`] would, but reserves nothing.
    pub(crate) fn check(&self, totals: &impl Totals, bucket: &str, added: Usage) -> Result<()> {
        self.count(self.table.lock().check(totals, bucket, added))
    }

    /// Returns the bound of content for a bucket whose length is not declared.
    pub(crate) fn bound(self: &Arc<Self>, totals: &impl Totals, bucket: &str) -> Option<Bound> {
        let left = |limit: &LimitInForce| limit.limit.saturating_sub(limit.used);
        let limits = self.table.lock().limits(totals, bucket).into_iter().flatten();
        let least = limits.filter(|limit| limit.unit == BYTES).min_by_key(left)?;
        let (bytes_max, exceeded) = (left(&least), least.error(bucket));
        Some(Bound { quotas: Arc::clone(self), bytes_max, exceeded })
    }

    fn count(&self, outcome: Result<()>) -> Result<()> {
        if matches!(outcome, Err(Error::QuotaExceeded(_))) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    /// Sets a bucket's quota. What writes have reserved stays reserved.
    pub(crate) fn set_bucket(&self, bucket: &str, limit: Limit) {
        let mut table = self.table.lock();
        match table.buckets.get_mut(bucket) {
            Some(tally) => tally.limit = limit,
            None => {
                let tally = BucketTally { limit, progress: Progress::default() };
                table.buckets.insert(bucket.into(), tally);
            }
        }
        self.changed(&table);
    }

    /// Records a bucket's owner.
    pub(crate) fn set_owner(&self, bucket: &str, owner: Option<&str>) {
        let mut table = self.table.lock();
        let known = owner.and_then(|owner| table.owners.get_key_value(owner));
        let owner = known.map(|(owner, _)| Arc::clone(owner));
        if table.owner_of.get(bucket) == owner.as_ref() {
            return;
        }
        table.remove_owner(bucket);
        if let Some(owner) = owner {
            if let Some(tally) = table.owners.get_mut(&owner) {
                tally.buckets.insert(bucket.into());
            }
            table.owner_of.insert(bucket.into(), owner);
        }
        self.changed(&table);
    }

    /// Removes the quota and the owner of a bucket that is deleted.
    pub(crate) fn forget(&self, bucket: &str) {
        let mut table = self.table.lock();
        if !table.buckets.contains_key(bucket) && !table.owner_of.contains_key(bucket) {
            return;
        }
        // The tally stays: content that is being received may have reserved some of it.
        if let Some(tally) = table.buckets.get_mut(bucket) {
            tally.limit = Limit::default();
        }
        table.remove_owner(bucket);
        self.changed(&table);
    }

    /// Replaces the quotas of all owners. Returns the owners that had none.
    pub(crate) fn set_owners(&self, quotas: &BTreeMap<String, Quota>) -> Vec<String> {
        let mut table = self.table.lock();
        for (owner, tally) in &mut table.owners {
            tally.quota = quotas.get(&**owner).copied().unwrap_or_default();
        }
        let is_new = |owner: &&String| !table.owners.contains_key(owner.as_str());
        let new: Vec<String> = quotas.keys().filter(is_new).cloned().collect();
        for owner in &new {
            let tally = OwnerTally { quota: quotas[owner], ..OwnerTally::default() };
            table.owners.insert(owner.as_str().into(), tally);
        }
        self.changed(&table);
        new
    }

    fn changed(&self, table: &Table) {
        self.revision.fetch_add(1, Ordering::Relaxed);
        let limited = |tally: &BucketTally| match tally.limit {
            Limit::Known(quota) => quota.is_limited(),
            Limit::Damaged { .. } => true,
        };
        let is_any = table.buckets.values().any(limited)
            || table.owners.values().any(|tally| tally.quota.is_limited());
        self.is_any.store(self.are_enforced && is_any, Ordering::Relaxed);
    }

    /// Returns a bucket's quota, and what counts against it.
    pub(crate) fn bucket(&self, totals: &impl Totals, bucket: &str) -> Result<QuotaState> {
        let (name, usage) = (bucket.to_owned(), totals.usage(bucket));
        match self.table.lock().buckets.get(bucket) {
            Some(BucketTally { limit, progress }) => {
                Ok(QuotaState { name, quota: limit.known()?, usage: progress.stored(usage) })
            }
            None => Ok(QuotaState { name, quota: Quota::default(), usage }),
        }
    }

    /// Returns the buckets that have a quota, sorted by name.
    pub(crate) fn buckets(&self, totals: &impl Totals) -> Vec<QuotaState> {
        let table = self.table.lock();
        let states = table.buckets.iter().filter_map(|(bucket, tally)| {
            let quota = tally.limit.known().ok().filter(Quota::is_limited)?;
            let usage = tally.progress.stored(totals.usage(bucket));
            Some(QuotaState { name: bucket.to_string(), quota, usage })
        });
        sorted(states.collect())
    }

    /// Returns the owners that have a quota, sorted by name.
    pub(crate) fn owners(&self, totals: &impl Totals) -> Vec<QuotaState> {
        let table = self.table.lock();
        let limited = table.owners.iter().filter(|(_, tally)| tally.quota.is_limited());
        let state = |(owner, tally): (&Arc<str>, &OwnerTally)| {
            let (quota, usage) = (tally.quota, tally.progress.stored(tally.total(totals)));
            QuotaState { name: owner.to_string(), quota, usage }
        };
        sorted(limited.map(state).collect())
    }
}

fn sorted(mut states: Vec<QuotaState>) -> Vec<QuotaState> {
    states.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    states
}

impl Progress {
    /// Returns what is stored, of the totals of the index.
    fn stored(&self, total: Usage) -> Usage {
        less(total, self.copied)
    }

    /// Returns what counts against a quota.
    fn counted(&self, total: Usage) -> Usage {
        self.stored(total).plus(self.reserved)
    }
}

fn less(mut from: Usage, other: Usage) -> Usage {
    subtract(&mut from.bytes, other.bytes, "bytes of a quota");
    subtract(&mut from.objects, other.objects, "objects of a quota");
    from
}

impl OwnerTally {
    fn total(&self, totals: &impl Totals) -> Usage {
        let usages = self.buckets.iter().map(|bucket| totals.usage(bucket));
        usages.fold(Usage::default(), Usage::plus)
    }
}

impl Limit {
    fn known(&self) -> Result<Quota> {
        match self {
            Self::Known(quota) => Ok(*quota),
            Self::Damaged { file, offset, what } => {
                let (file, offset, what) = (file.clone(), *offset, what.clone());
                Err(Error::Damaged { file, offset, what })
            }
        }
    }
}

/// A limit that applies to a bucket, and what counts against it, writes in progress included.
#[derive(Debug, Clone)]
struct LimitInForce {
    /// `None` for the quota of the bucket itself.
    owner: Option<Arc<str>>,
    unit: &'static str,
    limit: u64,
    used: u64,
}

impl LimitInForce {
    fn error(&self, bucket: &str) -> QuotaExceeded {
        let Self { owner, unit, limit, used } = self.clone();
        match owner {
            Some(owner) => QuotaExceeded::Owner { owner: owner.to_string(), unit },
            None => QuotaExceeded::Bucket { bucket: bucket.to_owned(), unit, limit, used },
        }
    }
}

impl Table {
    /// Fails if a write may not add this to a bucket.
    fn check(&self, totals: &impl Totals, bucket: &str, added: Usage) -> Result<()> {
        if let Some(tally) = self.buckets.get(bucket) {
            tally.limit.known()?;
        }
        let is_exceeded = |limit: &LimitInForce| {
            let added = if limit.unit == BYTES { added.bytes } else { added.objects };
            // A bucket above a quota that was lowered may still get what takes nothing of it.
            added > 0 && limit.used.saturating_add(added) > limit.limit
        };
        let mut limits = self.limits(totals, bucket).into_iter().flatten();
        match limits.find(is_exceeded) {
            Some(limit) => Err(Error::QuotaExceeded(limit.error(bucket))),
            None => Ok(()),
        }
    }

    /// Returns the limits that apply to a bucket, in bytes and objects. Costs look-ups of all
    /// buckets of an owner who has a quota.
    fn limits(&self, totals: &impl Totals, bucket: &str) -> [Option<LimitInForce>; 4] {
        let mut limits = [const { None }; 4];
        if let Some(BucketTally { limit: Limit::Known(quota), progress }) = self.buckets.get(bucket)
            && quota.is_limited()
        {
            let used = progress.counted(totals.usage(bucket));
            [limits[0], limits[1]] = limits_in(quota, used, None);
        }
        if let Some(owner) = self.owner_of.get(bucket)
            && let Some(tally) = self.owners.get(owner).filter(|tally| tally.quota.is_limited())
        {
            let used = tally.progress.counted(tally.total(totals));
            [limits[2], limits[3]] = limits_in(&tally.quota, used, Some(owner));
        }
        limits
    }

    fn remove_owner(&mut self, bucket: &str) {
        if let Some(owner) = self.owner_of.remove(bucket)
            && let Some(tally) = self.owners.get_mut(&owner)
        {
            tally.buckets.remove(bucket);
        }
    }

    /// Returns the progress that a reservation is a part of.
    fn progress(&mut self, reservation: &Reservation) -> impl Iterator<Item = &mut Progress> {
        let Reservation { bucket, owner, .. } = reservation;
        let bucket = self.buckets.get_mut(bucket).map(|tally| &mut tally.progress);
        let owner = owner.as_ref().and_then(|owner| self.owners.get_mut(owner));
        bucket.into_iter().chain(owner.map(|tally| &mut tally.progress))
    }
}

fn limits_in(quota: &Quota, used: Usage, owner: Option<&Arc<str>>) -> [Option<LimitInForce>; 2] {
    let exceeded = |unit, limit: Option<u64>, used| {
        Some(LimitInForce { owner: owner.cloned(), unit, limit: limit?, used })
    };
    [exceeded(BYTES, quota.bytes, used.bytes), exceeded(OBJECTS, quota.objects, used.objects)]
}

impl Reserved {
    /// Returns the reservation of a change that counts the same before and after it, such as a
    /// needle that moves, or that is never rejected, such as a tombstone.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// Returns `true` if this is the reservation for a write to the bucket, under the quotas as
    /// they are now.
    pub(crate) fn covers(&self, bucket: &str, added: Usage) -> bool {
        self.reservation.as_ref().is_some_and(|held| {
            *held.bucket == *bucket
                && held.added.bytes >= added.bytes
                && held.added.objects >= added.objects
                && held.revision == held.quotas.revision.load(Ordering::Relaxed)
        })
    }

    /// Returns the part of this write that stores a copy of the object that the write replaces.
    pub(crate) fn copy(&self, bytes: u64) -> Self {
        let copy = Some(Usage { bytes, objects: 1 });
        Self { reservation: self.reservation.clone(), copy }
    }

    /// Ends the reservation of a change that the totals of the index have now. The caller holds the
    /// lock of the index.
    pub(crate) fn applied(self) {
        let Self { reservation: Some(held), copy: Some(copy) } = self else { return };
        let mut table = held.quotas.table.lock();
        debug_assert!(held.copied.get().is_none(), "a write replaces one object");
        if held.copied.set(copy).is_ok() {
            for progress in table.progress(&held) {
                progress.copied = progress.copied.plus(copy);
            }
        }
        drop(table);
    }
}

impl Drop for Reservation {
    /// Ends the reservation: the totals have what was reserved, or will never have it. If a write
    /// failed after its copy was stored, the copy counts from now on.
    fn drop(&mut self) {
        let quotas = Arc::clone(&self.quotas);
        let copied = self.copied.get().copied().unwrap_or_default();
        let mut table = quotas.table.lock();
        for progress in table.progress(self) {
            progress.reserved = less(progress.reserved, self.added);
            progress.copied = less(progress.copied, copied);
        }
    }
}

#[cfg(test)]
mod tests;
