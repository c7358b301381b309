//! The tools, with the settings that are best for each.

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::groups::{Groups, from_czkawka, from_fdupes, from_rdfind};

/// Which program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tool {
    Haul,
    Fclones,
    Yadf,
    Jdupes,
    Rdfind,
    Czkawka,
}

/// Stands for the file in which a tool tells what it found.
const OUT: &str = "\0out";

impl Tool {
    const RIVALS: [Self; 5] =
        [Self::Fclones, Self::Yadf, Self::Jdupes, Self::Rdfind, Self::Czkawka];

    /// As a key of ratios.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Haul => "haul",
            Self::Fclones => "fclones",
            Self::Yadf => "yadf",
            Self::Jdupes => "jdupes",
            Self::Rdfind => "rdfind",
            Self::Czkawka => "czkawka",
        }
    }

    fn program(self) -> &'static str {
        if self == Self::Czkawka { "czkawka_cli" } else { self.name() }
    }

    /// Whether it asks for files in the order in which they lie on a spinning disk, or of inodes.
    pub(super) fn sorts(self) -> bool {
        matches!(self, Self::Haul | Self::Fclones | Self::Rdfind)
    }

    /// Its settings: their name, and the words of the command line.
    fn forms(self, cached: bool) -> &'static [(&'static str, &'static [&'static str])] {
        match (self, cached) {
            (Self::Haul, false) => &[("default", &[])],
            (Self::Haul, true) => &[("--cache", &["--cache"])],
            // Its default where the disk says it rotates is one thread.
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
            // Without -Q it compares all bytes, which none of the others does while it searches.
            (Self::Jdupes, false) => &[("-Q", &["-Q"]), ("default", &[])],
            (Self::Rdfind, false) => &[("default", &[]), ("-checksum md5", &["-checksum", "md5"])],
            (Self::Czkawka, false) => &[("default", &[]), ("-t XXH3", &["-t", "XXH3"])],
            (_, true) => &[],
        }
    }

    /// The command line: search `root`, and tell the groups on stdout or in the file `out`.
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

    /// What it told, on stdout or in its file.
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
pub(super) struct Contender {
    pub(super) tool: Tool,
    pub(super) form: String,
    program: PathBuf,
    options: &'static [&'static str],
    /// It is told, for as long as it runs, that the disk does not rotate.
    pub(super) as_solid: bool,
}

impl Contender {
    pub(super) fn arguments(&self, root: &Path, out: &Path) -> Vec<OsString> {
        self.tool.arguments(self.options, root, out)
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }
}

/// Ours, which is the program `haul`, and those rivals that are found in one of the directories of
/// `path`, in all their settings. `may_lie` adds fclones on a disk that says it does not rotate.
pub(super) fn contenders(haul: &Path, path: &OsStr, cached: bool, may_lie: bool) -> Vec<Contender> {
    let found = |tool: Tool| {
        split_paths(path).map(|dir| dir.join(tool.program())).find(|program| program.is_file())
    };
    let rivals = Tool::RIVALS.into_iter().filter_map(|tool| Some((tool, found(tool)?)));
    let tools = std::iter::once((Tool::Haul, haul.to_path_buf())).chain(rivals);
    let mut all: Vec<Contender> = tools
        .flat_map(|(tool, program)| {
            tool.forms(cached).iter().map(move |(form, options)| Contender {
                tool,
                form: (*form).to_owned(),
                program: program.clone(),
                options,
                as_solid: false,
            })
        })
        .collect();
    let corrected = all.iter().position(|one| one.tool == Tool::Fclones && may_lie);
    if let Some(at) = corrected {
        let form = format!("{}, rotational 0", all[at].form);
        all.insert(at + 1, Contender { form, as_solid: true, ..all[at].clone() });
    }
    all
}

/// The rivals that are not there.
pub(super) fn missing(path: &OsStr) -> Vec<&'static str> {
    let is_there = |tool: &Tool| split_paths(path).any(|dir| dir.join(tool.program()).is_file());
    Tool::RIVALS.iter().filter(|tool| !is_there(tool)).map(|tool| tool.program()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_on_the_path_takes_part_in_all_settings() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["fclones", "rdfind"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let path = dir.path().as_os_str();
        let haul = Path::new("/somewhere/haul");
        let forms = |cached, may_lie| {
            let all = contenders(haul, path, cached, may_lie);
            all.iter().map(|one| format!("{} {}", one.tool.name(), one.form)).collect::<Vec<_>>()
        };
        assert_eq!(
            forms(false, true),
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
            forms(true, false),
            ["haul --cache", "fclones --cache", "fclones --cache --threads 8"]
        );
        assert_eq!(missing(path), ["yadf", "jdupes", "czkawka_cli"]);
    }

    #[test]
    fn command_lines_name_what_is_searched_last() {
        for tool in Tool::RIVALS {
            let words = tool.arguments(&["--option"], Path::new("/root"), Path::new("/out"));
            assert_eq!(words.last().unwrap(), "/root", "{tool:?}");
            assert!(words.iter().any(|word| word == "--option"));
        }
    }
}
