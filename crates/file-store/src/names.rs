//! The names of all files in a store. Pure.

/// The marker file, which identifies the directory as a store and contains the store's version.
pub(crate) const MARKER: &str = "STORE";

/// A file with this name in a store's directory means that parts of the store are only in its
/// remote copy. Such a store opens only on a disk that has these parts and hides the file.
pub const REMOTE_MARKER: &str = "REMOTE";

pub(crate) const MANIFESTS: [&str; 2] = ["MANIFEST", "MANIFEST.copy"];

/// The directory of the log whose segments are the volumes.
pub(crate) const VOLUMES: &str = "volumes";

/// The directory with big objects' files.
pub(crate) const OBJECTS: &str = "objects";

/// The index directory, whose files are derived from the volumes.
pub(crate) const INDEX: &str = "index";

/// The catalog in the index directory: the list of the index files.
pub(crate) const CATALOG: &str = "CATALOG";

const UNFINISHED: &str = ".new";
const VOLUME_INDEX: &str = ".index";

/// Returns `true` if a store has a file or a directory of this name in its own directory.
#[must_use]
pub fn is_root_name(name: &str) -> bool {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    [MARKER, REMOTE_MARKER, VOLUMES, OBJECTS, INDEX].contains(&name) || MANIFESTS.contains(&name)
}

/// Returns the temporary name of a file that is not complete.
pub(crate) fn unfinished(name: &str) -> String {
    format!("{name}{UNFINISHED}")
}

/// Returns `true` for a big object's temporary name.
pub(crate) fn is_unfinished_big_file(name: &str) -> bool {
    name.strip_suffix(UNFINISHED).and_then(parse_big_file).is_some()
}

/// Returns the name of a volume's index, in the volumes directory.
pub(crate) fn index(volume: u32) -> String {
    format!("{volume:010}{VOLUME_INDEX}")
}

/// Returns the number of the volume to which an index belongs.
pub(crate) fn parse_index(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(VOLUME_INDEX)?;
    (digits.len() == 10).then(|| digits.parse().ok())?
}

/// Returns the number of the volume with this file name.
pub(crate) fn parse_volume(name: &str) -> Option<u32> {
    let number = name.get(..10)?.parse().ok()?;
    (haul_append_log::segment_name(number) == name).then_some(number)
}

/// Returns `true` for the temporary name of a volume's index.
pub(crate) fn is_unfinished_index(name: &str) -> bool {
    name.strip_suffix(UNFINISHED).and_then(parse_index).is_some()
}

/// The kinds of index files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexFile {
    /// A sorted run of keys.
    Run,
    /// The location table.
    Locations,
    /// Changes to the location table.
    Changes,
}

/// Returns an index file's name.
pub(crate) fn index_file(kind: IndexFile, number: u64) -> String {
    let suffix = match kind {
        IndexFile::Run => "keys",
        IndexFile::Locations => "locations",
        IndexFile::Changes => "changes",
    };
    format!("{number:010}.{suffix}")
}

/// Returns an index file's number.
pub(crate) fn parse_index_file(name: &str) -> Option<u64> {
    let number = name.split_once('.')?.0.parse().ok()?;
    let kinds = [IndexFile::Run, IndexFile::Locations, IndexFile::Changes];
    kinds.iter().any(|kind| index_file(*kind, number) == name).then_some(number)
}

/// Returns the name of a big object's file.
pub(crate) fn big_file(id: u128) -> String {
    format!("{id:032x}")
}

/// Returns the ID of the file with this name.
pub(crate) fn parse_big_file(name: &str) -> Option<u128> {
    let id = u128::from_str_radix(name, 16).ok()?;
    (big_file(id) == name).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back() {
        for id in [0, 1, u128::MAX] {
            assert_eq!(parse_big_file(&big_file(id)), Some(id));
            assert_eq!(parse_big_file(&unfinished(&big_file(id))), None);
            assert!(is_unfinished_big_file(&unfinished(&big_file(id))));
            assert!(!is_unfinished_big_file(&big_file(id)));
        }
        assert_eq!(parse_big_file("+0000000000000000000000000000001"), None);
        assert!(!is_unfinished_big_file("report.new"));
        assert_eq!(parse_index(&index(7)), Some(7));
        assert!(is_unfinished_index(&unfinished(&index(7))));
        assert_eq!(parse_volume("0000000007.segment"), Some(7));
        for other in ["0000000007.segment.new", "0000000007.index", "+000000007.segment", "7"] {
            assert_eq!(parse_volume(other), None, "{other}");
        }
        assert_eq!(parse_index("0000000007.segment"), None);
        for kind in [IndexFile::Run, IndexFile::Locations, IndexFile::Changes] {
            assert_eq!(parse_index_file(&index_file(kind, 12)), Some(12));
        }
        assert_eq!(parse_index_file("0000000012.index"), None);
    }
}
