//! Stores with parts that are only in the copy: read by range, fetched in the background, or
//! dropped from the local disk while they are cold.

mod cache;
pub(crate) mod catalog;
pub(crate) mod disk;
mod exchange;
mod file;
pub(crate) mod lazy_cache;
pub(crate) mod stub;
pub(crate) mod thread;

pub use disk::TieredDisk;
pub use thread::{Tier, TierStatus};
