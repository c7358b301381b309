//! Object lock: retention periods and legal holds that protect versions from removal.
//!
//! The lock of a version is in its attributes (`lock`), so a change of a lock is a change of
//! attributes, and recovery, compaction and copies need to know nothing about locks. `bucket` has
//! the state of a bucket: an internal bucket exists if locks are enabled in it, so that no request
//! reads this state from the disk; the default retention is a setting of the bucket.
//!
//! Each function that removes a version calls `check`, while it holds the lock of the key.

pub(crate) mod bucket;
mod check;
pub(crate) mod lock;
mod operations;
mod utc;
