//! Bucket settings: named texts, such as an owner or a policy, whose meaning is up to the caller.
//! [`cache`] keeps them in memory.

pub(crate) mod cache;
pub(crate) mod check;
