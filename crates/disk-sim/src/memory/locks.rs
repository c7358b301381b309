//! Implements directory and file locks on the disk in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_disk::{Lock, Locked};
use parking_lot::Mutex;

/// A locked directory or file. A file is identified by its number, which does not change when the
/// file is renamed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockedNode {
    Dir(String),
    File(usize),
}

/// The held locks with their holders' descriptions. Clones share the same locks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Locks(Arc<Mutex<BTreeMap<LockedNode, String>>>);

/// A guard that releases a lock when it is dropped.
#[derive(Debug)]
struct Guard {
    locks: Locks,
    node: LockedNode,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.locks.0.lock().remove(&self.node);
    }
}

impl Locks {
    pub(crate) fn take(&self, node: LockedNode, holder: &str) -> Locked {
        let mut held = self.0.lock();
        if let Some(holder) = held.get(&node) {
            return Locked::HeldBy(holder.clone());
        }
        held.insert(node.clone(), holder.to_owned());
        drop(held);
        Locked::Acquired(Lock::new(Guard { locks: self.clone(), node }))
    }
}
