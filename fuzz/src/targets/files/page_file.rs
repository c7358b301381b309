//! Edits the log of a page file or of a patch, and recovers the file.
//!
//! The input selects the file, and has edits of the segments of its log. With the flag 1, the
//! checksums are set after the edits.

use crate::edit::edit_files;
use crate::formats::page_file::PAGE_FILES;
use crate::formats::segment;
use crate::input::Input;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let base = input.choose(&PAGE_FILES);
    let has_checksums = input.byte() & 1 != 0;
    let mut medium = base.medium.clone();
    for name in edit_files(&mut input, &mut medium, &base.files) {
        if has_checksums {
            segment::set_checksums(&mut medium.file(name));
        }
    }
    base.check(&medium, has_checksums);
}
