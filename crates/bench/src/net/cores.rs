//! Which core does what.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{Error, Result};

/// One for the server, one for the load, so that neither takes the other's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) server: usize,
    pub(crate) load: usize,
}

impl Cores {
    /// The first two this process may use.
    pub(crate) fn here() -> Result<Self> {
        let allowed = sched_getaffinity(None).map_err(Error::other("ask which cores are ours"))?;
        let mut free = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        match (free.next(), free.next()) {
            (Some(server), Some(load)) => Ok(Self { server, load }),
            _ => {
                let why = "a server and its load need a core each, and there is one alone";
                Err(Error::Missing(why.to_owned()))
            }
        }
    }
}

impl Cores {
    /// Has each core look at its packets: one that another core has freed is kept by its own until
    /// then, and with it the pages of files it was made of.
    pub(crate) fn stir(self) -> Result<()> {
        let stirred = || -> io::Result<()> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.send_to(&[0], socket.local_addr()?).map(drop)
        };
        for core in [self.server, self.load] {
            let _pinned = Pinned::to(core)?;
            stirred().map_err(Error::other("send a packet to 127.0.0.1"))?;
        }
        Ok(())
    }
}

/// This thread, and the processes and threads it starts, on one core, until this is dropped.
pub(crate) struct Pinned {
    before: CpuSet,
}

impl Pinned {
    pub(crate) fn to(core: usize) -> Result<Self> {
        let before = sched_getaffinity(None).map_err(Error::other("ask which cores are ours"))?;
        let mut one = CpuSet::new();
        one.set(core);
        let what = || format!("stay on core {core}");
        sched_setaffinity(None, &one).map_err(Error::other(what()))?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Where that fails, the thread stays where it is, which harms nobody.
        sched_setaffinity(None, &self.before).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_its_core_and_gets_the_others_back() {
        let Ok(cores) = Cores::here() else { return };
        assert_ne!(cores.server, cores.load);
        let before = sched_getaffinity(None).unwrap();
        let pinned = Pinned::to(cores.load).unwrap();
        let now = sched_getaffinity(None).unwrap();
        assert!(now.count() == 1 && now.is_set(cores.load));
        drop(pinned);
        assert!(sched_getaffinity(None).unwrap() == before);
    }
}
