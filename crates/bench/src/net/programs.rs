//! Programs of others: where they are, and which version.

use std::env::split_paths;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where servers are, which is not in everybody's `PATH`.
const MORE: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The first program of that name in the directories of `path`, and then in those of servers.
pub(crate) fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    // No path at all is how a test has no rivals.
    let more = MORE.iter().filter(|_| !path.is_empty()).map(PathBuf::from);
    let dirs = split_paths(path).filter(|dir| !dir.as_os_str().is_empty()).chain(more);
    dirs.map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// Which program is ours, for the report: it need not be the one that measures.
pub(crate) fn ours(program: Option<&Path>) -> Option<String> {
    let program = program?;
    let version = version(&says(program, &["--version"])).unwrap_or_else(|| "unknown".to_owned());
    Some(format!("Ours is {}, version {version}; the load is this program.", program.display()))
}

/// All a program says when it is asked `words`.
pub(crate) fn says(program: &Path, words: &[&str]) -> String {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    output.map_or_else(
        |_| String::new(),
        |output| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            text(&output.stdout) + &text(&output.stderr)
        },
    )
}

/// The first word of `said` that begins like a version: a digit, and a point somewhere.
pub(crate) fn version(said: &str) -> Option<String> {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && !".-+".contains(c);
    said.split(is_end)
        .map(|word| word.strip_prefix("go").unwrap_or(word))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, expected) in [
            ("nginx version: nginx/1.22.1\n", Some("1.22.1")),
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://", Some("2.6.12-1+deb12u4")),
            ("go version go1.26.8 linux/amd64", Some("1.26.8")),
            ("socat by Gerhard\nsocat version 1.7.4.4 on 06", Some("1.7.4.4")),
            ("no number", None),
        ] {
            assert_eq!(version(said).as_deref(), expected, "{said}");
        }
    }

    #[test]
    fn programs_are_found_on_the_path_first() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("nginx"), "").unwrap();
        let found = find(dir.path().as_os_str(), "nginx");
        assert_eq!(found, Some(dir.path().join("nginx")));
        assert_eq!(find(OsStr::new(""), "nginx"), None);
        assert_eq!(find(dir.path().as_os_str(), "no such program"), None);
        assert_eq!(says(&dir.path().join("nginx"), &["-v"]), "");
    }
}
