//! Receives listening sockets from a service manager (socket activation, `sd_listen_fds(3)`).

use std::env;
use std::os::fd::OwnedFd;

use haul_file_server::{Listener, TcpOptions};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::report::{Exit, Failure, Result, print_message};

/// The first inherited descriptor, as `sd_listen_fds(3)` defines it.
const FIRST_DESCRIPTOR: i32 = 3;

/// Returns the sockets that `LISTEN_FDS` and `LISTEN_PID` pass to this process, in their order;
/// none if these variables are not set, or are meant for another process.
pub(crate) fn listeners(tcp: TcpOptions) -> Result<Vec<Listener>> {
    let variable = |name| env::var(name).ok()?.parse::<i32>().ok();
    let own_pid = getpid().as_raw_nonzero().get();
    let count = match (variable("LISTEN_PID"), variable("LISTEN_FDS")) {
        (Some(pid), Some(count)) if pid == own_pid => count,
        _ => return Ok(Vec::new()),
    };
    let listener = |number| {
        let descriptor = FIRST_DESCRIPTOR + number;
        let failure = || {
            Failure::new(format!("cannot listen on the inherited descriptor {descriptor}"))
                .exit(Exit::NotStarted)
        };
        let socket = duplicate(descriptor).map_err(|error| failure().because(error))?;
        Listener::inherit(socket, tcp).map_err(|error| failure().because(error))
    };
    (0..count).map(listener).collect()
}

/// Duplicates a descriptor of this process that no value owns. The original stays open until the
/// process exits; it accepts no connections.
fn duplicate(descriptor: i32) -> std::result::Result<OwnedFd, Errno> {
    let this_process = pidfd_open(getpid(), PidfdFlags::empty())?;
    pidfd_getfd(this_process, descriptor, PidfdGetfdFlags::empty())
}

/// Reports that inherited sockets replace `--listen`.
pub(crate) fn report_ignored_listen(is_given: bool) {
    if is_given {
        print_message("--listen is ignored: the sockets of LISTEN_FDS are used");
    }
}
