//! Pipes that are kept.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::lease::Lease;

/// How a pool makes pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// The size asked for; the kernel rounds it up to a power of two of pages, and gives less to
    /// a user without privileges who has many (`/proc/sys/fs/pipe-user-pages-soft`).
    pub pipe_bytes: usize,
    /// How many there may be, lent and free together. Each is two descriptors.
    pub pipes_max: usize,
}

impl Default for PoolOptions {
    /// 1 MiB, the most that everybody may have: what waits in a fast socket goes through in one
    /// burst, and what a slow reader pins in a pipe is bounded by it.
    fn default() -> Self {
        Self { pipe_bytes: 1 << 20, pipes_max: 256 }
    }
}

/// No pipe could be lent: copy instead, or come back.
#[derive(Debug, thiserror::Error)]
pub enum NoPipe {
    /// All of them are lent.
    #[error("all {0} pipes of the pool are in use")]
    Exhausted(usize),
    /// The kernel made none.
    #[error("cannot make a pipe: {0}")]
    Refused(#[source] io::Error),
}

/// What became of a pool's pipes so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Pipes made: the calls of `pipe2`.
    pub made: u64,
    /// Pipes closed because something was still inside.
    pub closed: u64,
    /// Pipes that were made smaller than was asked for.
    pub undersized: u64,
    /// How often somebody asked and got none.
    pub refused: u64,
    /// Lent now.
    pub leased: usize,
    /// Waiting for the next one.
    pub free: usize,
}

/// A pool of pipes; clones share it.
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
    /// A pool without pipes: each is made when it is first needed.
    pub fn new(options: PoolOptions) -> Self {
        Self(Arc::new(Shared { options, state: Mutex::default() }))
    }

    /// Lends an empty pipe. It comes back when the lease is dropped, if it is empty then. One that
    /// could not be made as large as was asked for is tried to be enlarged first.
    ///
    /// # Errors
    /// When all are lent, or the kernel makes no more (descriptors, memory).
    pub fn lease(&self) -> Result<Lease, NoPipe> {
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
        pipe.map(|pipe| Lease::new(pipe, Arc::clone(&self.0)))
    }

    /// What became of its pipes.
    pub fn stats(&self) -> PoolStats {
        let state = self.0.state.lock();
        PoolStats { free: state.free.len(), ..state.stats }
    }
}

impl Shared {
    fn make(&self, stats: &mut PoolStats) -> rustix::io::Result<Pipe> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Refused to whoever has too many already: a smaller pipe does the same in more calls.
        let asked_for = fcntl_setpipe_size(&writer, self.options.pipe_bytes);
        let capacity_bytes = asked_for.or_else(|_| fcntl_getpipe_size(&writer))?;
        stats.made += 1;
        stats.undersized += u64::from(capacity_bytes < self.options.pipe_bytes);
        Ok(Pipe { reader, writer, capacity_bytes })
    }

    /// Others may have given up theirs since it was made.
    fn enlarged(&self, mut pipe: Pipe) -> Pipe {
        if pipe.capacity_bytes < self.options.pipe_bytes {
            let enlarged = fcntl_setpipe_size(&pipe.writer, self.options.pipe_bytes);
            pipe.capacity_bytes = enlarged.unwrap_or(pipe.capacity_bytes);
        }
        pipe
    }

    /// Takes back a pipe with `pending_bytes` inside.
    pub(crate) fn take_back(&self, pipe: Pipe, pending_bytes: usize) {
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
