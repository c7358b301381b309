//! The lifecycle of data in a bucket: rules by which objects expire and stale uploads are aborted,
//! and the sweep that applies them.
//!
//! `rules` and `schedule` are pure: which object expires when, and which bucket is swept when.
//! `config` stores the rules in the needle of the bucket, in the form that `format` defines.
//! `page` finds expired keys, `expire` deletes them, `sweep` combines both, and `thread` sweeps in
//! the background.

pub(crate) mod config;
mod expire;
mod format;
mod page;
pub(crate) mod rules;
mod schedule;
pub(crate) mod stats;
pub(crate) mod sweep;
pub(crate) mod thread;
