//! Creates pipes on demand, up to a limit, and reuses empty ones.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

/// Options of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// The requested capacity of each pipe in bytes. The kernel rounds it up to a power of two of
    /// pages, and grants less to an unprivileged user with many pipes
    /// (`/proc/sys/fs/pipe-user-pages-soft`).
    pub pipe_bytes: usize,
    /// The maximum number of pipes, leased and free together; each pipe takes two descriptors.
    pub pipes_max: usize,
}

impl Default for PoolOptions {
    /// Returns options with 256 pipes of 1 MiB, the largest size an unprivileged user gets by
    /// default (`/proc/sys/fs/pipe-max-size`). The bytes waiting in a fast socket then move in one
    /// call, and a slow reader occupies a bounded amount of memory.
    fn default() -> Self {
        Self { pipe_bytes: 1 << 20, pipes_max: 256 }
    }
}

/// The reason why a pool leases no pipe; the caller can copy the bytes instead, or retry later.
#[derive(Debug, thiserror::Error)]
pub enum NoPipe {
    /// All pipes of the pool are leased; the field is their number.
    #[error("all {0} pipes of the pool are in use")]
    Exhausted(usize),
    /// The kernel refused to create another pipe.
    #[error("cannot create a pipe: {0}")]
    Refused(#[source] io::Error),
}

/// Counters of a pool since it was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Pipes created with `pipe2`.
    pub created: u64,
    /// Pipes closed because they held bytes when their lease ended.
    pub closed: u64,
    /// Pipes that were smaller than requested when created.
    pub undersized: u64,
    /// Calls of [`PipePool::lease`] that got no pipe.
    pub refused: u64,
    /// Pipes leased now.
    pub leased: usize,
    /// Pipes free now.
    pub free: usize,
}

/// A pool of pipes. All clones share the same pipes.
#[derive(Debug, Clone)]
pub struct PipePool(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    options: PoolOptions,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Pipe>,
    stats: PoolStats,
}

/// Both ends of a pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) reader: OwnedFd,
    pub(crate) writer: OwnedFd,
    pub(crate) capacity_bytes: usize,
}

impl PipePool {
    /// Creates an empty pool; pipes are created on demand.
    pub fn new(options: PoolOptions) -> Self {
        Self(Arc::new(Shared { options, state: Mutex::default() }))
    }

    /// Takes an empty pipe out of the pool, or creates one.
    pub(crate) fn take(&self) -> Result<(Pipe, Arc<Shared>), NoPipe> {
        let mut state = self.0.state.lock();
        let pipe = match state.free.pop() {
            Some(pipe) => Ok(self.0.enlarged(pipe)),
            None if state.stats.leased >= self.0.options.pipes_max => {
                Err(NoPipe::Exhausted(self.0.options.pipes_max))
            }
            None => self.0.make(&mut state.stats).map_err(|error| NoPipe::Refused(error.into())),
        };
        match &pipe {
            Ok(_) => state.stats.leased += 1,
            Err(_) => state.stats.refused += 1,
        }
        pipe.map(|pipe| (pipe, Arc::clone(&self.0)))
    }

    /// Returns the counters of the pool.
    pub fn stats(&self) -> PoolStats {
        let state = self.0.state.lock();
        PoolStats { free: state.free.len(), ..state.stats }
    }
}

impl Shared {
    fn make(&self, stats: &mut PoolStats) -> rustix::io::Result<Pipe> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // If the kernel refuses to resize the pipe beyond the user's limit, the pool uses the
        // smaller pipe, which only costs more system calls.
        let resized = fcntl_setpipe_size(&writer, self.options.pipe_bytes);
        let capacity_bytes = resized.or_else(|_| fcntl_getpipe_size(&writer))?;
        stats.created += 1;
        stats.undersized += u64::from(capacity_bytes < self.options.pipe_bytes);
        Ok(Pipe { reader, writer, capacity_bytes })
    }

    /// Enlarges an undersized pipe if the kernel allows it: other processes of the user may have
    /// closed pipes since it was created.
    fn enlarged(&self, mut pipe: Pipe) -> Pipe {
        if pipe.capacity_bytes < self.options.pipe_bytes {
            let enlarged = fcntl_setpipe_size(&pipe.writer, self.options.pipe_bytes);
            pipe.capacity_bytes = enlarged.unwrap_or(pipe.capacity_bytes);
        }
        pipe
    }

    /// Returns a pipe to the pool if `pending_bytes` is zero; otherwise closes it.
    pub(crate) fn release(&self, pipe: Pipe, pending_bytes: usize) {
        let mut state = self.state.lock();
        state.stats.leased -= 1;
        if pending_bytes == 0 {
            state.free.push(pipe);
        } else {
            state.stats.closed += 1;
            drop(state);
            drop(pipe);
        }
    }
}
