//! Determines the objects of the benchmarks: their keys and bytes.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use haul_file_store::{Attributes, NewObject, Precondition, Store};

use crate::log::Failure;
use crate::test_file::{evict_all, files_below};

/// Returns the key of the object with this number. All targets and rivals use the same keys.
#[must_use]
pub fn key(number: u64) -> String {
    format!("files/{number:010}")
}

/// Objects of the same bytes, but for their number, with which each begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbered<'a> {
    /// The bytes of an object, at least 8; its number replaces the first 8.
    pub(crate) content: &'a [u8],
}

impl Numbered<'_> {
    /// Returns the bytes of an object; `buffer` is empty, or has the bytes of another object.
    pub(crate) fn bytes<'a>(&self, number: u64, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        if buffer.is_empty() {
            buffer.extend_from_slice(self.content);
        }
        buffer[..8].copy_from_slice(&number.to_le_bytes());
        buffer
    }
}

/// The number of objects that a call stores.
const BATCH: usize = 100;

/// Stores the first `count` objects in `bucket`. When this returns, all of them are durable.
pub(super) fn fill(
    store: &Store,
    bucket: &str,
    objects: Numbered<'_>,
    count: u64,
) -> Result<(), Failure> {
    let (attributes, precondition) = (&Attributes::new(), &Precondition::None);
    for from in (0..count).step_by(BATCH) {
        let keyed = (from..count).take(BATCH).map(|number| {
            let mut bytes = Vec::new();
            objects.bytes(number, &mut bytes);
            (key(number), bytes)
        });
        let keyed: Vec<_> = keyed.collect();
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
    let files: Vec<_> = files_below(dir)?.iter().map(open).collect::<Result<_, _>>()?;
    Ok(evict_all(&files.iter().collect::<Vec<_>>(), LEFT_MAX)?)
}
