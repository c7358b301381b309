//! Copies of a store: snapshots in directories, and restoration from a remote object store.

pub(super) mod restore;
pub(super) mod snapshot;
