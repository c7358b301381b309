//! Reads and verifies the records of segments.

pub(crate) mod batch;
pub(crate) mod read_ahead;
pub(crate) mod scan;
pub(crate) mod segment_reader;
