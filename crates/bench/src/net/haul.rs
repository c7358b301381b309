//! Returns the commands that start the servers of `haul` with one serving thread.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::http::s3::{ACCESS_KEY, SECRET_KEY};
use haul_measure::{Error, Result};

/// Returns the command of a server of the files below `root`.
pub(crate) fn files(program: &Path, root: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new(program);
    command.arg("files").arg(root).args(["--threads", "1", "--requests", "1000000000"]);
    command.arg("--listen").arg(address.to_string());
    command
}

/// Returns the command of an S3 server with the store in `data`, without work in the background.
/// The server has one serving thread for each core that it may use. With `credentials`, a file, it
/// requires signatures.
pub(crate) fn serve(
    program: &Path,
    data: &Path,
    address: SocketAddr,
    credentials: Option<&Path>,
) -> Command {
    let mut command = Command::new(program);
    command.arg("serve").arg("--data").arg(data).arg("--listen").arg(address.to_string());
    command.args(["--admin", "127.0.0.1:0", "--scrub-rate", "0", "--lifecycle-check", "0s"]);
    command.env_remove("HAUL_ACCESS_KEY").env_remove("HAUL_SECRET_KEY");
    if let Some(file) = credentials {
        command.arg("--credentials").arg(file);
    }
    command
}

/// Writes a file with the key pair of signed requests into `dir`; returns its path.
pub(crate) fn credentials(dir: &Path) -> Result<PathBuf> {
    let file = dir.join("credentials");
    let written = fs::write(&file, format!("{ACCESS_KEY}\n{SECRET_KEY}\n"));
    written
        .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o600)))
        .map_err(Error::other(format!("write {}", file.display())))?;
    Ok(file)
}
