//! The standard streams that a process cannot use.

use std::os::fd::BorrowedFd;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};

use crate::sys::was_closed_at_start;

/// Lets reads of stdin and writes to stdout fail if they were closed when the process started
/// (`<&-`, `>&-`), or are open in the other direction (`0>file`, `1<file`). Rust's runtime opens
/// `/dev/null` in place of a closed one, and takes `EBADF`, which the other direction gives, for
/// success: output would be lost, and input be empty, without an error. To be called at the start
/// of `main`.
///
/// Puts a socket without a peer in their place, which fails with `ENOTCONN`.
pub fn replace_unusable_streams() {
    let socket =
        || socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    // An error is ignored: without descriptors, everything else fails, too.
    if (was_closed_at_start(0) || lacks(stdin(), OFlags::RDONLY))
        && let Ok(socket) = socket()
    {
        dup2_stdin(socket).ok();
    }
    if (was_closed_at_start(1) || lacks(stdout(), OFlags::WRONLY))
        && let Ok(socket) = socket()
    {
        dup2_stdout(socket).ok();
    }
}

/// `true` if the descriptor was opened neither with `direction` nor for both directions.
fn lacks(stream: BorrowedFd<'_>, direction: OFlags) -> bool {
    fcntl_getfl(stream).is_ok_and(|flags| {
        let access = flags & OFlags::RWMODE;
        flags.contains(OFlags::PATH) || (access != direction && access != OFlags::RDWR)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use rustix::fs::{Mode, open};

    use super::*;

    #[test]
    fn descriptor_of_the_other_direction_is_found() {
        let directions = [OFlags::RDONLY, OFlags::WRONLY];
        for (opened, lacking) in [
            (OFlags::RDONLY, [false, true]),
            (OFlags::WRONLY, [true, false]),
            (OFlags::RDWR, [false, false]),
            (OFlags::PATH, [true, true]),
        ] {
            let null = File::from(open("/dev/null", opened, Mode::empty()).unwrap());
            assert_eq!(directions.map(|it| lacks(null.as_fd(), it)), lacking, "{opened:?}");
        }
    }
}
