//! Lists the compared tools, the settings of each that may be its fastest, and their arguments.

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::groups::{Groups, from_czkawka, from_fdupes, from_rdfind};
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

impl Tool {
    fn rivals() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|tool| *tool != Self::Haul)
    }

    fn program(self) -> &'static str {
        if self == Self::Czkawka { "czkawka_cli" } else { self.name() }
    }

    /// Returns `true` if the tool reads files in physical or inode order on a spinning disk.
    pub(super) fn sorts(self) -> bool {
        matches!(self, Self::Haul | Self::Fclones | Self::Rdfind)
    }

    /// Returns the names and arguments of the tool's settings; if `cached` is `true`, only settings
    /// that use the tool's own cache.
    fn forms(self, cached: bool) -> &'static [(&'static str, &'static [&'static str])] {
        match (self, cached) {
            (Self::Haul, false) => &[("default", &[])],
            (Self::Haul, true) => &[("--cache", &["--cache"])],
            // By default, fclones uses one thread on a rotational disk.
            (Self::Fclones, false) => &[
                ("default", &[]),
                ("--threads 2", &["--threads", "2"]),
                ("--threads 8", &["--threads", "8"]),
                ("--threads 32", &["--threads", "32"]),
            ],
            (Self::Fclones, true) => &[
                ("--cache", &["--cache"]),
                ("--cache --threads 8", &["--cache", "--threads", "8"]),
            ],
            (Self::Yadf, false) => {
                &[("default", &[]), ("--io-threads 16", &["--io-threads", "16"])]
            }
            // Without -Q jdupes compares all bytes, which no other tool does.
            (Self::Jdupes, false) => &[("-Q", &["-Q"]), ("default", &[])],
            (Self::Rdfind, false) => &[("default", &[]), ("-checksum md5", &["-checksum", "md5"])],
            (Self::Czkawka, false) => &[("default", &[]), ("-t XXH3", &["-t", "XXH3"])],
            (_, true) => &[],
        }
    }

    /// Returns the arguments to search `root`, with the results on stdout or in the file `out`.
    fn arguments(self, options: &[&str], root: &Path, out: &Path) -> Vec<OsString> {
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
    pub(super) form: String,
    program: PathBuf,
    options: &'static [&'static str],
    pub(super) state: State,
    /// `true` to run the tool with the disk set to non-rotational.
    pub(super) as_solid: bool,
}

impl fmt::Display for Competitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tool.fmt(f)
    }
}

impl Competitor {
    pub(super) fn arguments(&self, root: &Path, out: &Path) -> Vec<OsString> {
        self.tool.arguments(self.options, root, out)
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }
}

/// Returns `haul` and the rivals found in the directories of `path`, each in all its settings. If
/// `in_doubt` is `true`, the disk may report itself as rotational wrongly; then fclones is also
/// returned with the disk set to non-rotational.
pub(super) fn competitors(
    haul: &Path,
    path: &OsStr,
    state: State,
    in_doubt: bool,
) -> Vec<Competitor> {
    let found = |tool: Tool| {
        split_paths(path).map(|dir| dir.join(tool.program())).find(|program| program.is_file())
    };
    let rivals = Tool::rivals().filter_map(|tool| Some((tool, found(tool)?)));
    let tools = std::iter::once((Tool::Haul, haul.to_path_buf())).chain(rivals);
    let mut all: Vec<Competitor> = tools
        .flat_map(|(tool, program)| {
            tool.forms(state == State::Rerun).iter().map(move |(form, options)| Competitor {
                tool,
                form: (*form).to_owned(),
                program: program.clone(),
                options,
                state,
                as_solid: false,
            })
        })
        .collect();
    let corrected = all.iter().position(|one| one.tool == Tool::Fclones && in_doubt);
    if let Some(at) = corrected {
        let form = format!("{}, rotational 0", all[at].form);
        all.insert(at + 1, Competitor { form, as_solid: true, ..all[at].clone() });
    }
    all
}

/// Returns the programs of the rivals that are not installed.
pub(super) fn missing(path: &OsStr) -> Vec<&'static str> {
    let is_installed =
        |tool: &Tool| split_paths(path).any(|dir| dir.join(tool.program()).is_file());
    Tool::rivals().filter(|tool| !is_installed(tool)).map(|tool| tool.program()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_tools_compete_in_all_settings() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["fclones", "rdfind"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let path = dir.path().as_os_str();
        let haul = Path::new("/somewhere/haul");
        let forms = |state, in_doubt| {
            let all = competitors(haul, path, state, in_doubt);
            all.iter().map(|one| format!("{} {}", one.tool.name(), one.form)).collect::<Vec<_>>()
        };
        assert_eq!(
            forms(State::Warm, true),
            [
                "haul default",
                "fclones default",
                "fclones default, rotational 0",
                "fclones --threads 2",
                "fclones --threads 8",
                "fclones --threads 32",
                "rdfind default",
                "rdfind -checksum md5",
            ]
        );
        assert_eq!(
            forms(State::Rerun, false),
            ["haul --cache", "fclones --cache", "fclones --cache --threads 8"]
        );
        assert_eq!(missing(path), ["yadf", "jdupes", "czkawka_cli"]);
    }

    #[test]
    fn searched_directory_is_the_last_argument() {
        for tool in Tool::rivals() {
            let words = tool.arguments(&["--option"], Path::new("/root"), Path::new("/out"));
            assert_eq!(words.last().unwrap(), "/root", "{tool:?}");
            assert!(words.iter().any(|word| word == "--option"));
        }
    }
}
