//! Runs commands in a fresh Debian system.

mod boot;
mod service;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use haul_testing::{disk_dir, root, skip};
use tempfile::TempDir;

use crate::program::{assert_success, output_text};
pub(crate) use boot::Cgroup;
pub(crate) use service::{Service, command, settings};

/// Makes the root directory of a machine.
const ROOT: &str = include_str!("root.sh");

/// Keeps the mounts until stdin is closed.
const CHROOT: &str = include_str!("chroot.sh");

/// A copy-on-write copy of a Debian image, in which packages can be installed. It ends with the test.
pub(crate) struct Machine {
    holder: Child,
    /// The words before a command that run it in the machine.
    enter: Vec<String>,
    /// The root directory of the machine, seen from outside.
    root: PathBuf,
    /// `Some` if the machine was booted.
    cgroup: Option<Cgroup>,
    _dir: TempDir,
}

/// Returns the directory of the Debian image, which `.ci/run install` makes. If there is none, skips
/// the test.
fn image() -> Option<PathBuf> {
    let default = || root().join("target/debian").into();
    let image = PathBuf::from(std::env::var_os("HAUL_DEBIAN").unwrap_or_else(default));
    if image.join("etc/debian_version").exists() {
        return std::fs::canonicalize(image).ok();
    }
    skip(&format!("there is no Debian image in {}: run .ci/run install", image.display()));
    None
}

impl Machine {
    /// Creates a machine that is not booted: commands run in its root directory. If that fails, for
    /// example without root, skips the test and returns `None`.
    pub(crate) fn new() -> Option<Self> {
        Self::with(&[])
    }

    /// As [`Self::new`], with writable views of other directories of this system, at their paths.
    pub(crate) fn with(views: &[&Path]) -> Option<Self> {
        let (image, dir) = (image()?, disk_dir());
        let script = [ROOT, CHROOT].concat();
        let mut holder = Command::new("unshare");
        holder.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
        holder.arg(dir.path()).arg(image).args(views);
        holder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = holder.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "mounted\n" {
            drop(holder.stdin.take());
            let output = holder.wait_with_output().unwrap();
            skip(&format!("cannot mount an overlay: {}", String::from_utf8_lossy(&output.stderr)));
            return None;
        }
        let (id, below) = (holder.id().to_string(), dir.path().join("root"));
        let below = below.to_str().unwrap();
        let enter = ["nsenter", "--mount", "--target", &id, "chroot", below];
        let root = PathBuf::from(format!("/proc/{id}/root{below}"));
        Some(Self { holder, enter: enter.map(str::to_owned).into(), root, cgroup: None, _dir: dir })
    }

    /// Returns a command in the machine.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.enter[0]);
        command.args(&self.enter[1..]).args(words);
        command
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("LC_ALL", "C.UTF-8").env("DEBIAN_FRONTEND", "noninteractive");
        command.env("HOME", "/root").current_dir("/");
        command
    }

    /// Runs a command in the machine.
    pub(crate) fn output(&self, words: &[&str]) -> Output {
        self.command(words).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a command, asserts that it succeeds, and returns its stdout.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(output.status.success(), "{words:?}: {}", output_text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs shell commands as root, asserts that all succeed, and returns their stdout.
    pub(crate) fn shell(&self, script: &str) -> String {
        self.run(&["bash", "-euo", "pipefail", "-c", script])
    }

    /// Returns the path of a file of the machine, seen from outside.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.output(&["test", "-e", path]).status.success()
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.run(&["cat", path])
    }

    /// Writes a file of the machine.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(path), content).unwrap();
    }

    /// Installs or upgrades a package, and keeps configuration files that were changed.
    pub(crate) fn install(&self, package: &Path) {
        std::fs::copy(package, self.path("/opt/haul.deb")).unwrap();
        let output = self.output(&["dpkg", "--force-confold", "--install", "/opt/haul.deb"]);
        assert_success(&output);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.cgroup.is_some() && std::thread::panicking() {
            let log = self.output(&["journalctl", "--no-pager", "--lines", "40"]);
            eprintln!("the log of the machine: {}", output_text(&log));
        }
        match self.cgroup.take() {
            Some(cgroup) => cgroup.remove(&mut self.holder),
            // The namespace, and with it all mounts, ends with its last process.
            None => drop(self.holder.stdin.take()),
        }
        self.holder.wait().ok();
    }
}
