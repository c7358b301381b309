//! Executes a window's reads and writes: through io_uring from one thread, or without io_uring, and
//! on simulated disks, by calls from a few threads.
//!
//! Requests are submitted to the ring in batches. One call then submits and collects dozens of
//! requests, which takes a third of the CPU time that threads calling `pwrite` take, and no context
//! switch for each request (`docs/decisions/0007-sorted-writes.md` has the figures).

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use haul_disk::{
    AlignedBuf, File, Op, Ring, RingCompletion, RingOp, RingRequest, read_full, write_full,
};

use crate::buffers::Buffers;
use crate::device::RING_DEPTH;
use crate::error::{Error, Result};
use crate::parallel::map;
use crate::plan::{Extent, Request};
use crate::target::Target;

/// The maximum number of threads that make calls, where there is no ring.
const THREADS_MAX: u32 = 8;

/// The number of queued bytes at which requests are submitted without waiting for more.
const SUBMIT_BYTES: usize = 1 << 20;

/// The maximum number of bytes in flight, so that composing requests and writing them overlap in
/// bounded memory.
const IN_FLIGHT_BYTES_MAX: usize = 16 << 20;

/// A file with a descriptor, open while the ring uses it.
#[derive(Debug)]
struct RingFile(Arc<dyn File>);

impl AsFd for RingFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let descriptor = self.0.descriptor();
        descriptor.expect("only files with a descriptor are used with the ring")
    }
}

/// A function that fills a buffer with a request's bytes.
pub(crate) type Compose<'a> = dyn Fn(&Request, &mut [u8]) + Sync + 'a;

/// The writing thread's executor. It creates its ring at the first use.
#[derive(Debug, Default)]
pub(crate) struct Engine {
    /// `None` before the first use; `Some(None)` if the kernel does not permit io_uring.
    ring: Option<Option<Ring<RingFile>>>,
    buffers: Buffers,
}

impl Engine {
    /// Reads the extents, and returns a buffer for each, in the same order.
    pub(crate) fn read(&mut self, target: &Target, extents: &[Extent]) -> Result<Vec<AlignedBuf>> {
        let depth = target.io().queue_depth;
        let Some(mut flight) = self.flight(target, depth) else {
            return map(extents, depth.min(THREADS_MAX), |extent| {
                let mut buffer = AlignedBuf::zeroed(length(extent.bytes));
                finish_read(target, extent, &mut buffer, 0)?;
                Ok(buffer)
            });
        };
        let mut read: Vec<Option<AlignedBuf>> = Vec::new();
        read.resize_with(extents.len(), || None);
        let mut done = |target: &Target, completion: RingCompletion<RingFile>| {
            let RingCompletion { request: RingRequest { tag, mut buffer, .. }, outcome } =
                completion;
            let index = usize::try_from(tag).unwrap_or(usize::MAX);
            finish_read(target, &extents[index], &mut buffer, outcome.unwrap_or(0))?;
            read[index] = Some(buffer);
            Ok(None)
        };
        for (tag, extent) in (0..).zip(extents) {
            flight.make_room(length(extent.bytes), &mut done)?;
            let buffer = flight.buffers.take(length(extent.bytes));
            flight.push(RingOp::Read, *extent, buffer, tag, &mut done)?;
        }
        flight.finish(&mut done)?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Composes and writes requests, in ascending order.
    ///
    /// # Durability
    /// None until the file is synced.
    pub(crate) fn write(
        &mut self,
        target: &Target,
        requests: &[Request],
        compose: &Compose<'_>,
    ) -> Result<()> {
        let depth = target.io().queue_depth;
        let Some(mut flight) = self.flight(target, depth) else {
            map(requests, depth.min(THREADS_MAX), |request| {
                let mut buffer = AlignedBuf::zeroed(length(request.extent.bytes));
                write_now(target, request, &mut buffer, compose)
            })?;
            return Ok(());
        };
        let mut done = |target: &Target, completion: RingCompletion<RingFile>| {
            let RingCompletion { request, outcome } = completion;
            finish_write(target, &request, outcome)?;
            Ok(Some(request.buffer))
        };
        for request in requests {
            let bytes = length(request.extent.bytes);
            flight.make_room(bytes, &mut done)?;
            let mut buffer = flight.buffers.take(bytes);
            if request.is_units {
                compose(request, &mut buffer[..bytes]);
                flight.push(RingOp::Write, request.extent, buffer, 0, &mut done)?;
            } else {
                write_now(target, request, &mut buffer, compose)?;
                flight.buffers.put_back(buffer);
            }
        }
        flight.finish(&mut done)
    }

    /// Keeps buffers for later requests.
    pub(crate) fn reuse(&mut self, buffers: Vec<AlignedBuf>) {
        buffers.into_iter().for_each(|buffer| self.buffers.put_back(buffer));
    }

    /// Returns the ring, ready for requests to the file; `None` without a ring.
    fn flight<'a>(&'a mut self, target: &'a Target, depth: u32) -> Option<Flight<'a>> {
        target.direct.descriptor()?;
        let ring = self.ring.get_or_insert_with(|| Ring::new(RING_DEPTH).ok()).as_mut()?;
        let depth = depth.clamp(1, RING_DEPTH) as usize;
        Some(Flight { ring, buffers: &mut self.buffers, target, depth, queued: 0, bytes: 0 })
    }
}

/// A function that handles a completed request and returns its buffer for reuse, if it does not
/// keep it.
type Done<'a> = dyn FnMut(&Target, RingCompletion<RingFile>) -> Result<Option<AlignedBuf>> + 'a;

/// Requests to one file that are in flight. After a failure, dropping the flight leaves requests in
/// the ring: [`Flight::drop`] collects them, so that none is mistaken for a later one.
struct Flight<'a> {
    ring: &'a mut Ring<RingFile>,
    buffers: &'a mut Buffers,
    target: &'a Target,
    depth: usize,
    /// The bytes queued since the last submission.
    queued: usize,
    /// The bytes queued and in flight.
    bytes: usize,
}

impl Flight<'_> {
    /// Waits until another request of `bytes` bytes may be queued.
    fn make_room(&mut self, bytes: usize, done: &mut Done<'_>) -> Result<()> {
        while self.ring.in_flight() >= self.depth
            || (self.bytes > 0 && self.bytes + bytes > IN_FLIGHT_BYTES_MAX)
        {
            // Waiting for half of the requests keeps the device busy with the other half.
            let completions = self.ring.in_flight().div_ceil(2);
            self.collect(completions, done)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        op: RingOp,
        extent: Extent,
        buffer: AlignedBuf,
        tag: u64,
        done: &mut Done<'_>,
    ) -> Result<()> {
        let bytes = length(extent.bytes);
        let file = RingFile(Arc::clone(&self.target.direct));
        let request = RingRequest { op, file, offset: extent.offset, buffer, bytes, tag };
        self.bytes += bytes;
        self.queued += bytes;
        if self.ring.push(request).is_err() {
            return Err(Error::Invalid("a request was pushed to a full ring"));
        }
        if self.queued >= SUBMIT_BYTES || self.depth == 1 {
            self.queued = 0;
            self.collect(0, done)?;
        }
        Ok(())
    }

    /// Submits the queued requests, waits for some requests in flight, and handles all that have
    /// completed.
    fn collect(&mut self, completions: usize, done: &mut Done<'_>) -> Result<()> {
        self.ring.submit_and_wait(completions)?;
        while let Some(completion) = self.ring.take() {
            self.bytes -= completion.request.bytes;
            if let Some(buffer) = done(self.target, completion)? {
                self.buffers.put_back(buffer);
            }
        }
        Ok(())
    }

    /// Waits for all requests in flight.
    fn finish(mut self, done: &mut Done<'_>) -> Result<()> {
        while self.ring.in_flight() > 0 {
            self.collect(usize::MAX, done)?;
        }
        Ok(())
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        while let Ok(Some(_abandoned)) = self.ring.wait() {}
    }
}

/// Reads the rest of an extent whose first `read` bytes are in the buffer. A failed read is
/// repeated here, so that its error names the file.
fn finish_read(target: &Target, extent: &Extent, buffer: &mut [u8], read: usize) -> Result<()> {
    let bytes = length(extent.bytes);
    if read == bytes {
        return Ok(());
    }
    let rest = &mut buffer[read..bytes];
    if read_full(&*target.direct, rest, extent.offset + read as u64)? < rest.len() {
        return Err(Error::Invalid("the file was truncated while it was being written"));
    }
    Ok(())
}

/// Completes a write if the kernel wrote only a part of it, as `pwrite` may do.
fn finish_write(
    target: &Target,
    request: &RingRequest<RingFile>,
    outcome: io::Result<usize>,
) -> Result<()> {
    let RingRequest { offset, bytes, buffer, .. } = request;
    match outcome {
        Ok(written) if written == *bytes => {}
        Ok(written) if written > 0 => {
            write_full(&*target.direct, &buffer[written..*bytes], offset + written as u64)?;
        }
        Ok(_nothing) => {
            let source = io::Error::from(ErrorKind::WriteZero);
            return Err(failed(target, *offset, *bytes, source));
        }
        Err(source) if matches!(source.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {
            write_full(&*target.direct, &buffer[..*bytes], *offset)?;
        }
        Err(source) => return Err(failed(target, *offset, *bytes, source)),
    }
    target.extend_to(offset + *bytes as u64);
    Ok(())
}

fn failed(target: &Target, offset: u64, bytes: usize, source: io::Error) -> Error {
    haul_disk::Error::new(Op::Write, &target.path, source).at(offset, bytes).into()
}

/// Composes and writes a request by a call.
fn write_now(
    target: &Target,
    request: &Request,
    buffer: &mut [u8],
    compose: &Compose<'_>,
) -> Result<()> {
    let bytes = &mut buffer[..length(request.extent.bytes)];
    compose(request, bytes);
    let file = if request.is_units { &target.direct } else { &target.buffered };
    write_full(&**file, bytes, request.extent.offset)?;
    target.extend_to(request.extent.end());
    Ok(())
}

pub(crate) fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
