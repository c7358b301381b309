//! From the bytes of segments to records.

pub(crate) mod feeder;
pub(crate) mod reader;
pub(crate) mod scan;
pub(crate) mod segment_reader;
