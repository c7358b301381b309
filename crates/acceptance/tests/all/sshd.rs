//! Starts an sshd with keys and a configuration made for the test, and clients that use only these.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use haul_testing::run;
use tempfile::TempDir;

/// The path of sshd, which must be started by an absolute path.
const SSHD: &str = "/usr/sbin/sshd";

/// Returns the first required program that is not installed.
pub(crate) fn missing_program() -> Option<&'static str> {
    let is_installed = |name: &&str| Command::new(name).arg("-?").output().is_ok();
    [SSHD, "ssh", "scp", "ssh-keygen"].into_iter().find(|name| !is_installed(name))
}

/// A directory with the keys of both sides and a configuration that uses only these.
pub(crate) struct Keys {
    dir: TempDir,
    user: String,
}

impl Keys {
    pub(crate) fn generate() -> Self {
        let keys = Self {
            dir: tempfile::tempdir().unwrap(),
            user: run(Command::new("id").arg("-un")).unwrap(),
        };
        for name in ["host", "user"] {
            let options = ["-q", "-t", "ed25519", "-N", "", "-f"];
            run(Command::new("ssh-keygen").args(options).arg(keys.path(name))).unwrap();
        }
        std::fs::copy(keys.path("user.pub"), keys.path("authorized")).unwrap();
        let host = std::fs::read_to_string(keys.path("host.pub")).unwrap();
        std::fs::write(keys.path("known"), format!("relayed {host}")).unwrap();
        let config = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\nLogLevel ERROR\n\
             Subsystem sftp internal-sftp\n",
            keys.path("host").display(),
            keys.path("authorized").display(),
        );
        std::fs::write(keys.path("sshd.conf"), config).unwrap();
        // An sshd run by root requires this directory, which its service normally creates.
        let privileges = Path::new("/run/sshd");
        if std::fs::create_dir(privileges).is_ok() {
            std::fs::set_permissions(privileges, PermissionsExt::from_mode(0o755)).unwrap();
        }
        keys
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts an sshd for each connection, as inetd does.
    pub(crate) fn serve(&self, target: TcpListener) {
        let config = self.path("sshd.conf");
        thread::spawn(move || {
            for connection in target.incoming() {
                let input = OwnedFd::from(connection.unwrap());
                let output = input.try_clone().unwrap();
                let mut sshd = Command::new(SSHD);
                sshd.args(["-i", "-e", "-f"]).arg(&config).stdin(input).stdout(output);
                let mut child = sshd.spawn().unwrap();
                thread::spawn(move || child.wait());
            }
        });
    }

    /// Returns a command for `ssh` or `scp`, which differ in the option of the port.
    pub(crate) fn client(&self, name: &str, port: &str) -> Command {
        let mut client = Command::new(name);
        client.args(["-q", "-F", "none", "-i"]).arg(self.path("user"));
        let known = format!("UserKnownHostsFile={}", self.path("known").display());
        for option in [
            known.as_str(),
            "GlobalKnownHostsFile=/dev/null",
            "HostKeyAlias=relayed",
            "StrictHostKeyChecking=yes",
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
        ] {
            client.args(["-o", option]);
        }
        client.args([if name == "scp" { "-P" } else { "-p" }, port]);
        client
    }

    /// Returns the destination argument of a client.
    pub(crate) fn destination(&self) -> String {
        format!("{}@127.0.0.1", self.user)
    }
}
