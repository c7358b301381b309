//! Bucket settings: named texts, such as an owner or a policy, whose meaning is up to the caller.
//! [`cache`] has the settings of buckets that were used before.

pub(crate) mod cache;
pub(crate) mod check;
