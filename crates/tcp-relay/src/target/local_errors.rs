//! Detects connection errors that this machine causes, and not the target. Performs no I/O.

use rustix::io::Errno;

/// Returns `true` if the error means that a local resource is exhausted: descriptors, ports,
/// memory, or the accept queue of a local unix socket.
pub(crate) fn is_local_exhaustion(errno: Errno) -> bool {
    const LOCAL: [Errno; 7] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::NOSPC,
        Errno::ADDRNOTAVAIL,
        Errno::AGAIN,
    ];
    LOCAL.contains(&errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_exhaustion_is_distinguished_from_refusals() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::ADDRNOTAVAIL, Errno::AGAIN]
        {
            assert!(is_local_exhaustion(errno), "{errno}");
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
            assert!(!is_local_exhaustion(errno), "{errno}");
        }
    }
}
