//! The quotas of buckets and of their owners, and the reservations of writes in progress.
//!
//! A write reserves what it adds before it stores anything. Applying its needle to the index ends
//! the reservation. Both happen under the index lock, so stored and reserved usage together never
//! exceed a quota.
//!
//! In a bucket with versions, the object that a write replaces is first stored as a version, and is
//! in the index totals twice until the write is applied. The reservation knows this copy, so that
//! it counts once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use haul_sync::Mutex;

use crate::error::{Error, QuotaExceeded, Result};
use crate::index::volumes::subtract;
use crate::object::{Quota, QuotaState, Usage};

const BYTES: &str = "bytes";
const OBJECTS: &str = "objects";

/// The usage of each bucket. The index implements it; the caller has locked the index.
pub(crate) trait Totals {
    fn usage(&self, bucket: &str) -> Usage;
}

/// An index that can be locked, so that its totals do not change.
pub(crate) trait LockTotals: Debug + Send + Sync {
    /// Locks the index until the result is dropped.
    fn lock(&self) -> Box<dyn Totals + '_>;
}

/// The quotas of an open store. Their lock is taken after the index lock.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    /// `false` in a process that stores objects which other systems have accepted, such as an
    /// import.
    are_enforced: bool,
    /// `true` if quotas are enforced, and any quota exists.
    is_any: AtomicBool,
    /// Incremented when quotas change. A reservation made under an earlier revision is not reused.
    revision: AtomicU64,
    refusals: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    buckets: HashMap<Box<str>, BucketTally>,
    owners: HashMap<Arc<str>, OwnerTally>,
    /// The owner of each bucket whose owner is in `owners`.
    owner_of: HashMap<Box<str>, Arc<str>>,
}

#[derive(Debug, Default)]
struct BucketTally {
    limit: Limit,
    pending: PendingUsage,
}

#[derive(Debug, Default)]
struct OwnerTally {
    quota: Quota,
    pending: PendingUsage,
    buckets: BTreeSet<Box<str>>,
}

/// The effect of writes in progress on a quota's usage.
#[derive(Debug, Clone, Copy, Default)]
struct PendingUsage {
    /// The usage that these writes have reserved.
    reserved: Usage,
    /// The usage that the index totals count twice: replaced objects whose retained copy is already
    /// indexed.
    copied: Usage,
}

/// A bucket's quota, as read from its needle.
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

/// A write's reservation. Dropping it ends the reservation.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    reservation: Option<Arc<Reservation>>,
    /// The size of the retained copy, which counts twice until the write is applied.
    copy: Option<Usage>,
}

#[derive(Debug)]
struct Reservation {
    quotas: Arc<Quotas>,
    bucket: Box<str>,
    owner: Option<Arc<str>>,
    added: Usage,
    /// The size of the replaced object, once its retained copy is in the index totals.
    copied: OnceLock<Usage>,
    revision: u64,
}

/// The reservation for content of declared length, or the byte limit for content of undeclared
/// length.
#[derive(Debug, Default)]
pub(crate) struct WriteGrant {
    pub(crate) reserved: Reserved,
    /// The limit for content of undeclared length.
    pub(crate) bytes_left: Option<BytesLeft>,
}

/// The bytes that the quotas have left for content of undeclared length.
#[derive(Debug)]
pub(crate) struct BytesLeft {
    quotas: Arc<Quotas>,
    bytes_max: u64,
    exceeded: QuotaExceeded,
}

impl BytesLeft {
    /// Fails if the content has more bytes than are left.
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

    /// Reserves what a write adds to a bucket. The caller has locked the index, so that the totals
    /// do not change.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        totals: &impl Totals,
        bucket: &str,
        added: Usage,
    ) -> Result<Reserved> {
        let mut table = self.table.lock();
        self.count(table.check(totals, bucket, added))?;
        Ok(self.start_reservation(&mut table, bucket, added))
    }

    /// Tracks a write that is never rejected, such as a deletion that retains a version.
    pub(crate) fn track(self: &Arc<Self>, bucket: &str) -> Reserved {
        self.start_reservation(&mut self.table.lock(), bucket, Usage::default())
    }

    fn start_reservation(
        self: &Arc<Self>,
        table: &mut Table,
        bucket: &str,
        added: Usage,
    ) -> Reserved {
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
        for pending in table.pending(&reservation) {
            pending.reserved = pending.reserved.plus(added);
        }
        Reserved { reservation: Some(Arc::new(reservation)), copy: None }
    }

    /// Fails like [`Self::reserve`], but reserves nothing.
    pub(crate) fn check(&self, totals: &impl Totals, bucket: &str, added: Usage) -> Result<()> {
        self.count(self.table.lock().check(totals, bucket, added))
    }

    /// Returns the byte limit for content of undeclared length in a bucket; `None` if no byte quota
    /// applies.
    pub(crate) fn bytes_left(
        self: &Arc<Self>,
        totals: &impl Totals,
        bucket: &str,
    ) -> Option<BytesLeft> {
        let left = |limit: &LimitInForce| limit.limit.saturating_sub(limit.used);
        let limits = self.table.lock().limits(totals, bucket).into_iter().flatten();
        let least = limits.filter(|limit| limit.unit == BYTES).min_by_key(left)?;
        let (bytes_max, exceeded) = (left(&least), least.error(bucket));
        Some(BytesLeft { quotas: Arc::clone(self), bytes_max, exceeded })
    }

    fn count(&self, outcome: Result<()>) -> Result<()> {
        if matches!(outcome, Err(Error::QuotaExceeded(_))) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    /// Sets a bucket's quota. Existing reservations remain.
    pub(crate) fn set_bucket(&self, bucket: &str, limit: Limit) {
        let mut table = self.table.lock();
        match table.buckets.get_mut(bucket) {
            Some(tally) => tally.limit = limit,
            None => {
                let tally = BucketTally { limit, pending: PendingUsage::default() };
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

    /// Returns a bucket's quota and usage.
    pub(crate) fn bucket(&self, totals: &impl Totals, bucket: &str) -> Result<QuotaState> {
        let (name, usage) = (bucket.to_owned(), totals.usage(bucket));
        match self.table.lock().buckets.get(bucket) {
            Some(BucketTally { limit, pending }) => {
                Ok(QuotaState { name, quota: limit.known()?, usage: pending.stored(usage) })
            }
            None => Ok(QuotaState { name, quota: Quota::default(), usage }),
        }
    }

    /// Returns the buckets that have a quota, sorted by name.
    pub(crate) fn buckets(&self, totals: &impl Totals) -> Vec<QuotaState> {
        let table = self.table.lock();
        let states = table.buckets.iter().filter_map(|(bucket, tally)| {
            let quota = tally.limit.known().ok().filter(Quota::is_limited)?;
            let usage = tally.pending.stored(totals.usage(bucket));
            Some(QuotaState { name: bucket.to_string(), quota, usage })
        });
        sorted(states.collect())
    }

    /// Returns the owners that have a quota, sorted by name.
    pub(crate) fn owners(&self, totals: &impl Totals) -> Vec<QuotaState> {
        let table = self.table.lock();
        let limited = table.owners.iter().filter(|(_, tally)| tally.quota.is_limited());
        let state = |(owner, tally): (&Arc<str>, &OwnerTally)| {
            let (quota, usage) = (tally.quota, tally.pending.stored(tally.total(totals)));
            QuotaState { name: owner.to_string(), quota, usage }
        };
        sorted(limited.map(state).collect())
    }
}

fn sorted(mut states: Vec<QuotaState>) -> Vec<QuotaState> {
    states.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    states
}

impl PendingUsage {
    /// Returns the stored usage: the index totals without the usage counted twice.
    fn stored(&self, total: Usage) -> Usage {
        subtract_usage(total, self.copied)
    }

    /// Returns the usage that counts against a quota: stored and reserved.
    fn counted(&self, total: Usage) -> Usage {
        self.stored(total).plus(self.reserved)
    }
}

fn subtract_usage(mut from: Usage, other: Usage) -> Usage {
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

/// A limit that applies to a bucket, and the usage that counts against it, including writes in
/// progress.
#[derive(Debug, Clone)]
struct LimitInForce {
    /// `None` for the bucket's own quota.
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
    /// Fails if the quotas do not allow a write that adds `added` to a bucket.
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

    /// Returns the limits that apply to a bucket, in bytes and objects. If the bucket's owner has a
    /// quota, looks up all of the owner's buckets.
    fn limits(&self, totals: &impl Totals, bucket: &str) -> [Option<LimitInForce>; 4] {
        let mut limits = [const { None }; 4];
        if let Some(BucketTally { limit: Limit::Known(quota), pending }) = self.buckets.get(bucket)
            && quota.is_limited()
        {
            let used = pending.counted(totals.usage(bucket));
            [limits[0], limits[1]] = limits_in(quota, used, None);
        }
        if let Some(owner) = self.owner_of.get(bucket)
            && let Some(tally) = self.owners.get(owner).filter(|tally| tally.quota.is_limited())
        {
            let used = tally.pending.counted(tally.total(totals));
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

    /// Returns the pending usage of which a reservation is a part: its bucket's and its owner's.
    fn pending(&mut self, reservation: &Reservation) -> impl Iterator<Item = &mut PendingUsage> {
        let Reservation { bucket, owner, .. } = reservation;
        let bucket = self.buckets.get_mut(bucket).map(|tally| &mut tally.pending);
        let owner = owner.as_ref().and_then(|owner| self.owners.get_mut(owner));
        bucket.into_iter().chain(owner.map(|tally| &mut tally.pending))
    }
}

fn limits_in(quota: &Quota, used: Usage, owner: Option<&Arc<str>>) -> [Option<LimitInForce>; 2] {
    let exceeded = |unit, limit: Option<u64>, used| {
        Some(LimitInForce { owner: owner.cloned(), unit, limit: limit?, used })
    };
    [exceeded(BYTES, quota.bytes, used.bytes), exceeded(OBJECTS, quota.objects, used.objects)]
}

impl Reserved {
    /// Returns an empty reservation: for a change that does not change the usage, such as a moved
    /// needle, or that is never rejected, such as a tombstone.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// Returns `true` if this reservation, made under the current quotas, is for a write that adds
    /// `added` to the bucket.
    pub(crate) fn covers(&self, bucket: &str, added: Usage) -> bool {
        self.reservation.as_ref().is_some_and(|held| {
            *held.bucket == *bucket
                && held.added.bytes >= added.bytes
                && held.added.objects >= added.objects
                && held.revision == held.quotas.revision.load(Ordering::Relaxed)
        })
    }

    /// Returns a reservation for storing a copy of the object that the write replaces.
    pub(crate) fn copy(&self, bytes: u64) -> Self {
        let copy = Some(Usage { bytes, objects: 1 });
        Self { reservation: self.reservation.clone(), copy }
    }

    /// Ends the reservation of a change that has been applied to the index. The caller holds the
    /// index lock.
    pub(crate) fn applied(self) {
        let Self { reservation: Some(held), copy: Some(copy) } = self else { return };
        let mut table = held.quotas.table.lock();
        debug_assert!(held.copied.get().is_none(), "a write replaces one object");
        if held.copied.set(copy).is_ok() {
            for pending in table.pending(&held) {
                pending.copied = pending.copied.plus(copy);
            }
        }
        drop(table);
    }
}

impl Drop for Reservation {
    /// Ends the reservation: the index totals now contain the usage, or never will. If the write
    /// failed after its copy was stored, the copy counts from now on.
    fn drop(&mut self) {
        let quotas = Arc::clone(&self.quotas);
        let copied = self.copied.get().copied().unwrap_or_default();
        let mut table = quotas.table.lock();
        for pending in table.pending(self) {
            pending.reserved = subtract_usage(pending.reserved, self.added);
            pending.copied = subtract_usage(pending.copied, copied);
        }
    }
}

#[cfg(test)]
mod tests;
