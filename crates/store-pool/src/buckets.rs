//! Buckets and their settings, which are on all members.
//!
//! A change goes through the members in their order, and has happened when the last one has it; only
//! a deletion is made in all at once. If it stops in between, the first member decides whether
//! opening the pool, or the next change of the bucket, completes or undoes it ([`crate::settling`]).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haul_file_store::{
    BucketId, BucketInfo, BucketSettings, DefaultRetention, Error, Lifecycle, LockedBuckets,
    NewBucket, Quota, QuotaState, Result, Store, Usage, Versioning,
};
use haul_sync::MutexGuard;

use crate::member::Member;
use crate::pool::Pool;
use crate::settling::{BucketState, settle_bucket};
use crate::shared::Shared;

/// The time after which a change that waits for another one looks whether a disk responds: so long
/// that the call of the other one counts as waiting by then.
const CHANGE_WAIT: Duration = Duration::from_secs(3);

/// The limit on the time for which all writers wait until those that have begun have ended.
const LOCK_TIME_MAX: Duration = Duration::from_secs(2);

impl Pool {
    /// Creates a bucket like [`Store::create_bucket`].
    ///
    /// # Errors
    /// Fails like [`Store::create_bucket`]; [`Error::MemberMissing`].
    ///
    /// # Durability
    /// The bucket survives a power cut when this returns.
    pub fn create_bucket(&self, bucket: &str) -> Result<()> {
        self.create_bucket_with(bucket, &NewBucket::default())
    }

    /// Creates a bucket like [`Store::create_bucket_with`]. It has the same identity in all
    /// members.
    ///
    /// # Errors
    /// Fails like [`Store::create_bucket_with`]; [`Error::MemberMissing`].
    ///
    /// # Durability
    /// The bucket and its settings survive a power cut when this returns.
    pub fn create_bucket_with(&self, bucket: &str, new: &NewBucket) -> Result<()> {
        let Some(shared) = &self.shared else {
            return self.members[0].store()?.create_bucket_with(bucket, new);
        };
        let _exclusive = self.begin_change(shared)?;
        if let Some(states) = self.unequal_states(bucket)? {
            self.discard_remains(bucket, &states)?;
        }
        let mut new = new.clone();
        self.members.iter().try_for_each(|member| {
            member.write(|store| {
                store.create_bucket_with(bucket, &new)?;
                new.id = Some(store.bucket_id(bucket)?);
                Ok(())
            })
        })
    }

    /// Deletes what an unfinished creation or deletion has left of a bucket in some members, so that
    /// it can be created. If it is used, completes it instead.
    fn discard_remains(&self, bucket: &str, states: &[Option<BucketState>]) -> Result<()> {
        let having = || self.members.iter().zip(states).filter(|(_, state)| state.is_some());
        if having().count() == self.members.len() {
            return self.settle(bucket);
        }
        // The first member decides: it must not lose the bucket before the others.
        for (member, _) in having().rev() {
            match member.write(|store| store.delete_bucket(bucket)) {
                Err(Error::BucketNotEmpty { .. }) => return self.settle(bucket),
                deleted => deleted?,
            }
        }
        Ok(())
    }

    /// Deletes a bucket like [`Store::delete_bucket`].
    ///
    /// 1. Keeps writers out of all members, and checks that the bucket is empty in each.
    /// 2. Deletes it from all at once, and lets writers in again, each member for itself: they find
    ///    no bucket, and do not wait for a disk that hangs. After a crash in between, opening the
    ///    pool deletes it from all members if the first one has deleted it, and otherwise creates it
    ///    again in the others.
    ///
    /// # Errors
    /// Fails like [`Store::delete_bucket`]; [`Error::MemberMissing`]; [`Error::MemberStalled`].
    ///
    /// # Durability
    /// The deletion survives a power cut when this returns.
    pub fn delete_bucket(&self, bucket: &str) -> Result<()> {
        let Some(shared) = &self.shared else {
            return self.members[0].store()?.delete_bucket(bucket);
        };
        let _exclusive = self.begin_change(shared)?;
        if self.unequal_states(bucket)?.is_some() {
            self.settle(bucket)?;
            if self.bucket_store()?.bucket_id(bucket).is_err() {
                // That has completed an earlier deletion.
                return Ok(());
            }
        }
        let locked = self.lock_all_buckets()?;
        locked.iter().try_for_each(|(_, buckets)| buckets.check_empty(bucket))?;
        let delete = |member: &Member, buckets: LockedBuckets<'_>| {
            member.write(|_| buckets.delete(bucket))?;
            drop(buckets);
            member.write(Store::confirm)
        };
        let panicked = || Err(Error::Stopped { what: "deleting a bucket panicked" });
        thread::scope(|scope| {
            let delete = &delete;
            let deleting: Vec<_> = locked
                .into_iter()
                .map(|(member, buckets)| scope.spawn(move || delete(member, buckets)))
                .collect();
            deleting
                .into_iter()
                .map(|deleted| deleted.join().unwrap_or_else(|_| panicked()))
                .fold(Ok(()), Result::and)
        })
    }

    /// Keeps all writers out of all members. Those of a member in which a writer hangs would wait
    /// for the others with all locks held: so it is locked first, and for a limited time.
    ///
    /// # Errors
    /// [`Error::MemberStalled`]: then no member is locked.
    fn lock_all_buckets(&self) -> Result<Vec<(&Member, LockedBuckets<'_>)>> {
        let mut members: Vec<&Member> = self.members.iter().collect();
        members.sort_by_key(|member| Reverse(member.waiting().longest));
        let until = Instant::now() + LOCK_TIME_MAX;
        let locked = members.into_iter().map(|member| {
            let stalled = || member.stalled();
            let locked =
                member.write(|store| store.lock_buckets_until(until).ok_or_else(stalled))?;
            Ok((member, locked))
        });
        locked.collect()
    }

    /// Changes a bucket: calls `change` for each store, in the order of the members.
    fn change_buckets<'a>(
        &'a self,
        bucket: &str,
        mut change: impl FnMut(&'a Store) -> Result<()>,
    ) -> Result<()> {
        let Some(shared) = &self.shared else { return change(self.members[0].store()?) };
        let _exclusive = self.begin_change(shared)?;
        if self.unequal_states(bucket)?.is_some() {
            self.settle(bucket)?;
        }
        self.members.iter().try_for_each(|member| member.write(&mut change))
    }

    /// Returns the states of a bucket in the members if they differ, because an earlier change has
    /// failed in one of them. The caller has begun a change.
    fn unequal_states(&self, bucket: &str) -> Result<Option<Vec<Option<BucketState>>>> {
        let find = |member: &Member| member.read(|store| BucketState::find(store, bucket));
        match self.members.iter().map(find).collect::<Result<Vec<_>>>() {
            Ok(states) => {
                let differ = states.windows(2).any(|pair| pair[0] != pair[1]);
                Ok(differ.then_some(states))
            }
            // What cannot be read cannot be compared: the change itself fails if it needs it.
            Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a bucket equal in all members.
    fn settle(&self, bucket: &str) -> Result<()> {
        // Only one change at a time is counted in the members for which it does not wait.
        let _calls = self.members.iter().map(Member::begin_write).collect::<Result<Vec<_>>>()?;
        settle_bucket(&self.all_stores()?, bucket)
    }

    /// Waits until no other bucket is changed. One change at a time is counted in the member for
    /// which it waits, and those behind it in none.
    ///
    /// # Errors
    /// [`Error::MemberMissing`] if a member is missing, or if the buckets of the members differ;
    /// [`Error::MemberStalled`] if one rejects calls, or if the other change waits for one: a disk
    /// that does not respond must not take the threads of all changes.
    fn begin_change<'a>(&self, shared: &'a Shared) -> Result<MutexGuard<'a, ()>> {
        if let Some(why) = &shared.unsettled {
            return Err(Error::MemberMissing { dir: self.dir().into(), why: why.clone() });
        }
        let exclusive = loop {
            if let Some(exclusive) = shared.bucket_changes.try_lock_for(CHANGE_WAIT) {
                break exclusive;
            }
            // A snapshot holds the lock, too, for as long as it takes.
            let slowest = self.members.iter().max_by_key(|member| member.waiting().longest);
            if let Some(member) = slowest.filter(|member| member.waiting().calls > 0) {
                return Err(member.stalled());
            }
        };
        // Before anything changes in the first one.
        self.members.iter().try_for_each(|member| member.begin_write().map(drop))?;
        Ok(exclusive)
    }

    /// Returns a bucket with its totals in all open members, like [`Store::bucket`].
    ///
    /// # Errors
    /// Fails like [`Store::bucket`].
    pub fn bucket(&self, bucket: &str) -> Result<BucketInfo> {
        let mut found = self.bucket_store()?.bucket(bucket)?;
        if self.shared.is_some() {
            (found.objects, found.bytes) = (0, 0);
            for store in self.stores() {
                // A bucket that is being created or deleted is not in all stores.
                let part = store.bucket(bucket).map_or((0, 0), |part| (part.objects, part.bytes));
                found.objects += part.0;
                found.bytes += part.1;
            }
        }
        Ok(found)
    }

    /// Returns all buckets, like [`Store::buckets`].
    ///
    /// # Errors
    /// Fails like [`Store::buckets`].
    pub fn buckets(&self) -> Result<Vec<BucketInfo>> {
        let mut buckets = self.bucket_store()?.buckets()?;
        if self.shared.is_some() {
            for bucket in &mut buckets {
                *bucket = self.bucket(&bucket.name).unwrap_or_else(|_deleted| bucket.clone());
            }
        }
        Ok(buckets)
    }

    /// Returns a bucket's identity, like [`Store::bucket_id`].
    ///
    /// # Errors
    /// Fails like [`Store::bucket_id`].
    pub fn bucket_id(&self, bucket: &str) -> Result<BucketId> {
        self.bucket_store()?.bucket_id(bucket)
    }

    /// Returns a bucket's settings, like [`Store::bucket_settings`].
    ///
    /// # Errors
    /// Fails like [`Store::bucket_settings`].
    pub fn bucket_settings(&self, bucket: &str) -> Result<Arc<BucketSettings>> {
        self.bucket_store()?.bucket_settings(bucket)
    }

    /// Sets or removes a bucket's setting, like [`Store::set_bucket_setting`].
    ///
    /// # Errors
    /// Fails like [`Store::set_bucket_setting`]; [`Error::MemberMissing`].
    ///
    /// # Durability
    /// The setting survives a power cut when this returns.
    pub fn set_bucket_setting(&self, bucket: &str, name: &str, value: Option<&str>) -> Result<()> {
        self.change_buckets(bucket, |store| store.set_bucket_setting(bucket, name, value))
    }

    /// Returns a bucket's versioning state, like [`Store::versioning`].
    ///
    /// # Errors
    /// Fails like [`Store::versioning`].
    pub fn versioning(&self, bucket: &str) -> Result<Versioning> {
        self.bucket_store()?.versioning(bucket)
    }

    /// Enables or suspends versioning, like [`Store::set_versioning`].
    ///
    /// # Errors
    /// Fails like [`Store::set_versioning`]; [`Error::MemberMissing`].
    ///
    /// # Durability
    /// The state survives a power cut when this returns.
    pub fn set_versioning(&self, bucket: &str, versioning: Versioning) -> Result<()> {
        self.change_buckets(bucket, |store| store.set_versioning(bucket, versioning))
    }

    /// Returns `true` if a bucket has object lock, like [`Store::has_object_lock`].
    ///
    /// # Errors
    /// Fails like [`Store::has_object_lock`].
    pub fn has_object_lock(&self, bucket: &str) -> Result<bool> {
        self.bucket_store()?.has_object_lock(bucket)
    }

    /// Enables object lock, like [`Store::enable_object_lock`].
    ///
    /// # Errors
    /// Fails like [`Store::enable_object_lock`]; [`Error::MemberMissing`].
    ///
    /// # Durability
    /// The state survives a power cut when this returns.
    pub fn enable_object_lock(&self, bucket: &str) -> Result<()> {
        self.change_buckets(bucket, |store| store.enable_object_lock(bucket))
    }

    /// Returns a bucket's default retention, like [`Store::default_retention`].
    ///
    /// # Errors
    /// Fails like [`Store::default_retention`].
    pub fn default_retention(&self, bucket: &str) -> Result<Option<DefaultRetention>> {
        self.bucket_store()?.default_retention(bucket)
    }

    /// Sets or removes a bucket's default retention, like [`Store::set_default_retention`].
    ///
    /// # Errors
    /// Fails like [`Store::set_default_retention`]; [`Error::MemberMissing`].
    ///
    /// # Durability
    /// The retention survives a power cut when this returns.
    pub fn set_default_retention(
        &self,
        bucket: &str,
        retention: Option<DefaultRetention>,
    ) -> Result<()> {
        self.change_buckets(bucket, |store| store.set_default_retention(bucket, retention))
    }

    /// Returns a bucket's lifecycle rules, like [`Store::lifecycle`].
    ///
    /// # Errors
    /// Fails like [`Store::lifecycle`].
    pub fn lifecycle(&self, bucket: &str) -> Result<Lifecycle> {
        self.bucket_store()?.lifecycle(bucket)
    }

    /// Replaces a bucket's lifecycle rules, like [`Store::set_lifecycle`].
    ///
    /// # Errors
    /// Fails like [`Store::set_lifecycle`]; [`Error::MemberMissing`].
    ///
    /// # Durability
    /// The rules survive a power cut when this returns.
    pub fn set_lifecycle(&self, bucket: &str, lifecycle: &Lifecycle) -> Result<()> {
        self.change_buckets(bucket, |store| store.set_lifecycle(bucket, lifecycle))
    }

    /// Sets a bucket's quota, like [`Store::set_quota`]: a limit on its usage in all members
    /// together.
    ///
    /// # Errors
    /// Fails like [`Store::set_quota`]; [`Error::MemberMissing`].
    ///
    /// # Durability
    /// The quota survives a power cut when this returns.
    pub fn set_quota(&self, bucket: &str, quota: Quota) -> Result<()> {
        self.change_buckets(bucket, |store| store.set_quota(bucket, quota))
    }

    /// Returns a bucket's quota and its usage in all open members, like [`Store::quota`].
    ///
    /// # Errors
    /// Fails like [`Store::quota`].
    pub fn quota(&self, bucket: &str) -> Result<QuotaState> {
        self.bucket_store()?.quota(bucket)
    }

    /// Returns the buckets that have a quota, like [`Store::quotas`].
    #[must_use]
    pub fn quotas(&self) -> Vec<QuotaState> {
        self.bucket_store().map(Store::quotas).unwrap_or_default()
    }

    /// Returns the owners that have a quota, like [`Store::owner_quotas`].
    #[must_use]
    pub fn owner_quotas(&self) -> Vec<QuotaState> {
        self.bucket_store().map(Store::owner_quotas).unwrap_or_default()
    }

    /// Checks that the quotas allow a write, like [`Store::check_quota`].
    ///
    /// # Errors
    /// Fails like [`Store::check_quota`].
    pub fn check_quota(&self, bucket: &str, added: Usage) -> Result<()> {
        self.bucket_store()?.check_quota(bucket, added)
    }

    /// Replaces the quotas of all owners, like [`Store::set_owner_quotas`].
    ///
    /// # Errors
    /// Fails like [`Store::set_owner_quotas`].
    pub fn set_owner_quotas(&self, quotas: &BTreeMap<String, Quota>) -> Result<()> {
        // All members have the same buckets and share the quotas.
        self.bucket_store()?.set_owner_quotas(quotas)
    }
}
