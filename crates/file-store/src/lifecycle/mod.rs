//! Lifecycle rules, without I/O: when an object expires, when a bucket is swept, how rules are
//! stored, and the cached rules.

pub(crate) mod format;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod schedule;
pub(crate) mod state;
pub(crate) mod stats;
pub(crate) mod tags;
