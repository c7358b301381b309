//! Executes asynchronous reads through io_uring. Without io_uring, the engine asks the kernel for
//! readahead (`posix_fadvise`) and then reads one range after the other.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use haul_disk::{Ring, RingCompletion, RingOp, RingRequest};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// `RWF_DONTCACHE` (Linux 6.14), which the `rustix` crate does not name.
pub(super) const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

pub(super) type Request = RingRequest<Rc<OwnedFd>>;
pub(super) type Completion = RingCompletion<Rc<OwnedFd>>;

/// A queue of reads in flight.
#[derive(Debug)]
pub(super) enum Engine {
    Ring(Box<Ring<Rc<OwnedFd>>>),
    Calls { waiting: VecDeque<Request>, depth: usize },
}

impl Engine {
    /// Creates an engine with at most `depth` reads in flight. It uses io_uring if `ring` is `true`
    /// and the kernel supports it.
    pub(super) fn new(depth: usize, ring: bool) -> Self {
        let calls = || Self::Calls { waiting: VecDeque::new(), depth: depth.max(1) };
        if !ring {
            return calls();
        }
        match u32::try_from(depth).map(Ring::new) {
            Ok(Ok(ring)) => Self::Ring(Box::new(ring)),
            // Without io_uring, use plain calls, which always work.
            _ => calls(),
        }
    }

    pub(super) fn is_ring(&self) -> bool {
        matches!(self, Self::Ring(_))
    }

    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Ring(ring) => ring.is_full(),
            Self::Calls { waiting, depth } => waiting.len() >= *depth,
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        match self {
            Self::Ring(ring) => ring.in_flight(),
            Self::Calls { waiting, .. } => waiting.len(),
        }
    }

    /// Submits a read; returns it as an error if the queue is full. If there is no ring and
    /// `read_ahead` is `true`, asks the kernel to read the range into the page cache.
    pub(super) fn push(&mut self, request: Request, read_ahead: bool) -> Result<(), Request> {
        match self {
            Self::Ring(ring) => ring.push(request),
            Self::Calls { waiting, depth } if waiting.len() >= *depth => Err(request),
            Self::Calls { waiting, .. } => {
                if read_ahead {
                    let bytes = NonZeroU64::new(request.bytes as u64);
                    // An error is ignored: without the advice the read is only slower.
                    fadvise(&*request.file, request.offset, bytes, Advice::WillNeed).ok();
                }
                waiting.push_back(request);
                Ok(())
            }
        }
    }

    /// Waits for a completion; returns `None` if no read is in flight.
    ///
    /// # Errors
    /// After an error the ring is unusable. It keeps the buffers of the reads in flight, because
    /// the kernel may still write to them.
    pub(super) fn wait(&mut self) -> Result<Option<Completion>, haul_disk::Error> {
        match self {
            Self::Ring(ring) => ring.wait(),
            Self::Calls { waiting, .. } => Ok(waiting.pop_front().map(read_sync)),
        }
    }
}

/// Executes a read synchronously.
pub(super) fn read_sync(mut read: Request) -> Completion {
    let bytes = read.bytes.min(read.buffer.len());
    let is_uncached = read.op == RingOp::ReadUncached;
    let flags = if is_uncached { DONTCACHE } else { ReadWriteFlags::empty() };
    let outcome = loop {
        let mut slices = [io::IoSliceMut::new(&mut read.buffer[..bytes])];
        match preadv2(&*read.file, &mut slices, read.offset, flags) {
            Err(Errno::INTR) => {}
            outcome => break outcome.map_err(io::Error::from),
        }
    };
    RingCompletion { request: read, outcome }
}
