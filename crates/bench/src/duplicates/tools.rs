//! Lists the compared tools and their settings, and parses their results. Performs no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::named::named;

named! {
    /// The state of the page cache and of the tool's own cache.
    pub(super) enum State {
        Cold = "cold",
        Warm = "warm",
        /// The page cache is warm, and an earlier run has filled the tool's own cache.
        Rerun = "rerun",
    }
}

named! {
    /// A program that finds duplicates.
    pub(super) enum Tool {
        Haul = "haul",
        Fclones = "fclones",
        Yadf = "yadf",
        Jdupes = "jdupes",
        Rdfind = "rdfind",
        Czkawka = "czkawka",
    }
}

/// A placeholder argument for the file to which a tool writes its results.
const OUT: &str = "\0out";

/// A setting of a tool: its name, and its options.
type Setting = (&'static str, &'static [&'static str]);

impl Tool {
    pub(super) fn program(self) -> &'static str {
        if self == Self::Czkawka { "czkawka_cli" } else { self.name() }
    }

    /// Returns the settings that may be the tool's fastest; if `cached` is `true`, only settings that
    /// use the tool's own cache.
    pub(super) fn settings(self, cached: bool) -> &'static [Setting] {
        match (self, cached) {
            (Self::Haul, true) => &[("--cache", &["--cache"])],
            (Self::Fclones, true) => &[("--cache", &["--cache"])],
            (_, true) => &[],
            (Self::Haul, false) => &[("default", &[])],
            // By default, fclones uses one thread on a disk that reports itself as rotational, as
            // many virtual disks do.
            (Self::Fclones, false) => &[("default", &[]), ("--threads 8", &["--threads", "8"])],
            (Self::Yadf, false) => &[("default", &[])],
            // Without -Q jdupes compares all bytes, which no other tool does.
            (Self::Jdupes, false) => &[("-Q", &["-Q"]), ("default", &[])],
            (Self::Rdfind, false) => &[("default", &[])],
            (Self::Czkawka, false) => &[("default", &[]), ("-t XXH3", &["-t", "XXH3"])],
        }
    }

    /// Returns the arguments to search `root`, with the results on stdout or in the file `out`.
    pub(super) fn arguments(self, options: &[&str], root: &Path, out: &Path) -> Vec<OsString> {
        let (before, after): (&[&str], &[&str]) = match self {
            Self::Haul => (&["dups", "--no-ignore", "--hidden", "--format", "fdupes"], &[]),
            Self::Fclones => {
                (&["-q", "group", "--no-ignore", "--hidden", "--format", "fdupes"], &[])
            }
            Self::Yadf => (&["--no-empty", "--format", "fdupes"], &[]),
            Self::Jdupes => (&["-r", "-q"], &[]),
            Self::Rdfind => (&["-outputname", OUT], &[]),
            Self::Czkawka => (&["dup", "-m", "1", "-H", "-W", "-N", "-C", OUT], &["-d"]),
        };
        let word = |word: &&str| if *word == OUT { out.into() } else { (*word).into() };
        let words = before.iter().chain(options).chain(after).map(word);
        words.chain([root.into()]).collect()
    }

    /// Parses the results of the tool from its stdout or its output file.
    pub(super) fn groups(self, stdout: &[u8], out: &[u8]) -> Groups {
        match self {
            Self::Rdfind => from_rdfind(out),
            Self::Czkawka => from_czkawka(out),
            _ => from_fdupes(stdout),
        }
    }
}

/// A tool in one of its settings.
#[derive(Debug, Clone)]
pub(super) struct Competitor {
    pub(super) tool: Tool,
    pub(super) program: PathBuf,
    pub(super) setting: Setting,
    pub(super) state: State,
}

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
fn from_fdupes(text: &[u8]) -> Groups {
    let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    groups(lines.split(|line| line.is_empty()).map(|lines| lines.iter().map(|l| path(l)).collect()))
}

/// Parses the table of rdfind, whose columns are: kind, id (positive for the first file of a group,
/// the same number negated for its copies), depth, size, device, inode, priority, name.
fn from_rdfind(text: &[u8]) -> Groups {
    let mut sets: BTreeMap<u64, BTreeSet<PathBuf>> = BTreeMap::new();
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
fn from_czkawka(text: &[u8]) -> Groups {
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
        for text in [&b""[..], b"\n\n", b"{}", b"not json"] {
            assert!(from_fdupes(text).is_empty() && from_rdfind(text).is_empty());
            assert!(from_czkawka(text).is_empty());
        }
    }
}
