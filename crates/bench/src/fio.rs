//! States for a row the command line of fio that measures the same.
//!
//! # Sources
//! The manual page of fio; fio counts a write together with its sync.

use crate::report::{Column, Value};

/// The column with the command lines.
pub(crate) const COLUMN: Column = Column::text("fio", "fio").rank(12);

/// The beginning of each command line. FILE stands for the file of the benchmark.
const BEGIN: &str = "fio --name=haul --filename=FILE ";

/// Returns the cell of a row with the command line of these options; a row that fio cannot measure
/// has none.
pub(crate) fn cell(options: Option<String>) -> Value {
    options.map_or(Value::NotMeasured, |options| Value::Text(BEGIN.to_owned() + &options))
}
