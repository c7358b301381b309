//! Formats an action as shell commands, which a dry run prints.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Action;
use super::relocate::destination;
use crate::shell::quote;

/// Returns the shell commands for `action`. Unlike an [`Executor`](super::Executor), these commands
/// check nothing before they act.
#[must_use]
pub fn script(action: &Action, keep: &Path, drop: &Path, bytes: u64) -> Vec<String> {
    let quoted = |path: &Path| quote(path.as_os_str().as_bytes());
    let (keep, from) = (quoted(keep), quoted(drop));
    match action {
        Action::Remove => vec![format!("rm {from}")],
        Action::HardLink => vec![format!("ln -f {keep} {from}")],
        Action::SymLink => vec![format!("ln -sf {keep} {from}")],
        Action::Dedupe => {
            let command = quote(format!("dedupe {keep} 0 0 {bytes}").as_bytes());
            vec![format!("xfs_io -c {command} {from}")]
        }
        Action::Move(target) => {
            let to = destination(target, drop);
            let parent = to.parent().map(quoted).unwrap_or_default();
            vec![format!("mkdir -p {parent}"), format!("mv -n {from} {}", quoted(&to))]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let lines = |action: &Action| script(action, Path::new("/a b"), Path::new("/c\n"), 7);
        assert_eq!(lines(&Action::Remove), ["rm $'/c\\n'"]);
        assert_eq!(lines(&Action::HardLink), ["ln -f '/a b' $'/c\\n'"]);
        assert_eq!(lines(&Action::SymLink), ["ln -sf '/a b' $'/c\\n'"]);
        assert_eq!(lines(&Action::Dedupe), ["xfs_io -c 'dedupe '\\''/a b'\\'' 0 0 7' $'/c\\n'"]);
        assert_eq!(lines(&Action::Move("/t".into())), ["mkdir -p /t", "mv -n $'/c\\n' $'/t/c\\n'"]);
    }
}
