//! Reads the writes to make from a record stream, or from a file list.

mod list;
mod record;

pub use list::{ListLine, ListLineError, list_lines};
pub use record::{Record, RecordError, RecordParts};
