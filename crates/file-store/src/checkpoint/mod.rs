//! Index checkpoints, so that opening a store reads only the log's end: when they are written, how
//! runs are merged, and the thread that also writes volume indexes.

pub(crate) mod index_thread;
pub(crate) mod merge;
pub(crate) mod write;
