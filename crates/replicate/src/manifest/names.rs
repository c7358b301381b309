//! The names of a copy's objects, relative to its prefix.

use super::{Chunk, HistoryEntry, IndexFile, SegmentCopy};

/// The manifest's name, the only object that is replaced.
pub(crate) const MANIFEST: &str = "manifest";

/// The chunk folder.
pub(crate) const LOG: &str = "log/";

/// The index file folder.
pub(crate) const INDEX: &str = "index/";

/// The big-object file folder.
pub(crate) const FILES: &str = "files/";

/// The folder for kept manifests.
pub(crate) const HISTORY: &str = "history/";

/// The store's local volume directory.
pub(crate) const VOLUMES: &str = "volumes";

/// The local directory for big-object files.
pub(crate) const BIG_FILES: &str = "objects";

/// The local directory for index files.
pub(crate) const INDEX_FILES: &str = "index";

/// The local name of a file that is being fetched.
pub(crate) const UNFINISHED: &str = "FETCHED.new";

/// Returns the name of a chunk. Writers of different epochs never use the same name, because they
/// may have written different bytes to the same range.
pub(crate) fn chunk(segment: &SegmentCopy, chunk: &Chunk) -> String {
    let (number, nonce) = (segment.number, segment.nonce);
    let Chunk { from, to, epoch, .. } = chunk;
    format!("{LOG}{number:010}-{nonce:016x}/{from:08x}-{to:08x}-{epoch}")
}

/// Returns the name of a big object's file. Its identifier is never used again.
pub(crate) fn file(name: &str) -> String {
    format!("{FILES}{name}")
}

pub(crate) fn index_file(file: &IndexFile) -> String {
    format!("{INDEX}{}-{:08x}-{}", file.name.replace('/', "-"), file.checksum, file.epoch)
}

/// Returns a kept manifest's name. Writers of different epochs never use the same name.
pub(crate) fn history(entry: &HistoryEntry) -> String {
    format!("{HISTORY}{:010}-{}", entry.generation, entry.epoch)
}

/// `true` if [`history`] returns names with this form.
pub(crate) fn is_history(name: &str) -> bool {
    name.strip_prefix(HISTORY).and_then(|rest| rest.split_once('-')).is_some_and(
        |(generation, epoch)| is_decimal(generation) && generation.len() >= 10 && is_decimal(epoch),
    )
}

/// `true` if [`chunk`] returns names with this form. Another copy's prefix may lie below this
/// copy's prefix, so the name of every listed object is checked.
pub(crate) fn is_chunk(name: &str) -> bool {
    let Some((segment, range)) = name.strip_prefix(LOG).and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    let range: Vec<_> = range.split('-').collect();
    let is_segment = segment.split_once('-').is_some_and(|(number, nonce)| {
        is_decimal(number) && number.len() >= 10 && is_hex(nonce, 16)
    });
    let is_range = matches!(range[..], [from, to, epoch]
        if is_hex(from, 8) && is_hex(to, 8) && is_decimal(epoch));
    is_segment && is_range
}

/// `true` if [`index_file`] returns names with this form.
pub(crate) fn is_index_file(name: &str) -> bool {
    let parts = name.strip_prefix(INDEX).map(|rest| rest.split('-').collect::<Vec<_>>());
    matches!(parts.as_deref(), Some(["index", file, checksum, epoch])
        if !file.contains('/') && is_hex(checksum, 8) && is_decimal(epoch))
}

/// `true` if [`file`] returns names with this form.
pub(crate) fn is_file(name: &str) -> bool {
    name.strip_prefix(FILES)
        .and_then(|rest| rest.strip_prefix("objects/"))
        .is_some_and(|id| is_hex(id, 32))
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::HEADER_BYTES;

    #[test]
    fn names_are_recognized_and_those_of_a_copy_below_are_not() {
        let a_chunk = Chunk { from: 0, to: 5000, epoch: 12, checksum: 1 };
        let segment = SegmentCopy {
            number: u32::MAX,
            nonce: 7,
            header: [0; HEADER_BYTES],
            is_complete: false,
            chunks: Vec::new(),
        };
        let index =
            |name: &str| IndexFile { name: name.to_owned(), bytes: 1, epoch: 3, checksum: 9 };
        let big_file = format!("objects/{:032x}", 5);
        let names = [
            chunk(&segment, &a_chunk),
            index_file(&index("index/CATALOG")),
            index_file(&index("index/0000000001.keys")),
            file(&big_file),
            history(&HistoryEntry { written_ms: 1, generation: 70, epoch: 3 }),
        ];
        let kind =
            |name: &str| [is_chunk(name), is_index_file(name), is_file(name), is_history(name)];
        assert_eq!(kind(&names[0]), [true, false, false, false]);
        assert_eq!(kind(&names[1]), [false, true, false, false]);
        assert_eq!(kind(&names[2]), [false, true, false, false]);
        assert_eq!(kind(&names[3]), [false, false, true, false]);
        assert_eq!(kind(&names[4]), [false, false, false, true]);
        for folder in [LOG, INDEX, FILES, HISTORY, "other/"] {
            for name in names.iter().map(String::as_str).chain([MANIFEST]) {
                let below = format!("{folder}{name}");
                assert_eq!(kind(&below), [false; 4], "{below}");
            }
        }
    }
}
