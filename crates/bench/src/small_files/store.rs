//! The file store of Haul as a target of puts.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_file_store::{Attributes, Options, Precondition, Store};

use super::group_commit::FILE_BYTES;
use super::objects::key;
use crate::log::{Contender, Failure};

const BUCKET: &str = "bench";

/// The objects that are overwritten have together as many bytes as the file of the floor.
const OVERWRITTEN_BYTES: u64 = FILE_BYTES;

/// A file store with default options, except for the length of a big object.
pub(super) struct ObjectStore {
    store: Store,
    attributes: Attributes,
    next: AtomicU64,
    /// The number of different keys.
    keys: u64,
}

impl ObjectStore {
    /// Creates a store below `dir`, in which every put stores a new object.
    pub(super) fn of_new_objects(dir: &Path, big_object_bytes: u64) -> Result<Self, Failure> {
        Self::open(dir, u64::MAX, big_object_bytes)
    }

    /// Creates a store below `dir`, in which every put overwrites an object of `file_bytes` bytes;
    /// the objects are overwritten in turn.
    pub(super) fn of_overwritten_objects(
        dir: &Path,
        file_bytes: usize,
        big_object_bytes: u64,
    ) -> Result<Self, Failure> {
        Self::open(dir, (OVERWRITTEN_BYTES / file_bytes as u64).max(1), big_object_bytes)
    }

    fn open(dir: &Path, keys: u64, big_object_bytes: u64) -> Result<Self, Failure> {
        let options = Options { big_object_bytes, ..Options::default() };
        let (store, _recovered) = Store::open(&dir.join("store"), options)?;
        store.create_bucket(BUCKET)?;
        Ok(Self { store, attributes: Attributes::new(), next: AtomicU64::new(0), keys })
    }
}

impl Contender for ObjectStore {
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        let key = key(self.next.fetch_add(1, Ordering::Relaxed) % self.keys);
        self.store.put(BUCKET, &key, record, &self.attributes, &Precondition::None)?;
        Ok(())
    }
}
