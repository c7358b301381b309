//! Checkpoints of the index, so that opening a store reads only the end of the log: when they are
//! written, the merging of runs, and the thread that also writes the indexes of volumes.

pub(crate) mod index_thread;
pub(crate) mod merge;
pub(crate) mod write;
