//! Returns the commands that start the servers of `haul` with one serving thread.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::presigned::{ACCESS_KEY, SECRET_KEY};
use super::server::Start;
use haul_measure::{Error, Result};

/// Returns a command of `haul`, which listens at the address.
pub(crate) fn haul_command(at: &Start<'_>, name: &str) -> Command {
    let mut command = Command::new(at.program);
    command.arg(name).arg("--listen").arg(at.address.to_string());
    command
}

/// Returns the command of a server of the site's files.
pub(crate) fn files_command(at: &Start<'_>) -> Command {
    let mut command = haul_command(at, "files");
    command.arg(at.site).args(["--threads", "1"]);
    command
}

/// Returns the command with the certificate and its key, if there are any.
pub(crate) fn with_tls(mut command: Command, at: &Start<'_>) -> Command {
    if let Some([certificate, key]) = at.tls {
        command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key);
    }
    command
}

/// Returns the command of an S3 server without work in the background. The server has one serving
/// thread for each core that it may use. With `credentials`, a file, it requires signatures.
pub(crate) fn serve_command(at: &Start<'_>, credentials: Option<&Path>) -> Command {
    let mut command = haul_command(at, "serve");
    command.arg("--data").arg(at.dir.join("data"));
    command.args(["--admin", "127.0.0.1:0", "--scrub-rate", "0", "--lifecycle-check", "0s"]);
    command.env_remove("HAUL_ACCESS_KEY").env_remove("HAUL_SECRET_KEY");
    if let Some(file) = credentials {
        command.arg("--credentials").arg(file);
    }
    command
}

/// Returns the command of an S3 server that requires signatures.
pub(crate) fn signed_serve(at: &Start<'_>) -> Result<Command> {
    let file = at.write("credentials", &format!("{ACCESS_KEY}\n{SECRET_KEY}\n"))?;
    let changed = fs::set_permissions(&file, Permissions::from_mode(0o600));
    changed.map_err(Error::other("protect the file of credentials"))?;
    Ok(serve_command(at, Some(&file)))
}
