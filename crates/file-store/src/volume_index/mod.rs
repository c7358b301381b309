//! The indexes of volumes: the heads of all needles, kept apart from the needles themselves.
//!
//! They make opening fast, and they say what a damaged place of a volume held: a key whose newest
//! needle is there answers with an error that names the place, and a deletion stays one.

pub(crate) mod format;
pub(crate) mod pending;
pub(crate) mod ranges;
mod reader;
mod writer;

pub(crate) use reader::{read, read_after};
pub(crate) use writer::IndexWriter;
