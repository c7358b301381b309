//! Formats an action as commands for any POSIX shell, which a dry run prints.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Action;
use super::relocate::destination;
use crate::shell::quote_posix;

/// Returns the shell commands for `action`, one per element; names may contain newlines. Unlike an
/// [`Executor`](super::Executor), these commands check nothing before they act.
#[must_use]
pub fn script(action: &Action, keep: &Path, drop: &Path, bytes: u64) -> Vec<Vec<u8>> {
    let (keep_word, drop_word) = (quoted(keep), quoted(drop));
    let command = |words: &[&[u8]]| words.join(&b' ');
    match action {
        Action::Remove => vec![command(&[b"rm", &drop_word])],
        Action::HardLink => vec![command(&[b"ln -f", &keep_word, &drop_word])],
        Action::SymLink => vec![command(&[b"ln -sf", &keep_word, &drop_word])],
        Action::Dedupe => vec![dedupe_command(keep, 0, drop, 0, bytes)],
        Action::Move(target) => {
            let to = destination(target, drop);
            let parent = to.parent().map(quoted).unwrap_or_default();
            vec![command(&[b"mkdir -p", &parent]), command(&[b"mv -n", &drop_word, &quoted(&to)])]
        }
    }
}

/// Returns the shell command that shares `bytes` bytes of `keep` with `drop`.
pub(crate) fn dedupe_command(
    keep: &Path,
    keep_offset: u64,
    drop: &Path,
    drop_offset: u64,
    bytes: u64,
) -> Vec<u8> {
    // `xfs_io` splits its command at blanks, so it gets the name of a descriptor.
    let mut command =
        format!("xfs_io -c 'dedupe /dev/fd/3 {keep_offset} {drop_offset} {bytes}' ").into_bytes();
    command.extend_from_slice(&quoted(drop));
    command.extend_from_slice(b" 3<");
    command.extend_from_slice(&quoted(keep));
    command
}

/// Quotes a path. A relative path gets the prefix `./`, so that no command takes it for an option.
fn quoted(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.starts_with(b"/") {
        return quote_posix(bytes);
    }
    quote_posix(&[b"./", bytes].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_for_a_posix_shell() {
        let lines = |action: &Action| {
            let lines = script(action, Path::new("/a b"), Path::new("/c\n"), 7);
            lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(lines(&Action::Remove), ["rm '/c\n'"]);
        assert_eq!(lines(&Action::HardLink), ["ln -f '/a b' '/c\n'"]);
        assert_eq!(lines(&Action::Dedupe), ["xfs_io -c 'dedupe /dev/fd/3 0 0 7' '/c\n' 3<'/a b'"]);
        assert_eq!(lines(&Action::Move("/t".into())), ["mkdir -p /t", "mv -n '/c\n' '/t/c\n'"]);
        let relative = script(&Action::Remove, Path::new("/a"), Path::new("-rf"), 7);
        assert_eq!(relative, [b"rm ./-rf"]);
    }
}
