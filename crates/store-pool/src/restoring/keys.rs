//! Reads which slots the keys of restored stores have.

use std::collections::BTreeMap;
use std::thread;

use haul_file_store::{BucketId, Error, Result, Store};

use crate::restoring::plan::{Holding, SharedSlot, shared_slots};
use crate::slots::{SLOTS, SlotHash};

/// The keys that are looked up together.
const PAGE_KEYS: usize = 1000;

/// A member whose store is open for reading.
pub(super) struct OpenCopy {
    pub(super) member: u16,
    /// The time of its copy.
    pub(super) written_ms: u64,
    pub(super) store: Store,
}

/// What the members have of the slots.
pub(super) struct Holdings {
    pub(super) holdings: Vec<Holding>,
    pub(super) shared: BTreeMap<usize, SharedSlot>,
}

/// Reads the slots of all keys, of all members at once. Keys of buckets that `reference` does not
/// have are left out: they are removed when the pool is opened.
///
/// # Errors
/// [`Error::Invalid`] if three members have keys of a slot; a store that cannot be read.
pub(super) fn read_holdings(
    members: &[OpenCopy],
    reference: usize,
    hash: SlotHash,
) -> Result<Holdings> {
    let buckets = bucket_ids(&members[reference].store)?;
    let read = |member: &OpenCopy| {
        let mut slots = vec![false; SLOTS];
        each_key(&member.store, &buckets, |bucket, key| {
            slots[hash.slot(bucket, key)] = true;
            Ok(())
        })?;
        Ok(Holding { member: member.member, written_ms: member.written_ms, slots })
    };
    let holdings: Result<Vec<Holding>> = thread::scope(|scope| {
        let reading: Vec<_> =
            members.iter().map(|member| scope.spawn(move || read(member))).collect();
        let panicked = || Err(Error::Stopped { what: "reading the keys of a member panicked" });
        reading.into_iter().map(|read| read.join().unwrap_or_else(|_| panicked())).collect()
    });
    let holdings = holdings?;
    let mut shared = shared_slots(&holdings).map_err(|what| Error::Invalid { what })?;
    compare(members, &buckets, hash, &mut shared)?;
    Ok(Holdings { holdings, shared })
}

/// Finds the member with the newer states of each shared slot. Only current objects count: while a
/// key is moved, its current object comes last to the new member, so that an older version may be
/// the newest one there.
fn compare(
    members: &[OpenCopy],
    buckets: &BTreeMap<String, BucketId>,
    hash: SlotHash,
    shared: &mut BTreeMap<usize, SharedSlot>,
) -> Result<()> {
    for (index, member) in members.iter().enumerate() {
        if shared.values().all(|pair| pair.members[0] != index) {
            continue;
        }
        each_key(&member.store, buckets, |bucket, key| {
            let pair = shared.get_mut(&hash.slot(bucket, key));
            let Some(pair) = pair.filter(|pair| pair.members[0] == index) else { return Ok(()) };
            let stores = pair.members.map(|index| &members[index].store);
            let [Some(one), Some(other)] = [0, 1].map(|it| stored_at(stores[it], bucket, key))
            else {
                return Ok(());
            };
            let (one, other) = (one?, other?);
            pair.has_newer[0] |= one > other;
            pair.has_newer[1] |= other > one;
            Ok(())
        })?;
    }
    Ok(())
}

/// Returns when the current object of a key was stored; `None` if there is none.
fn stored_at(store: &Store, bucket: &str, key: &str) -> Option<Result<std::time::SystemTime>> {
    match store.stat(bucket, key) {
        Ok(info) => Some(Ok(info.modified)),
        Err(Error::NoSuchKey { .. } | Error::NoSuchBucket { .. }) => None,
        Err(error) => Some(Err(error)),
    }
}

fn bucket_ids(store: &Store) -> Result<BTreeMap<String, BucketId>> {
    let buckets = store.buckets()?.into_iter();
    buckets.map(|bucket| Ok((bucket.name.clone(), store.bucket_id(&bucket.name)?))).collect()
}

/// Calls `each` for all keys of these buckets.
fn each_key(
    store: &Store,
    buckets: &BTreeMap<String, BucketId>,
    mut each: impl FnMut(&str, &str) -> Result<()>,
) -> Result<()> {
    for (bucket, id) in bucket_ids(store)? {
        if buckets.get(&bucket) != Some(&id) {
            continue;
        }
        let mut after = None::<String>;
        loop {
            let keys = store.stored_keys(&bucket, after.as_deref(), PAGE_KEYS)?;
            keys.iter().try_for_each(|key| each(&bucket, key))?;
            match keys.into_iter().last() {
                Some(last) => after = Some(last),
                None => break,
            }
        }
    }
    Ok(())
}
