//! The lifecycle of data in a bucket: rules by which objects expire and stale uploads are aborted,
//! and the sweep that applies them.
//!
//! `rules` and `schedule` are pure: they compute when an object expires and when a bucket is swept.
//! `config` stores the rules in the needle of the bucket, in the format that `format` defines, and
//! `state` caches them in memory. `page` finds expired keys, `expire` deletes them, `uploads`
//! aborts uploads, `versions` removes older versions and delete markers, and `tags` reads the tags
//! that decide. All `report` each change, `sweep` combines them, `expirable` only lists what a sweep
//! would delete, and `thread` sweeps in the background.

mod config;
pub(crate) mod expirable;
mod expire;
pub(crate) mod format;
mod page;
pub(crate) mod report;
mod requests;
pub(crate) mod rules;
mod schedule;
pub(crate) mod state;
pub(crate) mod stats;
mod sweep;
pub(crate) mod tags;
pub(crate) mod thread;
mod uploads;
mod versions;
