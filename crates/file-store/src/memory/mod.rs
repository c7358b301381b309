//! An open store's memory beside its index: reusable buffers, and objects that are locked in the
//! page cache.

pub(crate) mod buffers;
pub(crate) mod locked;
