//! Edits the bytes of files as an input describes.

use haul_disk_sim::Medium;

use crate::input::Input;

/// The maximum number of edits of an input.
const EDITS_MAX: usize = 8;

/// The longest file that an edit may make.
const FILE_BYTES_MAX: usize = 4 << 20;

/// A file to edit, and the offsets in it that edits are relative to, such as those of its records.
#[derive(Debug, Clone)]
pub(crate) struct Editable {
    /// The name of the file.
    pub(crate) name: String,
    /// The offsets, at least one.
    pub(crate) places: Vec<usize>,
}

impl Editable {
    /// Returns a file with the offsets of its first bytes, and of every 512th of the bytes that are
    /// not zeros at the end of the file.
    #[must_use]
    pub(crate) fn by_sectors(name: &str, bytes: &[u8]) -> Self {
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        // At most 128 places, so that a byte selects any of them.
        let step = used.div_ceil(128).next_multiple_of(512).max(512);
        let mut places: Vec<usize> = (0..used.max(1)).step_by(step).collect();
        places.push(used.saturating_sub(64));
        Self { name: name.to_owned(), places }
    }
}

/// Executes the edits of the rest of an input. Returns the names of the edited files.
pub(crate) fn edit_files<'a>(
    input: &mut Input<'_>,
    medium: &mut Medium,
    files: &'a [Editable],
) -> Vec<&'a str> {
    let mut edited = Vec::new();
    while !input.is_empty() && edited.len() < EDITS_MAX {
        let file = input.choose(files);
        edit(input, &mut medium.file(&file.name), &file.places);
        edited.push(file.name.as_str());
    }
    edited.sort_unstable();
    edited.dedup();
    edited
}

/// Executes one edit of a file.
pub(crate) fn edit(input: &mut Input<'_>, file: &mut Vec<u8>, places: &[usize]) {
    let kind = input.byte() % 8;
    let at = place(input, file.len(), places);
    match kind {
        0 => {
            let bit = input.byte() % 8;
            if let Some(byte) = file.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        1 => {
            let count = usize::from(input.byte());
            overwrite(file, at, input.take(count));
        }
        2 => overwrite(file, at, &input.array::<1>()),
        3 => overwrite(file, at, &input.array::<4>()),
        4 => overwrite(file, at, &input.array::<8>()),
        5 => {
            let end = file.len().min(at + usize::from(input.short()));
            file[at..end].fill(0);
        }
        6 => {
            let from = place(input, file.len(), places);
            let bytes = usize::from(input.short()).min(file.len() - at.max(from));
            file.copy_within(from..from + bytes, at);
        }
        // Truncates the file, or extends it by zeros.
        _ => match input.byte() {
            0 => file.truncate(at),
            pages => file.resize((at + usize::from(pages) * 4096).min(FILE_BYTES_MAX), 0),
        },
    }
}

/// Reads an offset in a file, at most its length: up to 255 bytes after one of the places.
fn place(input: &mut Input<'_>, length: usize, places: &[usize]) -> usize {
    let start = *input.choose(places);
    (start + usize::from(input.byte())).min(length)
}

fn overwrite(file: &mut [u8], at: usize, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(file.len() - at)];
    file[at..at + bytes.len()].copy_from_slice(bytes);
}
