//! Volume indexes: the heads of all needles, in separate files.
//!
//! They make opening a store fast, and they record the content of damaged ranges: a request for a
//! key whose newest needle is in one fails with an error that names the range, and a deletion stays
//! known.

pub(crate) mod format;
pub(crate) mod pending;
pub(crate) mod ranges;
mod reader;
mod writer;

pub(crate) use reader::{read, read_after};
pub(crate) use writer::IndexWriter;
