//! Selects one core for the server and another core for the load generator, and pins threads to
//! them.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use haul_measure::{Error, Result};

/// The number of the core that runs the server, and of the core that runs the load generator. On
/// separate cores, the server and the load generator do not compete for CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) server: usize,
    pub(crate) load: usize,
}

impl Cores {
    /// Returns the first two cores this process may use.
    ///
    /// # Errors
    /// [`Error::Missing`] if this process may use only one core.
    pub(crate) fn available() -> Result<Self> {
        let allowed = sched_getaffinity(None).map_err(Error::other("read the CPU affinity"))?;
        let mut free = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        match (free.next(), free.next()) {
            (Some(server), Some(load)) => Ok(Self { server, load }),
            _ => {
                let why = "a server and its load need one core each, and only one is available";
                Err(Error::Missing(why.to_owned()))
            }
        }
    }

    /// Sends a packet from each core, which makes the kernel release the packets that wait on that
    /// core to be freed. Until then, packets of `sendfile` reference pages of files, so that these
    /// pages cannot be evicted from the page cache.
    pub(crate) fn release_packets(self) -> Result<()> {
        let send = || -> io::Result<()> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.send_to(&[0], socket.local_addr()?).map(drop)
        };
        for core in [self.server, self.load] {
            let _pinned = Pinned::to(core)?;
            send().map_err(Error::other("send a packet to 127.0.0.1"))?;
        }
        Ok(())
    }
}

/// A guard that keeps this thread on one core until it is dropped. Processes and threads that this
/// thread starts inherit the core.
pub(crate) struct Pinned {
    before: CpuSet,
}

impl Pinned {
    pub(crate) fn to(core: usize) -> Result<Self> {
        let before = sched_getaffinity(None).map_err(Error::other("read the CPU affinity"))?;
        let mut one = CpuSet::new();
        one.set(core);
        sched_setaffinity(None, &one).map_err(Error::other(format!("run on core {core}")))?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // An error is ignored: the thread then stays on its core, which is harmless.
        sched_setaffinity(None, &self.before).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_thread_runs_on_one_core_until_dropped() {
        let Ok(cores) = Cores::available() else { return };
        assert_ne!(cores.server, cores.load);
        let before = sched_getaffinity(None).unwrap();
        let pinned = Pinned::to(cores.load).unwrap();
        let now = sched_getaffinity(None).unwrap();
        assert!(now.count() == 1 && now.is_set(cores.load));
        drop(pinned);
        assert!(sched_getaffinity(None).unwrap() == before);
    }
}
