//! Parses the output of each tool into sets of identical files. Performs no I/O.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Sets of identical files.
pub(super) type Groups = BTreeSet<BTreeSet<PathBuf>>;

fn path(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_path_buf()
}

/// Returns the sets that have at least two files.
fn groups(sets: impl Iterator<Item = BTreeSet<PathBuf>>) -> Groups {
    sets.filter(|set| set.len() > 1).collect()
}

/// Parses the format of fdupes: one path per line, and an empty line between groups.
pub(super) fn from_fdupes(text: &[u8]) -> Groups {
    let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    groups(lines.split(|line| line.is_empty()).map(|lines| lines.iter().map(|l| path(l)).collect()))
}

/// Parses the table of rdfind, whose columns are: kind, id (positive for the first file of a group,
/// the same number negated for its copies), depth, size, device, inode, priority, name.
pub(super) fn from_rdfind(text: &[u8]) -> Groups {
    let mut sets: std::collections::BTreeMap<u64, BTreeSet<PathBuf>> = Default::default();
    for line in text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"DUPTYPE_")) {
        let mut fields = line.splitn(8, |byte| *byte == b' ').skip(1);
        let id = fields.next().and_then(|id| str::from_utf8(id).ok()?.parse::<i64>().ok());
        if let (Some(id), Some(name)) = (id, fields.nth(5)) {
            sets.entry(id.unsigned_abs()).or_default().insert(path(name));
        }
    }
    groups(sets.into_values())
}

/// Parses the JSON of czkawka: an object that maps each file length to a list of groups. A group is
/// a list of objects with a `path`.
pub(super) fn from_czkawka(text: &[u8]) -> Groups {
    let Ok(json) = serde_json::from_slice::<serde_json::Value>(text) else { return Groups::new() };
    let by_length = json.as_object().into_iter().flatten();
    let lists = by_length.flat_map(|(_, lists)| lists.as_array().into_iter().flatten());
    groups(lists.map(|list| {
        let files = list.as_array().into_iter().flatten();
        files.filter_map(|file| Some(file["path"].as_str()?.into())).collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> Groups {
        let set = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        [set(&["/a b", "/c"]), set(&["/d", "/e", "/f"])].into_iter().collect()
    }

    #[test]
    fn all_formats_have_the_same_groups() {
        assert_eq!(from_fdupes(b"/c\n/a b\n\n/f\n/e\n/d\n\n/alone\n"), expected());
        let rdfind = b"# Automatically generated\n\
            # duptype id depth size device inode priority name\n\
            DUPTYPE_FIRST_OCCURRENCE 1 0 3 65024 11 1 /a b\n\
            DUPTYPE_WITHIN_SAME_TREE -1 0 3 65024 12 1 /c\n\
            DUPTYPE_FIRST_OCCURRENCE 4 0 5 65024 13 1 /d\n\
            DUPTYPE_WITHIN_SAME_TREE -4 0 5 65024 14 1 /e\n\
            DUPTYPE_WITHIN_SAME_TREE -4 0 5 65024 15 1 /f\n# end of file\n";
        assert_eq!(from_rdfind(rdfind), expected());
        let czkawka = br#"{"3":[[{"path":"/a b","size":3},{"path":"/c","size":3}]],
            "5":[[{"path":"/d"},{"path":"/e"},{"path":"/f"}]]}"#;
        assert_eq!(from_czkawka(czkawka), expected());
    }

    #[test]
    fn empty_and_invalid_results_have_no_groups() {
        for text in [&b""[..], b"\n\n", b"{}", b"not json"] {
            assert!(from_fdupes(text).is_empty() && from_rdfind(text).is_empty());
            assert!(from_czkawka(text).is_empty());
        }
    }
}
