//! The rules by which objects expire and stale uploads are aborted, without I/O: when an object
//! expires, when a bucket is swept, how rules are stored, and the rules in memory.

pub(crate) mod format;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod schedule;
pub(crate) mod state;
pub(crate) mod stats;
pub(crate) mod tags;
