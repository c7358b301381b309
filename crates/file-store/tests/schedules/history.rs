//! Records the states of objects that threads store and delete, and compares a store with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use haul_file_store::{Attributes, Precondition, Store};
use haul_sync::shuttle::future::block_on;

use crate::{BUCKET, get, put};

/// The number of keys. One thread changes each key.
pub(crate) const KEYS: usize = 3;

/// The states of all keys. State 0 is that of the prepared disk; each change leads to the next one.
///
/// The atomic numbers are not those of the model, so threads do not switch between two of them.
#[derive(Debug, Default, Clone)]
pub(crate) struct History(Arc<[Key; KEYS]>);

/// The last state of a key to which a change has begun, and the last acknowledged one.
#[derive(Debug, Default)]
struct Key {
    begun: AtomicUsize,
    acknowledged: AtomicUsize,
}

/// The way of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Put,
    /// A put that occupies no thread.
    Start,
    Delete,
}

/// The changes of each key, in order.
pub(crate) type Changes = [&'static [Change]; KEYS];

/// Returns the name of a key.
pub(crate) fn name(key: usize) -> String {
    format!("key-{key}")
}

/// Returns the content of a key after `state` changes; `None` if the object was deleted.
pub(crate) fn content(changes: &Changes, key: usize, state: usize) -> Option<Vec<u8>> {
    let is_deleted = state > 0 && changes[key][state - 1] == Change::Delete;
    let byte = u8::try_from(16 * key + state).unwrap();
    (!is_deleted).then(|| vec![byte; 100 + 1000 * state])
}

impl History {
    /// Returns the acknowledged state of each key.
    pub(crate) fn acknowledged(&self) -> [usize; KEYS] {
        std::array::from_fn(|key| self.0[key].acknowledged.load(Relaxed))
    }

    /// Makes all changes of a key.
    pub(crate) fn run(&self, store: &Store, changes: &Changes, key: usize) {
        for (state, change) in (1..).zip(changes[key]) {
            self.0[key].begun.store(state, Relaxed);
            let bytes = content(changes, key, state).unwrap_or_default();
            match change {
                Change::Put => put(store, &name(key), &bytes),
                Change::Start => start(store, &name(key), &bytes),
                Change::Delete => assert!(store.delete(BUCKET, &name(key)).unwrap()),
            }
            self.0[key].acknowledged.store(state, Relaxed);
        }
    }

    /// Checks that the store has a state of a key that is not older than `oldest`, nor newer than
    /// the last change that has begun.
    pub(crate) fn check_key(&self, store: &Store, changes: &Changes, key: usize, oldest: usize) {
        let found = get(store, &name(key));
        let newest = self.0[key].begun.load(Relaxed);
        let is_found = |state| content(changes, key, state) == found;
        let begin = found.as_ref().map(|bytes| (bytes.len(), bytes[0]));
        assert!((oldest..=newest).any(is_found), "{key} in {oldest}..={newest}: {begin:?}");
    }

    /// Checks all keys, see [`Self::check_key`].
    pub(crate) fn check(&self, store: &Store, changes: &Changes, oldest: [usize; KEYS]) {
        for (key, oldest) in oldest.into_iter().enumerate() {
            self.check_key(store, changes, key, oldest);
        }
    }
}

/// Stores an object without occupying a thread, unless that would block.
fn start(store: &Store, key: &str, bytes: &[u8]) {
    let none = Attributes::new();
    match store.start_put(BUCKET, key, bytes, &none, &Precondition::None).unwrap() {
        Some(pending) => drop(block_on(pending).unwrap()),
        None => put(store, key, bytes),
    }
}

/// Stores the first state of all keys.
pub(crate) fn store_first(store: &Store) {
    for key in 0..KEYS {
        put(store, &name(key), &content(&[&[]; KEYS], key, 0).unwrap());
    }
}
