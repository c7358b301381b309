//! Finds rival programs and their versions.

use std::env::split_paths;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
        std::fs::write(dir.path().join("nginx"), "").unwrap();
        let found = find(dir.path().as_os_str(), "nginx");
        assert_eq!(found, Some(dir.path().join("nginx")));
        assert_eq!(find(OsStr::new(""), "nginx"), None);
        assert_eq!(find(dir.path().as_os_str(), "no such program"), None);
        assert_eq!(output(&dir.path().join("nginx"), &["-v"]), "");
    }
}
