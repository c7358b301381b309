//! The settings of buckets: named texts, such as an owner or a policy, whose meaning is up to the
//! caller.
//!
//! They are attributes of the needle of the bucket, beside the rules of its lifecycle: `needle`
//! reads and replaces this needle. `cache` has the settings of buckets that were used before.

pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod needle;
mod requests;
