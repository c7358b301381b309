//! Returns the commands that start the servers of `haul` with one serving thread.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

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
