//! Which failures say nothing of a target. Pure.

use rustix::io::Errno;

/// Whether it is this machine that has not what a connection takes: descriptors, ports, memory, a
/// place in the queue of a unix socket.
pub(crate) fn is_ours(errno: Errno) -> bool {
    const LACKING: [Errno; 7] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::NOSPC,
        Errno::ADDRNOTAVAIL,
        Errno::AGAIN,
    ];
    LACKING.contains(&errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_told_from_what_a_target_refuses() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::ADDRNOTAVAIL, Errno::AGAIN]
        {
            assert!(is_ours(errno), "{errno}");
        }
        let refusals = [
            Errno::CONNREFUSED,
            Errno::TIMEDOUT,
            Errno::HOSTUNREACH,
            Errno::NETUNREACH,
            Errno::NOENT,
            Errno::ACCESS,
        ];
        for errno in refusals {
            assert!(!is_ours(errno), "{errno}");
        }
    }
}
