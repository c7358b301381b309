//! Reads under way: in the kernel's ring where there is one, else announced to the kernel and made
//! one after the other.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use haul_disk::{ReadRing, RingDone, RingRead};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// `RWF_DONTCACHE` (Linux 6.14).
pub(super) const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

pub(super) type Request = RingRead<Rc<OwnedFd>>;
pub(super) type Completion = RingDone<Rc<OwnedFd>>;

/// Takes requests, and gives them back done.
#[derive(Debug)]
pub(super) enum Engine {
    Ring(Box<ReadRing<Rc<OwnedFd>>>),
    Calls { waiting: VecDeque<Request>, depth: usize },
}

impl Engine {
    /// One with `depth` requests under way at most.
    pub(super) fn new(depth: usize, ring: bool) -> Self {
        let calls = || Self::Calls { waiting: VecDeque::new(), depth: depth.max(1) };
        if !ring {
            return calls();
        }
        match u32::try_from(depth).map(ReadRing::new) {
            Ok(Ok(ring)) => Self::Ring(Box::new(ring)),
            // Whatever the reason: plain calls always work.
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

    /// Takes a request; gives it back when it is full. Without a ring, what is to be read is
    /// announced to the kernel if it may be read ahead: then it stays in memory.
    pub(super) fn push(&mut self, request: Request, read_ahead: bool) -> Result<(), Request> {
        match self {
            Self::Ring(ring) => ring.push(request),
            Self::Calls { waiting, depth } if waiting.len() >= *depth => Err(request),
            Self::Calls { waiting, .. } => {
                if read_ahead {
                    let bytes = NonZeroU64::new(request.bytes as u64);
                    // Advice that is not taken costs time alone.
                    fadvise(&*request.file, request.offset, bytes, Advice::WillNeed).ok();
                }
                waiting.push_back(request);
                Ok(())
            }
        }
    }

    /// Waits for a request to be over; `None` when there are none.
    ///
    /// # Errors
    /// The ring is of no use any more, and keeps what it has.
    pub(super) fn wait(&mut self) -> Result<Option<Completion>, haul_disk::Error> {
        match self {
            Self::Ring(ring) => ring.wait(),
            Self::Calls { waiting, .. } => Ok(waiting.pop_front().map(read_now)),
        }
    }
}

/// Reads with a plain call.
pub(super) fn read_now(mut read: Request) -> Completion {
    let bytes = read.bytes.min(read.buffer.len());
    let flags = if read.uncached { DONTCACHE } else { ReadWriteFlags::empty() };
    let outcome = loop {
        let mut slices = [io::IoSliceMut::new(&mut read.buffer[..bytes])];
        match preadv2(&*read.file, &mut slices, read.offset, flags) {
            Err(Errno::INTR) => {}
            outcome => break outcome.map_err(io::Error::from),
        }
    };
    RingDone { read, outcome }
}
