//! The file store of Haul as a target of puts.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_file_store::{Attributes, Options, Precondition, Store};

use super::objects::key;
use crate::log::{Contender, Failure};

const BUCKET: &str = "bench";

/// A file store with default options, in which every put stores a new object.
pub(super) struct ObjectStore {
    store: Store,
    attributes: Attributes,
    next: AtomicU64,
}

impl ObjectStore {
    /// Creates a store in the directory `store` below `dir`.
    pub(super) fn open(dir: &Path) -> Result<Self, Failure> {
        let (store, _recovered) = Store::open(&dir.join("store"), Options::default())?;
        store.create_bucket(BUCKET)?;
        Ok(Self { store, attributes: Attributes::new(), next: AtomicU64::new(0) })
    }
}

impl Contender for ObjectStore {
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        let key = key(self.next.fetch_add(1, Ordering::Relaxed));
        self.store.put(BUCKET, &key, record, &self.attributes, &Precondition::None)?;
        Ok(())
    }
}
