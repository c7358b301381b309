//! Reads the writes to be made from a stream of records, or from a list of files.

mod list;
mod record;

pub use list::{ListLine, ListLineError, list_lines};
pub use record::{Record, RecordError, RecordParts};
