//! The settings of buckets: named texts, such as an owner or a policy, whose meaning is up to the
//! caller. [`cache`] has those of buckets that were used before.

pub(crate) mod cache;
pub(crate) mod check;
