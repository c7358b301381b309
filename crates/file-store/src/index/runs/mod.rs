//! Sorted runs: immutable files of keys, each with a value or a tombstone.
//!
//! Runs are the on-disk part of a log-structured merge tree (LSM tree). Entries in newer runs
//! replace entries in older ones. All bytes are checksummed, and all are derived data: the caller
//! removes a damaged run and rebuilds it from the log.
//!
//! # Cost
//! An open run uses one separator (a key's prefix) and 12 bytes of memory per block of 16 KiB: 0.16
//! bytes per entry with a 46-byte key and a 40-byte value. Uncompressed, such an entry has 3.3
//! bytes in addition to its value and the suffix in which its key differs from the previous one.
//! Looking up a key reads one block. A cursor reads each block once, and several blocks with one
//! read while it advances. A run keeps the unpacked blocks in which the last cursors ended, up to 8
//! of at most 32 KiB, for the next pages of their listings.
//!
//! # Sources
//! \[ONeil96\] the LSM tree, \[LevelDBTable\] blocks with prefix compression and a block index, RFC
//! 8878 the compression.

mod block;
mod block_index;
pub(crate) mod cursor;
mod format;
pub(crate) mod merge;
pub(crate) mod merge_runs;
mod packed;
pub(crate) mod plan;
#[cfg(test)]
mod plan_simulation;
pub(crate) mod run;
pub(crate) mod source;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
