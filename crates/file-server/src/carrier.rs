//! What carries a window from the disk to a socket: a pipe, or a buffer in huge pages.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use haul_disk::AlignedBuf;
use haul_pipe::{Lease, PipePool, PoolOptions};
use parking_lot::Mutex;

use crate::config::Cold;

/// The most that a pipe takes without privileges.
const PIPE_BYTES: usize = 1 << 20;
/// A huge page.
const BUFFER_BYTES: usize = 2 << 20;

/// The carriers of a thread that serves. Each is made when it is first needed, and kept.
#[derive(Debug, Clone)]
pub(crate) enum Carriers {
    Pipes(PipePool),
    Buffers(BufferPool),
}

/// One of them, lent.
#[derive(Debug)]
pub(crate) enum Carrier {
    Pipe(Lease),
    Buffer(Buffer),
}

/// What became of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CarrierStats {
    pub(crate) made: u64,
    pub(crate) lent: u64,
    pub(crate) refused: u64,
}

impl Carriers {
    pub(crate) fn new(cold: Cold, carriers_max: usize) -> Self {
        match cold {
            Cold::Splice => {
                let options = PoolOptions { pipe_bytes: PIPE_BYTES, pipes_max: carriers_max };
                Self::Pipes(PipePool::new(options))
            }
            Cold::Copy => Self::Buffers(BufferPool::new(carriers_max)),
        }
    }

    /// An empty one, unless all are lent.
    pub(crate) fn lend(&self) -> Option<Carrier> {
        match self {
            Self::Pipes(pool) => pool.lease().ok().map(Carrier::Pipe),
            Self::Buffers(pool) => pool.lend().map(Carrier::Buffer),
        }
    }

    pub(crate) fn stats(&self) -> CarrierStats {
        match self {
            Self::Pipes(pool) => {
                let stats = pool.stats();
                let lent = stats.leased as u64;
                CarrierStats { made: stats.made, lent, refused: stats.refused }
            }
            Self::Buffers(pool) => pool.0.state.lock().stats,
        }
    }
}

/// Buffers that are kept.
#[derive(Debug, Clone)]
pub(crate) struct BufferPool(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    buffers_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<AlignedBuf>,
    stats: CarrierStats,
}

/// A buffer lent: dropped, it goes back.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// `None` only while it is dropped.
    memory: Option<AlignedBuf>,
    home: Arc<Pool>,
}

impl BufferPool {
    fn new(buffers_max: usize) -> Self {
        Self(Arc::new(Pool { buffers_max, state: Mutex::default() }))
    }

    fn lend(&self) -> Option<Buffer> {
        let mut state = self.0.state.lock();
        let memory = match state.free.pop() {
            Some(memory) => memory,
            None if state.stats.made >= self.0.buffers_max as u64 => {
                state.stats.refused += 1;
                return None;
            }
            None => {
                state.stats.made += 1;
                AlignedBuf::huge(BUFFER_BYTES)
            }
        };
        state.stats.lent += 1;
        Some(Buffer { memory: Some(memory), home: Arc::clone(&self.0) })
    }
}

impl Buffer {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.as_deref().unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.as_deref_mut().unwrap_or_default()
    }

    /// Reads from an aligned offset as much as there is, up to `bytes_max`.
    pub(crate) fn read(
        &mut self,
        fd: &OwnedFd,
        offset: u64,
        bytes_max: u64,
    ) -> rustix::io::Result<usize> {
        let memory = self.bytes_mut();
        let bytes = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(memory.len());
        rustix::io::retry_on_intr(|| rustix::io::pread(fd, &mut memory[..bytes], offset))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            let mut state = self.home.state.lock();
            state.stats.lent -= 1;
            state.free.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_are_lent_again_and_never_too_many() {
        for cold in [Cold::Copy, Cold::Splice] {
            let carriers = Carriers::new(cold, 2);
            let (first, second) = (carriers.lend(), carriers.lend());
            assert!(first.is_some() && second.is_some() && carriers.lend().is_none());
            drop(first);
            let third = carriers.lend();
            assert!(third.is_some() && carriers.lend().is_none());
            let stats = carriers.stats();
            assert_eq!((stats.made, stats.lent, stats.refused), (2, 2, 2), "{cold:?}");
            drop((second, third));
            assert_eq!(carriers.stats().lent, 0);
        }
    }
}
