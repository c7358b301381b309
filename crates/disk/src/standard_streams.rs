//! The standard streams that a process was started without.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::stdio::{dup2_stdin, dup2_stdout};

use crate::sys::was_closed_at_start;

/// Lets reads of stdin and writes to stdout fail if they were closed when the process started
/// (`<&-`, `>&-`). Rust's runtime opens `/dev/null` in place of a closed one, so that output would
/// be lost, and input be empty, without an error. To be called at the start of `main`.
///
/// Puts a socket without a peer in their place. It fails with `ENOTCONN`; Rust's library takes
/// `EBADF`, which a closed descriptor gives, for success.
pub fn replace_closed_streams() {
    let socket =
        || socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    // An error is ignored: without descriptors, everything else fails, too.
    if was_closed_at_start(0)
        && let Ok(socket) = socket()
    {
        dup2_stdin(socket).ok();
    }
    if was_closed_at_start(1)
        && let Ok(socket) = socket()
    {
        dup2_stdout(socket).ok();
    }
}
