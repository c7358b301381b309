//! Object lock: retention periods and legal holds that protect versions from removal.
//!
//! A version's lock is in its attributes (`lock`), so a lock changes with the attributes, and
//! recovery, compaction and copies need to know nothing about locks. `bucket` has a bucket's state:
//! an internal bucket exists if locks are enabled in it, so that no request reads this state from
//! the disk; the default retention is a bucket setting.
//!
//! Each function that removes a version calls `check`, while it holds the key's lock. A move to
//! another store does not: it removes a version that the other store has, with its lock.

pub(crate) mod bucket;
pub(crate) mod check;
pub(crate) mod lock;
mod operations;
mod utc;
