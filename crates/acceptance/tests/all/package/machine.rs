//! Runs commands in a copy of this machine's file system.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use haul_testing::{disk_dir, skip};
use tempfile::TempDir;

use crate::program::{assert_success, output_text};

/// Mounts the copy in a namespace of its own, and keeps the namespace until stdin is closed.
const MOUNT: &str = r#"
set -e
cd "$1"
mkdir upper work root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" root
mount --rbind /dev root/dev
mount --rbind /proc root/proc
mount -t tmpfs tmpfs root/run
echo mounted
exec cat
"#;

/// A copy-on-write copy of the file system of this machine, in which packages can be installed. It
/// ends with the test.
pub(super) struct Machine {
    holder: Child,
    dir: TempDir,
}

impl Machine {
    /// Creates the copy. If that fails, for example without root, skips the test and returns `None`.
    pub(super) fn new() -> Option<Self> {
        let dir = disk_dir();
        let mut holder = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", MOUNT, "sh"])
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line == "mounted\n" {
            return Some(Self { holder, dir });
        }
        drop(holder.stdin.take());
        let output = holder.wait_with_output().unwrap();
        skip(&format!("cannot mount an overlay: {}", String::from_utf8_lossy(&output.stderr)));
        None
    }

    /// Returns a command in the copy.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string(), "chroot"]);
        command.arg(self.dir.path().join("root")).args(words);
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        command.current_dir("/");
        command
    }

    /// Runs a command in the copy.
    pub(super) fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs a command, asserts that it succeeds, and returns its stdout.
    pub(super) fn run(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(output.status.success(), "{words:?}: {}", output_text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.output(&["test", "-e", path]).status.success()
    }

    pub(super) fn text(&self, path: &str) -> String {
        self.run(&["cat", path])
    }

    /// Installs or upgrades a package, and keeps configuration files that were changed.
    pub(super) fn install(&self, package: &Path) {
        let package = package.to_str().unwrap();
        let output = self.output(&["dpkg", "--force-confold", "--install", package]);
        assert_success(&output);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The namespace, and with it all mounts, ends with its last process.
        drop(self.holder.stdin.take());
        self.holder.wait().ok();
    }
}
