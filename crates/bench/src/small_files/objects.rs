//! Determines the objects of the benchmarks: their keys and bytes.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use haul_file_store::{Attributes, NewObject, Precondition, Store};
use haul_testing::files_below;

use crate::log::Failure;
use crate::test_file::{evict_one, evict_until};

/// Returns the key of the object with this number. All targets and rivals use the same keys.
#[must_use]
pub fn key(number: u64) -> String {
    format!("files/{number:010}")
}

/// Returns the bytes of the object with this number: `content`, whose first 8 bytes the number
/// replaces.
pub(super) fn numbered(content: &[u8], number: u64) -> Vec<u8> {
    let mut bytes = content.to_vec();
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// The number of objects that a call stores: few enough that the store prepares its volumes for
/// short batches, of less than 288 KiB, too.
const BATCH: usize = 50;

/// Stores the first `count` objects in `bucket`. When this returns, all of them are durable.
pub(super) fn fill(store: &Store, bucket: &str, content: &[u8], count: u64) -> Result<(), Failure> {
    let (attributes, precondition) = (&Attributes::new(), &Precondition::None);
    for from in (0..count).step_by(BATCH) {
        let numbers = (from..count).take(BATCH);
        let keyed: Vec<_> = numbers.map(|it| (key(it), numbered(content, it))).collect();
        let new = keyed.iter();
        let new = new.map(|(key, bytes)| NewObject { key, bytes, attributes, precondition });
        let new: Vec<_> = new.collect();
        store.put_many(bucket, &new).into_iter().try_for_each(|outcome| outcome.map(drop))?;
    }
    Ok(())
}

/// The bytes that may stay in the page cache: a page may be in use when it is evicted.
const LEFT_MAX: u64 = 1 << 20;

/// Writes back the files below `dir`, and evicts them from the page cache.
pub(super) fn evict_below(dir: &Path) -> Result<(), Failure> {
    rustix::fs::sync();
    let open = |path: &PathBuf| File::open(path).map(OwnedFd::from);
    let files: Vec<_> = files_below(dir).iter().map(open).collect::<Result<_, _>>()?;
    Ok(evict_until(LEFT_MAX, || files.iter().map(evict_one).sum())?)
}
