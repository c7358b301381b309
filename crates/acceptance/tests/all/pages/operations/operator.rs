//! A machine with a small disk for the store, and a user who may use sudo.

use std::path::PathBuf;

use haul_testing::{disk_dir, root};
use tempfile::TempDir;

use super::super::shell::PROLOGUE;
use super::Block;
use crate::machine::Machine;
use crate::package;
use crate::program::{self, output_text};

/// Creates the user, and the disk: a file system in a file in a file system in a file, so that
/// the disk itself can be out of space, or stop for a while. A file takes half of its space until the
/// disk is enlarged: the enlargement of a mounted ext4 needs a capability that containers lack.
const PREPARE: &str = "
useradd --create-home --home-dir /srv/admin --shell /bin/bash admin
echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin
echo 'APT::Get::Assume-Yes \"true\";' >/etc/apt/apt.conf.d/90yes
truncate --size 1500M /disk.img
mkfs.ext4 -q -F -m 0 /disk.img
mkdir /disk /var/lib/haul
mount -o loop,noatime /disk.img /disk
truncate --size 1G /disk/store.img
mkfs.ext4 -q -F -m 0 /disk/store.img
mount -o loop,noatime /disk/store.img /var/lib/haul
fallocate --length 512M /var/lib/haul/not-yet
";

/// The user, on a booted machine.
pub(super) struct Operator {
    pub(super) machine: Machine,
    packages: TempDir,
}

/// The URL of the server with the configuration of the package.
pub(super) const SERVER: &str = "http://127.0.0.1:9000";

impl Operator {
    /// Boots the machine. If that fails, skips the test and returns `None`.
    pub(super) fn new() -> Option<Self> {
        let sources = root().canonicalize().unwrap();
        // The program is compiled before the machine has a copy of the sources.
        program::path();
        let machine = Machine::boot(&[&sources])?;
        machine.shell(PREPARE);
        Some(Self { machine, packages: disk_dir() })
    }

    /// Builds the package with a revision, and gives it to the user under a name.
    pub(super) fn download(&self, revision: &str, name: &str) {
        let package: PathBuf = package::build(self.packages.path(), revision);
        let target = self.machine.path(&format!("/srv/admin/{name}"));
        std::fs::copy(package, target).unwrap();
    }

    /// Runs the commands of a block as the user; returns stdout.
    pub(super) fn run(&self, block: &Block) -> String {
        assert_eq!(block.language, "sh", "{block:?}");
        self.shell(&block.text(), 0)
    }

    /// As [`Self::run`], for lines with these exit codes.
    pub(super) fn run_lines(&self, block: &Block, codes: &[i32]) -> String {
        assert!(block.language == "sh" && block.lines.len() == codes.len(), "{block:?}");
        block.lines.iter().zip(codes).map(|(line, code)| self.shell(line, *code)).collect()
    }

    /// Runs shell commands as the user; returns stdout.
    pub(super) fn shell(&self, script: &str, code: i32) -> String {
        println!("{script}");
        let script = [PROLOGUE, "cd ~\n", script].concat();
        let shell = ["runuser", "-u", "admin", "--", "timeout", "120", "bash", "-c", &script];
        let mut command = self.machine.command(&shell);
        let output = command.env("HOME", "/srv/admin").output().unwrap();
        println!("{}", output_text(&output));
        assert_eq!(output.status.code(), Some(code), "{script}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Sends a request with curl; returns the status and the body.
    pub(super) fn curl(&self, arguments: &[&str]) -> (u16, String) {
        let curl = ["curl", "--silent", "--show-error", "--max-time", "60"];
        let write = ["--write-out", "\n%{http_code}"];
        let printed = self.machine.run(&[&curl[..], &write, arguments].concat());
        let (body, status) = printed.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), body.to_owned())
    }

    pub(super) fn get(&self, path: &str) -> (u16, String) {
        self.curl(&[&format!("{SERVER}/{path}")])
    }

    pub(super) fn put(&self, path: &str, body: &str) -> u16 {
        let url = format!("{SERVER}/{path}");
        let (status, answer) = self.curl(&["--request", "PUT", "--data-binary", body, &url]);
        print!("{answer}");
        status
    }

    pub(super) fn health(&self) -> (u16, String) {
        self.curl(&["http://127.0.0.1:9001/health"])
    }

    /// Stops the service, and starts it with an empty store.
    pub(super) fn start_empty(&self) {
        self.machine.shell(
            "systemctl stop haul-serve
            rm -rf /var/lib/haul/store
            systemctl start haul-serve",
        );
    }
}
