//! Sweeps, which apply the lifecycle rules of buckets.
//!
//! `config` stores the rules in the bucket's needle. `page` finds expired keys, `expire` deletes
//! them, `uploads` aborts uploads, `versions` removes older versions and delete markers, and `tags`
//! reads the tags that decide. `sweep` combines them, `expirable` only lists what a sweep would
//! delete, and `thread` sweeps in the background once the `gate` is open.

mod config;
pub(crate) mod expirable;
mod expire;
pub(crate) mod gate;
mod page;
mod requests;
mod sweep;
mod tags;
pub(crate) mod thread;
mod uploads;
mod versions;
