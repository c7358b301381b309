//! Sorted runs: immutable files of keys, each with a value or a deletion mark.
//!
//! Runs are the part of a log-structured merge tree (LSM tree) that is on the disk. Entries of a
//! newer run replace those of older runs. All bytes are checksummed, and all are derived data: the
//! caller removes a damaged run and rebuilds it from the log.
//!
//! # Cost
//! An open run costs one separator (a prefix of a key) and 12 bytes of memory for each block of
//! 16 KiB: 0.16 bytes for each entry with a key of 46 bytes and a value of 40 bytes. Before it is
//! compressed, such an entry has 3.3 bytes besides its value and the bytes in which its key differs
//! from the preceding one. Looking up a key is one read of a block. A cursor reads each block once,
//! and several blocks with one read while it advances.
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
