//! Checkpoints: the index on disk, so that opening a store reads only the end of the log.
//!
//! A checkpoint contains exactly the needles before a position of the log. Its files are the sorted
//! runs of keys, the location table with later changes to it, and a catalog. The catalog lists the
//! files and contains the small parts of the index: buckets, uploads, big files and volumes. All of
//! these are derived from the volumes. Missing or damaged files are rebuilt.

mod chunks;
pub(crate) mod due;
pub(crate) mod files;
pub(crate) mod format;
pub(crate) mod load;
pub(crate) mod merge;
pub(crate) mod merge_signal;
pub(crate) mod write;
