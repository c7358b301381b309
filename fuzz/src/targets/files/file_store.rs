//! Edits the files of a file store, opens the store, and checks what it returns.
//!
//! The input selects the store, and has edits of its files. With the flag 1, the checksums are set
//! after the edits.

use crate::edit::edit_files;
use crate::formats::store::STORES;
use crate::formats::store_files;
use crate::input::Input;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let base = input.choose(&STORES);
    let has_checksums = input.byte() & 1 != 0;
    let mut medium = base.medium.clone();
    let edited = edit_files(&mut input, &mut medium, &base.files);
    if has_checksums {
        for name in &edited {
            store_files::set_checksums(name, &mut medium.file(name));
        }
    }
    base.check(&medium, edited.len(), has_checksums);
}
