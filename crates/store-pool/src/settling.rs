//! Makes the buckets of all members equal when a pool is opened, and a bucket before it changes: an
//! earlier change may have failed in one of them.
//!
//! A change of a bucket goes through the members in their order. If it stopped in between, the
//! first members have it, so the first open member decides. There is one exception: a bucket that
//! was deleted from some members while another was missing may have got objects since; it is
//! created again.

use std::collections::BTreeSet;

use haul_file_store::{
    Attributes, BucketId, Error, Lifecycle, NewBucket, Quota, Result, Store, Versioning,
};

/// What a bucket has on each member.
#[derive(Debug, PartialEq)]
pub(crate) struct BucketState {
    id: BucketId,
    settings: Attributes,
    lifecycle: Lifecycle,
    versioning: Versioning,
    has_object_lock: bool,
    quota: Quota,
}

impl BucketState {
    fn read(store: &Store, bucket: &str) -> Result<Self> {
        Ok(Self {
            id: store.bucket_id(bucket)?,
            settings: (**store.bucket_settings(bucket)?).clone(),
            lifecycle: store.lifecycle(bucket)?,
            versioning: store.versioning(bucket)?,
            has_object_lock: store.has_object_lock(bucket)?,
            quota: store.quota(bucket)?.quota,
        })
    }

    /// Returns what a bucket has on a member; `None` if it does not exist.
    pub(crate) fn find(store: &Store, bucket: &str) -> Result<Option<Self>> {
        match Self::read(store, bucket) {
            Err(Error::NoSuchBucket { .. }) => Ok(None),
            found => found.map(Some),
        }
    }
}

/// Makes the buckets of all `stores` equal; they are in the order of the members.
///
/// # Errors
/// A store whose buckets are unknown because of damage, or differ in a way that no interrupted
/// change leaves behind; a failed write.
pub(crate) fn settle(stores: &[&Store]) -> Result<()> {
    names(stores)?.iter().try_for_each(|bucket| settle_bucket(stores, bucket))
}

/// Makes a bucket equal in all `stores`, like [`settle`].
///
/// # Errors
/// Fails like [`settle`].
pub(crate) fn settle_bucket(stores: &[&Store], bucket: &str) -> Result<()> {
    let Some((first, others)) = stores.split_first() else { return Ok(()) };
    if BucketState::find(first, bucket)?.is_none() {
        finish_deletion(first, others, bucket)?;
    }
    let Some(state) = BucketState::find(first, bucket)? else { return Ok(()) };
    others.iter().try_for_each(|other| make_equal(first, other, bucket, &state))
}

/// Gives a store that was restored from its copy the buckets and settings of another member, and
/// removes what no longer belongs to it: the keys of buckets that were deleted since, and keys that
/// are not its own, because they were moved to other members.
///
/// # Errors
/// A store whose buckets or keys are unknown because of damage; a failed write.
pub(crate) fn settle_restored(
    reference: &Store,
    restored: &Store,
    is_own: impl Fn(&str, &str) -> bool,
) -> Result<()> {
    for bucket in names(&[restored])? {
        let is_same = match reference.bucket_id(&bucket) {
            Ok(id) => restored.bucket_id(&bucket)? == id,
            Err(Error::NoSuchBucket { .. }) => false,
            Err(error) => return Err(error),
        };
        discard_keys(restored, &bucket, |key| !is_same || !is_own(&bucket, key))?;
        if !is_same {
            restored.delete_bucket(&bucket)?;
        }
    }
    for bucket in names(&[reference])? {
        let state = BucketState::read(reference, &bucket)?;
        make_equal(reference, restored, &bucket, &state)?;
    }
    Ok(())
}

/// The keys that are looked up together.
const PAGE_KEYS: usize = 1000;

/// Removes the keys of a bucket for which `is_gone` returns `true`.
fn discard_keys(store: &Store, bucket: &str, is_gone: impl Fn(&str) -> bool) -> Result<()> {
    let mut after = None::<String>;
    loop {
        let keys = store.stored_keys(bucket, after.as_deref(), PAGE_KEYS)?;
        keys.iter()
            .filter(|key| is_gone(key))
            .try_for_each(|key| store.discard_key(bucket, key))?;
        match keys.into_iter().last() {
            Some(last) => after = Some(last),
            None => return Ok(()),
        }
    }
}

fn names(stores: &[&Store]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for store in stores {
        names.extend(store.buckets()?.into_iter().map(|bucket| bucket.name));
    }
    Ok(names)
}

/// Deletes a bucket that the first member no longer has, or creates it there again if it is used.
fn finish_deletion(first: &Store, others: &[&Store], bucket: &str) -> Result<()> {
    let having: Vec<&&Store> =
        others.iter().filter(|other| other.bucket_id(bucket).is_ok()).collect();
    for other in &having {
        match other.lock_buckets().check_empty(bucket) {
            Ok(()) => {}
            Err(Error::BucketNotEmpty { .. }) => {
                let state = BucketState::read(other, bucket)?;
                return make_equal(other, first, bucket, &state);
            }
            Err(error) => return Err(error),
        }
    }
    having.into_iter().try_for_each(|other| other.delete_bucket(bucket))
}

/// Gives a bucket of `other` the state and the identity that it has in `first`.
fn make_equal(first: &Store, other: &Store, bucket: &str, state: &BucketState) -> Result<()> {
    let id = state.id;
    match other.bucket_id(bucket) {
        Ok(same) if same == id => {}
        Ok(_different) => {
            // An empty one may be deleted; any other is an error.
            other.delete_bucket(bucket)?;
            create(other, bucket, state, id)?;
        }
        Err(Error::NoSuchBucket { .. }) => create(other, bucket, state, id)?,
        Err(error) => return Err(error),
    }
    let has = BucketState::read(other, bucket)?;
    if has.versioning != state.versioning {
        other.set_versioning(bucket, state.versioning)?;
    }
    if has.has_object_lock != state.has_object_lock {
        // If only the other has it, this cannot be undone, and fails below.
        first.enable_object_lock(bucket)?;
        other.enable_object_lock(bucket)?;
    }
    if has.lifecycle != state.lifecycle {
        other.set_lifecycle(bucket, &state.lifecycle)?;
    }
    if has.quota != state.quota {
        other.set_quota(bucket, state.quota)?;
    }
    let changed =
        state.settings.iter().filter(|(name, value)| has.settings.get(name) != Some(value));
    for (name, value) in changed {
        other.set_bucket_setting(bucket, name, Some(value))?;
    }
    for (name, _) in has.settings.iter().filter(|(name, _)| state.settings.get(name).is_none()) {
        other.set_bucket_setting(bucket, name, None)?;
    }
    Ok(())
}

fn create(store: &Store, bucket: &str, state: &BucketState, id: BucketId) -> Result<()> {
    let (settings, has_object_lock) = (state.settings.clone(), state.has_object_lock);
    store.create_bucket_with(bucket, &NewBucket { settings, has_object_lock, id: Some(id) })
}
