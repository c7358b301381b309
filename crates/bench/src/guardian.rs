//! Removes files and restores settings when this process ends, even by a kill.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use haul_measure::{Error, Result};

/// A shell script that waits for EOF on stdin, which the end of this process causes, and then
/// removes the directory `$1` with the command `$2`. The script retries for five seconds, because
/// the directory may still be in use, or files be created in it.
const REMOVE: &str = r#"
cat > /dev/null
tries=0
while [ -d "$1" ] && ! $2 -- "$1" 2> /dev/null && [ $tries -lt 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
"#;

/// Removes a directory with all that is in it on the same file system.
const TREE: &str = "rm -rf --one-file-system";

/// A shell script that waits for EOF on stdin, and then writes the text `$2` to the file `$1`.
const RESTORE: &str = r#"
cat > /dev/null
printf %s "$2" > "$1"
"#;

/// A child process that cleans up on drop and when this process ends, even by a kill. Depending on
/// its script, the guardian removes a directory, restores a setting, or kills a server.
#[derive(Debug)]
pub(crate) struct Guardian(Child);

impl Guardian {
    /// Starts a guardian that removes the directory `dir`, which is relative to `base`, and which has
    /// no files of its own. The directory may be created after this call.
    pub(crate) fn of(base: &Path, dir: &Path) -> Result<Self> {
        Self::start(Command::new("/bin/sh").args(["-c", REMOVE, "sh"]).arg(dir).arg("rmdir"), base)
    }

    /// Creates a directory in `base`, called `name` with the process id appended, and starts a
    /// guardian that removes it with all that is in it.
    pub(crate) fn for_tree(base: &Path, name: &str) -> Result<(PathBuf, Self)> {
        let base = std::path::absolute(base);
        let base = base.map_err(Error::other("find the directory for the test files"))?;
        let path = base.join(format!("{name}-{}", std::process::id()));
        let guardian = Self::with(REMOVE, &[path.as_os_str(), TREE.as_ref()])?;
        std::fs::create_dir(&path)
            .map_err(Error::other(format!("create the directory {}", path.display())))?;
        Ok((path, guardian))
    }

    /// Starts a guardian that writes `text` to `path`, such as the old value of a setting.
    pub(crate) fn writing(path: &Path, text: &str) -> Result<Self> {
        Self::with(RESTORE, &[path.as_os_str(), text.as_ref()])
    }

    /// Starts a guardian that runs `script`, which must wait for EOF on stdin first.
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
            // Ctrl-C at a terminal kills a whole process group, so the guardian has its own group.
            .process_group(0)
            .spawn()
            .map_err(Error::other("start /bin/sh for the cleanup"))?;
        Ok(Self(child))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // An error is ignored: the script ends even if this process cannot wait for it.
        self.0.wait().ok();
    }
}
