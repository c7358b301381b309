//! Finds the file of a request: in caches, in memory of the kernel, or on a disk thread.

pub(crate) mod cache;
pub(crate) mod disk_threads;
pub(crate) mod encoded_forms;
pub(crate) mod finder;
pub(crate) mod root;
pub(crate) mod single_flight;
