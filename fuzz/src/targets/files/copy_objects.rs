//! Edits the objects of a copy in an object store, such as its manifest, and restores the copy.
//!
//! With the flag 1, the checksum of the manifest is set after the edits. Each edit begins with the
//! number of its object.

use crate::edit::edit;
use crate::formats::copy::{COPY, set_checksum};
use crate::input::Input;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let has_checksum = input.byte() & 1 != 0;
    let mut edited: Vec<(usize, Vec<u8>)> = Vec::new();
    for _ in 0..8 {
        if input.is_empty() {
            break;
        }
        let number = usize::from(input.byte()) % COPY.objects.len();
        let at = edited.iter().position(|one| one.0 == number).unwrap_or_else(|| {
            edited.push((number, COPY.objects[number].bytes.clone()));
            edited.len() - 1
        });
        let bytes = &mut edited[at].1;
        let step = bytes.len().div_ceil(255).max(32);
        let places: Vec<usize> = (0..bytes.len().max(1)).step_by(step).collect();
        edit(&mut input, bytes, &places);
    }
    if let Some((_, manifest)) = edited.iter_mut().find(|one| one.0 == 0 && has_checksum) {
        set_checksum(manifest);
    }
    COPY.check(&edited, has_checksum);
}
