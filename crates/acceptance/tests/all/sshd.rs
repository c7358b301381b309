//! sshd with keys and a configuration of its own, and clients that know nothing else.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use haul_test_image::run;
use tempfile::TempDir;

/// Where distributions keep it; it wants to be started by its whole path.
const SSHD: &str = "/usr/sbin/sshd";

/// What is not there of the programs this needs.
pub(crate) fn missing() -> Option<&'static str> {
    let starts = |name: &&str| Command::new(name).arg("-?").output().is_ok();
    [SSHD, "ssh", "scp", "ssh-keygen"].into_iter().find(|name| !starts(name))
}

/// A directory with the keys of both sides, and what makes ssh and sshd use nothing else.
pub(crate) struct Keys {
    dir: TempDir,
    user: String,
}

impl Keys {
    pub(crate) fn make() -> Self {
        let keys = Self {
            dir: tempfile::tempdir().unwrap(),
            user: run(Command::new("id").arg("-un")).unwrap(),
        };
        for name in ["host", "user"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
            run(Command::new("ssh-keygen").args(words).arg(keys.path(name))).unwrap();
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
        // Where sshd runs as root it wants this directory, which its service makes at its start.
        let privileges = Path::new("/run/sshd");
        if std::fs::create_dir(privileges).is_ok() {
            std::fs::set_permissions(privileges, PermissionsExt::from_mode(0o755)).unwrap();
        }
        keys
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// For each connection an sshd of its own, as inetd starts them.
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

    /// `ssh` or `scp`, which take the same options but for that of the port.
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

    /// Whom a client asks for.
    pub(crate) fn host(&self) -> String {
        format!("{}@127.0.0.1", self.user)
    }
}
