//! Somebody who cleans up when this process ends, in whatever way.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::{Error, Result};

/// Waits until its input ends, which the kernel sees to when this process does; then removes. The
/// directory may be in use for a moment longer, so it is tried again for five seconds.
const SCRIPT: &str = r#"
cat > /dev/null
dir=$1
shift
for name in "$@"; do rm -f -- "$dir/$name"; done
tries=0
while [ -d "$dir" ] && ! rmdir -- "$dir" 2> /dev/null && [ $tries -lt 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
"#;

/// Waits in the same way, then writes.
const RESTORE: &str = r#"
cat > /dev/null
printf %s "$2" > "$1"
"#;

/// A process beside this one, which removes a directory and the files in it that have known names,
/// once this is dropped or the process is gone: even a kill leaves nothing behind. Or it writes back
/// what a setting was.
#[derive(Debug)]
pub(crate) struct Guardian(Child);

impl Guardian {
    /// Watches over `dir`, relative to `base`, which may be made from now on, and over the `files`
    /// in it. Nothing else is removed.
    pub(crate) fn of(base: &Path, dir: &str, files: &[&str]) -> Result<Self> {
        Self::start(Command::new("/bin/sh").args(["-c", SCRIPT, "sh", dir]).args(files), base)
    }

    /// Will write `text` to `path`, such as what a setting was before.
    pub(crate) fn writing(path: &Path, text: &str) -> Result<Self> {
        Self::with(RESTORE, &[path.as_os_str(), text.as_ref()])
    }

    /// Runs a script of our own with these words, which begins by waiting for the end of its input.
    pub(crate) fn with(script: &str, words: &[&OsStr]) -> Result<Self> {
        let mut shell = Command::new("/bin/sh");
        Self::start(shell.args(["-c", script, "sh"]).args(words), Path::new("/"))
    }

    fn start(shell: &mut Command, dir: &Path) -> Result<Self> {
        let child = shell
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C at a terminal goes to the whole group: this must outlive it.
            .process_group(0)
            .spawn()
            .map_err(Error::other("start /bin/sh, which cleans up afterwards"))?;
        Ok(Self(child))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself; if it cannot be waited for, there is nothing more to do.
        self.0.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a setting");
        let guardian = Guardian::writing(&path, "128").unwrap();
        std::fs::write(&path, "4096").unwrap();
        drop(guardian);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "128");
    }

    #[test]
    fn what_is_watched_over_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, other) = (dir.path().join("ours"), dir.path().join("other"));
        let guardian = Guardian::of(dir.path(), "ours", &["a", "b c", "not there"]).unwrap();
        for dir in [&ours, &other] {
            std::fs::create_dir(dir).unwrap();
            std::fs::write(dir.join("a"), "").unwrap();
            std::fs::write(dir.join("b c"), "").unwrap();
        }
        drop(guardian);
        assert!(!ours.exists() && other.join("a").exists() && other.join("b c").exists());
    }
}
