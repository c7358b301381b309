//! Finds rival programs and their versions, and builds rivals in Go.

use std::env::{join_paths, split_paths};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haul_measure::{Error, Result};

/// Directories of server programs, which a user's `PATH` may not contain.
const SERVER_DIRS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Searches for the program `name` in the directories of `path`, then in [`SERVER_DIRS`]. If `path`
/// is empty, nothing is found.
pub(crate) fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    let more = SERVER_DIRS.iter().filter(|_| !path.is_empty()).map(PathBuf::from);
    let dirs = split_paths(path).filter(|dir| !dir.as_os_str().is_empty()).chain(more);
    dirs.map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// Returns a note that names the measured `haul` program, whose build may differ from the build of
/// this program.
pub(crate) fn haul_note(program: Option<&Path>) -> Option<String> {
    let program = program?;
    let version = version(&output(program, &["--version"])).unwrap_or_else(|| "unknown".to_owned());
    Some(format!(
        "haul is {}, version {version}; this program is the load generator.",
        program.display()
    ))
}

/// Runs a program and returns its standard output and standard error; empty if it cannot run.
pub(crate) fn output(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.map_or_else(
        |_| String::new(),
        |output| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            text(&output.stdout) + &text(&output.stderr)
        },
    )
}

/// Returns the first word that looks like a version: it contains a point and begins with a digit,
/// after an optional `go`.
pub(crate) fn version(text: &str) -> Option<String> {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && !".-+".contains(c);
    text.split(is_end)
        .map(|word| word.strip_prefix("go").unwrap_or(word))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

/// Builds the Go program of `source`, which uses only the standard library, in `dir`. Returns the path
/// of the program, which is called `name`. `path` has the directories to search for programs that
/// the compiler `go` starts.
pub(crate) fn build_go(
    go: &Path,
    path: &OsStr,
    dir: &Path,
    name: &str,
    source: &str,
) -> Result<PathBuf> {
    let (file, program) = (dir.join(format!("{name}.go")), dir.join(name));
    fs::write(&file, source).map_err(Error::other(format!("write {}", file.display())))?;
    let mut command = Command::new(go);
    command.args(["build", "-o"]).args([&program, &file]);
    command.env("PATH", with_dir_of(go, path)).env("CGO_ENABLED", "0");
    let output = command.output().map_err(Error::other("start go build"))?;
    if output.status.success() {
        return Ok(program);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::Missing(format!("cannot build {name}: {stderr}")))
}

fn with_dir_of(program: &Path, path: &OsStr) -> OsString {
    let mut dirs: Vec<PathBuf> = program.parent().map(PathBuf::from).into_iter().collect();
    dirs.extend(split_paths(path));
    join_paths(dirs).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_in_the_output_of_programs() {
        for (text, expected) in [
            ("nginx version: nginx/1.22.1\n", Some("1.22.1")),
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://", Some("2.6.12-1+deb12u4")),
            ("go version go1.26.8 linux/amd64", Some("1.26.8")),
            ("socat by Gerhard\nsocat version 1.7.4.4 on 06", Some("1.7.4.4")),
            ("no number", None),
        ] {
            assert_eq!(version(text).as_deref(), expected, "{text}");
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
        assert_eq!(output(&dir.path().join("nginx"), &["-v"]), "");
    }

    #[test]
    fn path_of_the_build_begins_with_the_directory_of_go() {
        let path = with_dir_of(Path::new("/go/bin/go"), OsStr::new("/bin:/usr/bin"));
        assert_eq!(path, "/go/bin:/bin:/usr/bin");
    }
}
