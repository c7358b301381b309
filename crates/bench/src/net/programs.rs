//! Finds programs and their versions, and builds those in Go.

use std::env::{join_paths, split_paths};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haul_measure::{Error, Result};

/// Directories of server programs, which a user's `PATH` may not contain.
const SERVER_DIRS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A program that is compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The name in reports.
    pub(crate) name: &'static str,
    /// The name of the executable file.
    pub(crate) file: &'static str,
    /// The argument that prints the version.
    pub(crate) version: &'static str,
    /// The source of the program, which the executable file, a Go compiler, builds.
    pub(crate) go_source: Option<&'static str>,
}

impl Program {
    pub(crate) const fn new(name: &'static str, file: &'static str, version: &'static str) -> Self {
        Self { name, file, version, go_source: None }
    }

    /// Returns a program that is built from Go source.
    pub(crate) const fn go(source: &'static str) -> Self {
        Self { go_source: Some(source), ..Self::new("go", "go", "version") }
    }

    pub(crate) fn is_haul(&self) -> bool {
        self.name == "haul"
    }

    /// Finds the program in the directories of `path`, and builds it in `dir` if it is in Go.
    /// Returns its path and version.
    pub(crate) fn find(&self, path: &OsStr, dir: &Path) -> Result<Option<(PathBuf, String)>> {
        let Some(program) = find(path, self.file) else { return Ok(None) };
        let version = version(&output(&program, &[self.version]));
        let built = self.go_source.map(|source| build_go(&program, path, dir, source));
        Ok(Some((built.transpose()?.unwrap_or(program), version)))
    }
}

pub(crate) const HAUL: Program = Program::new("haul", "haul", "--version");

/// Searches for the program `name` in the directories of `path`, then in those where distributions
/// install servers. If `path` is empty, nothing is found.
#[must_use]
pub fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    let more = SERVER_DIRS.iter().filter(|_| !path.is_empty()).map(PathBuf::from);
    let dirs = split_paths(path).filter(|dir| !dir.as_os_str().is_empty()).chain(more);
    dirs.map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// Runs a program and returns its standard output and standard error; empty if it cannot run.
pub(crate) fn output(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    output.map(|it| text(&it.stdout) + &text(&it.stderr)).unwrap_or_default()
}

/// Returns the first word that looks like a version: it contains a point and begins with a digit,
/// after an optional `v` or `go`.
pub(crate) fn version(text: &str) -> String {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && !".-+".contains(c);
    text.split(is_end)
        .map(|word| word.trim_start_matches("go").trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .unwrap_or("unknown")
        .to_owned()
}

/// Builds a program, whose source uses only Go's standard library, in `dir`.
fn build_go(go: &Path, path: &OsStr, dir: &Path, source: &str) -> Result<PathBuf> {
    let (file, program) = (dir.join("rival.go"), dir.join("rival"));
    fs::write(&file, source).map_err(Error::other(format!("write {}", file.display())))?;
    // The compiler starts programs of its own directory.
    let dirs = go.parent().map(PathBuf::from).into_iter().chain(split_paths(path));
    let mut command = Command::new(go);
    command.args(["build", "-o"]).args([&program, &file]).env("CGO_ENABLED", "0");
    command.env("PATH", join_paths(dirs).unwrap_or_else(|_| path.to_owned()));
    let output = command.output().map_err(Error::other("start go build"))?;
    if output.status.success() {
        return Ok(program);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(Error::Missing(format!("cannot build a program in Go: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_in_the_output_of_programs() {
        for (text, expected) in [
            ("nginx version: nginx/1.22.1\n", "1.22.1"),
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://", "2.6.12-1+deb12u4"),
            ("go version go1.26.8 linux/amd64", "1.26.8"),
            ("v2.6.2 h1:abc=", "2.6.2"),
            ("no number", "unknown"),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }

    #[test]
    fn programs_in_path_precede_those_in_server_directories() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("nginx"), "").unwrap();
        let found = find(dir.path().as_os_str(), "nginx");
        assert_eq!(found, Some(dir.path().join("nginx")));
        assert_eq!(find(OsStr::new(""), "nginx"), None);
        assert_eq!(find(dir.path().as_os_str(), "no such program"), None);
    }
}
