//! Pools of the buffers, or pipes, through which windows of cold files get to sockets.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use haul_disk::AlignedBuf;
use haul_pipe::{Lease, PipePool, PoolOptions};
use parking_lot::Mutex;

use crate::config::Cold;

/// The maximal length of a pipe without privileges.
const PIPE_BYTES: usize = 1 << 20;
/// The length of a buffer: a huge page.
const BUFFER_BYTES: usize = 2 << 20;

/// The pool of a serving thread. Each buffer is created when it is first needed, and reused.
#[derive(Debug, Clone)]
pub(crate) enum Buffers {
    Pipes(PipePool),
    Memory(MemoryPool),
}

/// A leased buffer.
#[derive(Debug)]
pub(crate) enum LeasedBuffer {
    Pipe(Lease),
    Memory(MemoryLease),
}

/// Counters of a pool.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BufferStats {
    pub(crate) created: u64,
    pub(crate) leased: u64,
    pub(crate) refused: u64,
}

impl Buffers {
    pub(crate) fn new(cold: Cold, buffers_max: usize) -> Self {
        match cold {
            Cold::Splice => {
                let options = PoolOptions { pipe_bytes: PIPE_BYTES, pipes_max: buffers_max };
                Self::Pipes(PipePool::new(options))
            }
            Cold::Copy => Self::Memory(MemoryPool::new(buffers_max)),
        }
    }

    /// Leases an empty buffer; `None` if all are leased.
    pub(crate) fn lease(&self) -> Option<LeasedBuffer> {
        match self {
            Self::Pipes(pool) => pool.lease().ok().map(LeasedBuffer::Pipe),
            Self::Memory(pool) => pool.lease().map(LeasedBuffer::Memory),
        }
    }

    pub(crate) fn stats(&self) -> BufferStats {
        match self {
            Self::Pipes(pool) => {
                let stats = pool.stats();
                let leased = stats.leased as u64;
                BufferStats { created: stats.created, leased, refused: stats.refused }
            }
            Self::Memory(pool) => pool.0.state.lock().stats,
        }
    }
}

/// Buffers in huge pages.
#[derive(Debug, Clone)]
pub(crate) struct MemoryPool(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    buffers_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<AlignedBuf>,
    stats: BufferStats,
}

/// A leased buffer in memory, which returns to its pool when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryLease {
    /// `None` only while it is dropped.
    memory: Option<AlignedBuf>,
    pool: Arc<Pool>,
}

/// The bytes of a window in a leased buffer.
struct LeasedBytes {
    lease: MemoryLease,
    start: usize,
    end: usize,
}

impl AsRef<[u8]> for LeasedBytes {
    fn as_ref(&self) -> &[u8] {
        let memory = self.lease.memory.as_deref().unwrap_or_default();
        memory.get(self.start..self.end).unwrap_or_default()
    }
}

impl MemoryPool {
    fn new(buffers_max: usize) -> Self {
        Self(Arc::new(Pool { buffers_max, state: Mutex::default() }))
    }

    fn lease(&self) -> Option<MemoryLease> {
        let mut state = self.0.state.lock();
        let memory = match state.free.pop() {
            Some(memory) => memory,
            None if state.stats.created >= self.0.buffers_max as u64 => {
                state.stats.refused += 1;
                return None;
            }
            None => {
                state.stats.created += 1;
                AlignedBuf::huge(BUFFER_BYTES)
            }
        };
        state.stats.leased += 1;
        Some(MemoryLease { memory: Some(memory), pool: Arc::clone(&self.0) })
    }
}

impl MemoryLease {
    /// Returns a range of the buffer, which is leased until all copies of these bytes are dropped.
    pub(crate) fn into_bytes(self, start: usize, bytes: usize) -> Bytes {
        Bytes::from_owner(LeasedBytes { lease: self, start, end: start + bytes })
    }

    /// Reads from an aligned offset, up to `bytes_max` bytes and the length of the buffer.
    pub(crate) fn read(
        &mut self,
        fd: &OwnedFd,
        offset: u64,
        bytes_max: u64,
    ) -> rustix::io::Result<usize> {
        let memory = self.memory.as_deref_mut().unwrap_or_default();
        let bytes = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(memory.len());
        rustix::io::retry_on_intr(|| rustix::io::pread(fd, &mut memory[..bytes], offset))
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            let mut state = self.pool.state.lock();
            state.stats.leased -= 1;
            state.free.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_and_limited() {
        for cold in [Cold::Copy, Cold::Splice] {
            let buffers = Buffers::new(cold, 2);
            let (first, second) = (buffers.lease(), buffers.lease());
            assert!(first.is_some() && second.is_some() && buffers.lease().is_none());
            drop(first);
            let third = buffers.lease();
            assert!(third.is_some() && buffers.lease().is_none());
            let stats = buffers.stats();
            assert_eq!((stats.created, stats.leased, stats.refused), (2, 2, 2), "{cold:?}");
            drop((second, third));
            assert_eq!(buffers.stats().leased, 0);
            if let Some(LeasedBuffer::Memory(lease)) = buffers.lease() {
                let bytes = lease.into_bytes(3, 5);
                assert_eq!((bytes.len(), buffers.stats().leased), (5, 1));
                drop(bytes);
            }
            assert_eq!(buffers.stats().leased, 0, "the bytes were dropped");
        }
    }
}
