//! Parses the search command in the header of a report, because actions on the report need some of
//! its options.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use haul_bulk_read::digest::HashKind;

use super::Header;
use super::options::{Argument, split};
use crate::transform::TransformOptions;

/// The names of the search command: `dups` of haul, and `group` of fclones.
const COMMANDS: [&str; 2] = ["dups", "group"];

/// Subcommands. If one of these words follows the name of the search command, the command is not a
/// search.
const SUBCOMMANDS: [&str; 6] = ["remove", "link", "symlink", "dedupe", "move", "help"];

/// The contents to report, selected by their number of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// Contents with more replicas than this number: 1 finds duplicates.
    Over(usize),
    /// Contents with fewer replicas than this number: 2 finds unique files.
    Under(usize),
}

/// The search that wrote a report. Options without effect on actions are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The search reported the contents whose number of replicas is in this range.
    pub replication: Replication,
    /// `true` if all files below one of the paths count as one replica.
    pub isolate: bool,
    /// `true` if each hard link counts as a replica; `false` if all links to a file count as one.
    pub match_links: bool,
    /// The absolute base directory of relative paths.
    pub base: PathBuf,
    /// The paths as given; `None` if they were read from stdin.
    pub paths: Option<Vec<PathBuf>>,
    /// The command whose output was compared; `None` if file contents were compared.
    pub transform: Option<String>,
    /// The options of `transform`.
    pub transform_options: TransformOptions,
    /// The hash function.
    pub hash: HashKind,
}

impl Header {
    /// Parses the command of the search; returns `None` if it is not a search command of haul or
    /// fclones.
    #[must_use]
    pub fn search(&self) -> Option<Search> {
        let at = self.command.iter().position(|word| COMMANDS.iter().any(|name| word == name))?;
        let words = &self.command[at + 1..];
        if words.first().is_some_and(|word| SUBCOMMANDS.iter().any(|name| word == name)) {
            return None;
        }
        let mut search = Search {
            replication: Replication::Over(1),
            isolate: false,
            match_links: false,
            base: self.base.clone(),
            paths: Some(Vec::new()),
            transform: None,
            transform_options: TransformOptions::default(),
            hash: HashKind::Xxh3,
        };
        let mut is_stdin = false;
        for argument in split(words)? {
            match argument {
                Argument::Path(path) => search.paths.get_or_insert_default().push(path.into()),
                Argument::Option("stdin", _) => is_stdin = true,
                Argument::Option(name, value) => search.set(name, value)?,
            }
        }
        if is_stdin {
            search.paths = None;
        }
        Some(search)
    }
}

impl Search {
    fn set(&mut self, name: &str, value: OsString) -> Option<()> {
        let count = |value: OsString| value.to_str()?.parse().ok();
        match name {
            "rf-over" => self.replication = Replication::Over(count(value)?),
            "rf-under" => self.replication = Replication::Under(count(value)?),
            "unique" => self.replication = Replication::Under(2),
            "isolate" => self.isolate = true,
            "match-links" => self.match_links = true,
            "base-dir" => self.base = absolute_path(&self.base, Path::new(&value)),
            "transform" => self.transform = Some(value.into_string().ok()?),
            "in-place" => self.transform_options.in_place = true,
            "no-copy" => self.transform_options.no_copy = true,
            "hash-fn" => self.hash = hash(&value)?,
            _ => {}
        }
        Some(())
    }

    /// Returns the number of replicas to keep by default.
    #[must_use]
    pub fn keep_count(&self) -> usize {
        match self.replication {
            Replication::Over(over) => over,
            Replication::Under(_) => 1,
        }
    }

    /// Returns the absolute paths that were searched; returns `None` if they were read from stdin.
    #[must_use]
    pub fn roots(&self) -> Option<Vec<PathBuf>> {
        let here = [PathBuf::from(".")];
        let paths = self.paths.as_ref()?;
        let paths = if paths.is_empty() { &here[..] } else { paths };
        Some(paths.iter().map(|path| absolute_path(&self.base, path)).collect())
    }
}

/// Returns a hash function by its name on the command line.
fn hash(name: &OsStr) -> Option<HashKind> {
    Some(match name.to_str()? {
        "blake3" => HashKind::Blake3,
        "xxh3-128" | "xxh3" | "xxhash" | "metro" => HashKind::Xxh3,
        "sha256" => HashKind::Sha256,
        "sha512" => HashKind::Sha512,
        "sha3-256" => HashKind::Sha3_256,
        "sha3-512" => HashKind::Sha3_512,
        "md5" => HashKind::Md5,
        _ => return None,
    })
}

/// Returns `path` resolved against `base`. Symbolic links are resolved only if the path contains
/// `..`: if the directory before `..` is a symbolic link, `..` refers to the parent of the link's
/// target.
#[must_use]
pub fn absolute_path(base: &Path, path: &Path) -> PathBuf {
    let joined = base.join(path);
    if joined.components().any(|part| part == Component::ParentDir) {
        return joined.canonicalize().unwrap_or(joined);
    }
    joined.components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Stats, Timestamp};

    fn search(command: &[&str]) -> Option<Search> {
        let header = Header {
            program: String::new(),
            timestamp: Timestamp(0),
            command: command.iter().map(OsString::from).collect(),
            base: "/base".into(),
            stats: Stats::default(),
        };
        header.search()
    }

    #[test]
    fn searches_of_haul_and_fclones_are_parsed() {
        for command in [
            &["haul", "dups", "-n", "2", "-I", "a", "/b"][..],
            &["haul", "-v", "dups", "a", "/b", "--isolate", "--rf-over=2"],
            &["fclones", "-q", "group", "-I", "a", "/b", "-n", "2", "--hash-fn", "metro"],
        ] {
            let search = search(command).unwrap();
            assert_eq!((search.keep_count(), search.isolate), (2, true), "{command:?}");
            let roots = search.roots().unwrap();
            assert_eq!(roots, ["/base/a", "/b"].map(PathBuf::from), "{command:?}");
        }
    }

    #[test]
    fn options_of_actions_are_inherited() {
        let line = "dups -H --unique --transform cat --no-copy --base-dir d --hash-fn sha256";
        let search = search(&line.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!((search.replication, search.keep_count()), (Replication::Under(2), 1));
        assert_eq!(
            (search.match_links, search.isolate, search.hash),
            (true, false, HashKind::Sha256)
        );
        assert_eq!(search.transform.as_deref(), Some("cat"));
        assert!(search.transform_options.no_copy && !search.transform_options.in_place);
        assert_eq!(search.roots().unwrap(), [PathBuf::from("/base/d")]);
    }

    #[test]
    fn other_commands_are_refused() {
        for command in [
            &["jdupes", "."][..],
            &["haul", "dups", "remove"],
            &["haul", "dups", "-q"],
            &["haul", "dups", "-n", "two"],
            &["haul", "dups", "--hash-fn", "crc"],
            &[],
        ] {
            assert_eq!(search(command), None, "{command:?}");
        }
        assert_eq!(search(&["haul", "dups", "--stdin", "-I"]).unwrap().roots(), None);
    }

    #[test]
    fn relative_paths_start_at_the_base() {
        for (path, expected) in
            [("a/b", "/x/a/b"), (".", "/x"), ("./a/./b", "/x/a/b"), ("/a//b/", "/a/b"), ("", "/x")]
        {
            assert_eq!(absolute_path(Path::new("/x"), Path::new(path)), Path::new(expected));
        }
        assert_eq!(absolute_path(Path::new("/usr"), Path::new("../")), Path::new("/"));
    }
}
