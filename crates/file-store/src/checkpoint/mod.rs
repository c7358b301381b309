//! Checkpoints: the index on disk, so that opening a store reads only the end of the log.
//!
//! A checkpoint contains exactly the needles before one place of the log. Its files are the sorted
//! runs of keys, the location table with later changes to it, and a catalog, which lists the files
//! and has the small rest: buckets, uploads, big files and volumes. All of it is derived from the
//! volumes. Whatever is missing or damaged is rebuilt.

mod chunks;
pub(crate) mod due;
pub(crate) mod files;
pub(crate) mod format;
pub(crate) mod load;
pub(crate) mod merge;
pub(crate) mod merge_signal;
pub(crate) mod write;
