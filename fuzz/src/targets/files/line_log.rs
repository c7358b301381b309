//! Edits the files of a line log, reads a range of it, and continues the log.
//!
//! The input selects the log, and has the name of a file to add, the range in seconds, and edits.

use std::time::{Duration, UNIX_EPOCH};

use haul_line_log::TimeRange;

use crate::edit::edit_files;
use crate::formats::line_log::LINE_LOGS;
use crate::input::Input;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let base = input.choose(&LINE_LOGS);
    let name_bytes = usize::from(input.byte());
    let name = String::from_utf8_lossy(input.take(name_bytes)).into_owned();
    let flags = input.byte();
    let mut moment = |flag: u8| {
        let seconds = 1_795_245_700 + u64::from(input.short());
        (flags & flag != 0).then(|| UNIX_EPOCH + Duration::from_secs(seconds))
    };
    let range = TimeRange { since: moment(1), until: moment(2) };
    let mut medium = base.medium.clone();
    edit_files(&mut input, &mut medium, &base.files);
    base.check(&medium, &name, range);
}
