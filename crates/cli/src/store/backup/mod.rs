//! Copies of a store: snapshots in directories, and restoration from a remote object store.

pub(super) mod restore;
mod restore_pool;
mod restore_report;
pub(super) mod snapshot;
