//! The index files, and the catalog that lists them: their formats, and how they are loaded.
//!
//! A checkpoint contains exactly the needles before a log position. Its files are the sorted runs
//! of keys, the location table with later changes to it, and the catalog, which also contains the
//! index's small parts: buckets, uploads, big files and volumes. All of these are derived from the
//! volumes. Missing or damaged files are rebuilt.

pub(crate) mod chunks;
pub(crate) mod due;
pub(crate) mod files;
pub(crate) mod format;
pub(crate) mod load;
pub(crate) mod merge_signal;
