//! Edits the segments of an append log, opens the log, and checks what it delivers.
//!
//! The input selects a log and the mode for damage, and has edits of the segments. With the flag 1,
//! the checksums are set after the edits.

use crate::edit::edit_files;
use crate::formats::log::LOGS;
use crate::formats::segment;
use crate::input::Input;
use haul_append_log::OnDamage;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let base = input.choose(&LOGS);
    let flags = input.byte();
    let on_damage = if flags & 2 == 0 { OnDamage::Report } else { OnDamage::Refuse };
    let has_checksums = flags & 1 != 0;
    let mut medium = base.medium.clone();
    for name in edit_files(&mut input, &mut medium, &base.files) {
        if has_checksums {
            segment::set_checksums(&mut medium.file(name));
        }
    }
    base.check(&mut medium, has_checksums, on_damage);
}
