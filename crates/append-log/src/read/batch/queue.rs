//! Executes reads of segment ranges: many at once through io_uring; one after the other without it,
//! and on simulated disks.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use haul_disk::{AlignedBuf, Ring, RingOp, RingRequest, read_full};

use crate::read::batch::plan::RUN_BYTES_MAX;
use crate::segments::Segment;

/// The number of reads in flight.
pub(crate) const DEPTH: usize = 64;

/// The number of reads at or above which a ring is worth creating: creating it takes about as long
/// as some reads.
const RING_READS_MIN: usize = 8;

#[derive(Debug)]
pub(crate) struct RangeRead {
    pub(crate) segment: Arc<Segment>,
    pub(crate) offset: u32,
    pub(crate) bytes: usize,
    /// The caller's identifier for the read.
    pub(crate) tag: usize,
}

/// A completed read. If it failed, or reached the end of the file, `bytes` is less than requested.
#[derive(Debug)]
pub(crate) struct RangeBytes {
    pub(crate) segment: Arc<Segment>,
    pub(crate) tag: usize,
    /// The buffer, whose first `bytes` bytes were read.
    pub(crate) buffer: AlignedBuf,
    pub(crate) bytes: usize,
}

/// A segment that is read through the ring, and stays open until the read has completed.
#[derive(Debug)]
struct RingFile(Arc<Segment>);

impl AsFd for RingFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let descriptor = self.0.file.descriptor();
        descriptor.expect("only segments with a descriptor are read through the ring")
    }
}

/// Reads that are queued or in flight.
#[derive(Debug)]
pub(crate) struct Queue {
    /// `None` if the kernel does not permit io_uring, or the ring has failed.
    ring: Option<Ring<RingFile>>,
    /// Reads that are executed one after the other.
    calls: VecDeque<RangeRead>,
    /// Unused buffers.
    buffers: Vec<AlignedBuf>,
}

impl Queue {
    /// Creates a queue for `reads` reads in total.
    pub(crate) fn new(reads: usize) -> Self {
        let depth = u32::try_from(DEPTH.min(reads)).unwrap_or(u32::MAX);
        let is_worthwhile = reads >= RING_READS_MIN;
        // Without io_uring the reads are system calls.
        let ring = is_worthwhile.then(|| Ring::new(depth).ok()).flatten();
        Self { ring, calls: VecDeque::new(), buffers: Vec::new() }
    }

    /// Returns `true` if no further read should be pushed before one is returned.
    pub(crate) fn is_full(&self) -> bool {
        // Calls are made one after the other, so queueing more of them has no benefit.
        !self.calls.is_empty() || self.ring.as_ref().is_some_and(Ring::is_full)
    }

    pub(crate) fn push(&mut self, read: RangeRead) {
        let buffer = match &self.ring {
            Some(ring) if !ring.is_full() && read.segment.file.descriptor().is_some() => {
                self.buffer(read.bytes)
            }
            _ => return self.calls.push_back(read),
        };
        let RangeRead { segment, offset, bytes, tag } = read;
        let (file, offset, tag) = (RingFile(segment), offset.into(), tag as u64);
        let read = RingRequest { file, offset, buffer, bytes, op: RingOp::Read, tag };
        // The ring is not full.
        self.ring.as_mut().map(|ring| ring.push(read));
    }

    /// Returns a completed read; waits for one if none has completed. `None` if no read is queued,
    /// or if the ring has failed and lost its reads.
    pub(crate) fn next(&mut self) -> Option<RangeBytes> {
        if let Some(read) = self.calls.pop_front() {
            return Some(self.call(read));
        }
        let ring = self.ring.as_mut()?;
        let done = match ring.take() {
            Some(done) => Ok(Some(done)),
            // With a quarter of the reads completed, the disk still has enough to do, and the
            // thread is woken less often than for each read.
            None => ring.submit_and_wait(ring.in_flight().div_ceil(4)).and_then(|()| ring.wait()),
        };
        let Ok(done) = done else {
            self.ring = None;
            return None;
        };
        let done = done?;
        Some(RangeBytes {
            segment: done.request.file.0,
            tag: usize::try_from(done.request.tag).unwrap_or(usize::MAX),
            buffer: done.request.buffer,
            // The caller repeats a failed read with a system call, whose error has the path.
            bytes: done.outcome.unwrap_or(0),
        })
    }

    /// Reads a range with system calls.
    fn call(&mut self, read: RangeRead) -> RangeBytes {
        let RangeRead { segment, offset, bytes, tag } = read;
        let mut buffer = self.buffer(bytes);
        let outcome = read_full(&*segment.file, &mut buffer[..bytes], offset.into());
        RangeBytes { segment, tag, buffer, bytes: outcome.unwrap_or(0) }
    }

    /// Returns a buffer of at least `bytes` bytes.
    fn buffer(&mut self, bytes: usize) -> AlignedBuf {
        let unused = self.buffers.pop().filter(|buffer| buffer.len() >= bytes);
        unused.unwrap_or_else(|| AlignedBuf::zeroed(bytes.next_power_of_two()))
    }

    /// Takes a buffer back for later reads.
    pub(crate) fn release(&mut self, buffer: AlignedBuf) {
        // A long record's memory is not kept.
        if buffer.len() <= RUN_BYTES_MAX as usize {
            self.buffers.push(buffer);
        }
    }
}
