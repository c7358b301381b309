//! Keeps many reads and writes in flight from one thread through io_uring.
//!
//! # Soundness
//! The kernel may access a buffer at any time between submission and completion of its request.
//! During that time the ring owns the buffer, and no reference to the buffer exists. The completion
//! returns the buffer to the caller. Dropping a ring waits for the requests in flight; leaking a
//! ring leaks its buffers. The ring owns its requests' files in the same way.
#![expect(unsafe_code, reason = "the kernel keeps addresses of buffers")]

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::{IoUring, opcode, types};

use super::buffer::AlignedBuf;
use crate::error::{Error, Op, Result};

/// The flag `RWF_DONTCACHE`: a read adds no pages to the page cache (Linux 6.14).
const DONTCACHE: i32 = 0x80;

/// The error codes that kernels and sandboxes return without io_uring, or with io_uring disabled by
/// sysctl.
const REFUSALS: [i32; 4] = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::EOPNOTSUPP];

/// A [`RingRequest`]'s operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingOp {
    /// Fills the buffer from its first byte.
    Read,
    /// As [`Self::Read`], but adds no pages to the page cache. Unlike [`crate::read_uncached`], the
    /// read fails if the file system does not support this.
    ReadUncached,
    /// Writes the first bytes of the buffer.
    Write,
}

/// A read or a write, owned by the ring until the ring returns it as a [`RingCompletion`].
#[derive(Debug)]
pub struct RingRequest<F> {
    /// The operation.
    pub op: RingOp,
    /// The file to read or write.
    pub file: F,
    /// The file offset of the first byte.
    pub offset: u64,
    /// The buffer to fill, or with the bytes to write.
    pub buffer: AlignedBuf,
    /// The number of bytes to read or write, at most the buffer length.
    pub bytes: usize,
    /// The caller's identifier for the request, which the ring does not interpret.
    pub tag: u64,
}

/// A completed request, successful or not.
#[derive(Debug)]
pub struct RingCompletion<F> {
    /// The request as it was queued, with its file and its buffer.
    pub request: RingRequest<F>,
    /// The number of bytes read or written, which may be less than requested; 0 at end of file.
    pub outcome: io::Result<usize>,
}

/// An io_uring for concurrent reads and writes, bound to the thread that created it.
///
/// # Durability
/// A completed write is as durable as after `pwrite(2)`: not before the file is synced.
///
/// # Source
/// `io_uring(7)`; `IORING_SETUP_DEFER_TASKRUN` if available (Linux 6.1).
pub struct Ring<F> {
    ring: IoUring,
    /// One slot per request. The slot's index is the request's `user_data` in the kernel's queues,
    /// so a completion identifies its request.
    slots: Vec<Option<RingRequest<F>>>,
    free: Vec<u32>,
    /// Requests in the submission queue that are not submitted yet.
    queued: usize,
    /// Makes the ring neither `Send` nor `Sync`: with `IORING_SETUP_SINGLE_ISSUER` only the thread
    /// that created the ring may submit.
    _not_send: PhantomData<*const ()>,
}

impl<F: AsFd> Ring<F> {
    /// Creates a ring for `depth` concurrent requests; a value outside 1 to 4096 is clamped.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if io_uring is missing or not permitted: use plain calls.
    pub fn new(depth: u32) -> Result<Self> {
        let depth = depth.clamp(1, 4096);
        let mut modern = IoUring::builder();
        modern.dontfork().setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
        let ring = match modern.build(depth) {
            // A kernel older than Linux 6.1 rejects these options.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                IoUring::builder().dontfork().build(depth)
            }
            built => built,
        };
        let ring = ring.map_err(|source| match source.raw_os_error() {
            Some(code) if REFUSALS.contains(&code) => {
                fail(io::Error::new(io::ErrorKind::Unsupported, source))
            }
            _ => fail(source),
        })?;
        Ok(Self {
            ring,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            queued: 0,
            _not_send: PhantomData,
        })
    }

    /// Returns the number of requests that are queued or submitted and not yet returned.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// `true` if no further request can be queued before one completes.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Queues a request; [`Ring::submit`] or [`Ring::wait`] submits it.
    ///
    /// # Errors
    /// Returns the request if the ring is full.
    pub fn push(&mut self, mut request: RingRequest<F>) -> std::result::Result<(), RingRequest<F>> {
        let Some(index) = self.free.pop() else { return Err(request) };
        let bytes = request.bytes.min(request.buffer.len());
        let length = u32::try_from(bytes).unwrap_or(u32::MAX);
        // The offset -1 would mean the current file offset.
        let offset = request.offset.min(u64::MAX - 1);
        let fd = types::Fd(request.file.as_fd().as_raw_fd());
        let buffer = request.buffer.as_mut_ptr();
        let read = |flags| opcode::Read::new(fd, buffer, length).offset(offset).rw_flags(flags);
        let entry = match request.op {
            RingOp::Read => read(0).build(),
            RingOp::ReadUncached => read(DONTCACHE).build(),
            RingOp::Write => opcode::Write::new(fd, buffer, length).offset(offset).build(),
        };
        let entry = entry.user_data(index.into());
        // SAFETY: the buffer has at least `length` bytes. The buffer and the file are moved into
        // the slot below, before the entry can be submitted, and leave the slot only after
        // completion. Moving the buffer does not move its memory.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            // Unreachable: the submission queue has at least as many entries as the ring has slots.
            self.free.push(index);
            return Err(request);
        }
        self.slots[index as usize] = Some(request);
        self.queued += 1;
        Ok(())
    }

    /// Submits the queued requests without waiting.
    ///
    /// # Errors
    /// Returns the system call's error. Unsubmitted requests stay queued.
    pub fn submit(&mut self) -> Result<()> {
        while self.queued > 0 {
            match self.ring.submit() {
                Ok(submitted) => self.queued -= submitted.min(self.queued),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The completion queue is full: the next call to `wait` empties it.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => break,
                Err(error) => return Err(fail(error)),
            }
        }
        Ok(())
    }

    /// Submits the queued requests and waits until `completions` requests have completed, or all in
    /// flight if these are fewer. [`Ring::take`] returns them. Waiting for several requests at once
    /// costs fewer system calls and context switches than waiting for each.
    ///
    /// # Errors
    /// Returns the system call's error; the ring is unusable afterwards.
    pub fn submit_and_wait(&mut self, completions: usize) -> Result<()> {
        let wanted = completions.min(self.in_flight());
        match self.ring.submit_and_wait(wanted) {
            Ok(submitted) => self.queued -= submitted.min(self.queued),
            // An interrupted call may have submitted some requests or none: the next call
            // continues.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The completion queue is full, so requests have completed.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(fail(error)),
        }
        Ok(())
    }

    /// Submits the queued requests and returns a completed one, waiting if none has completed;
    /// `None` if the ring holds no request.
    ///
    /// # Errors
    /// Returns the system call's error; the ring is unusable afterwards. A failed request is not an
    /// error of this method.
    pub fn wait(&mut self) -> Result<Option<RingCompletion<F>>> {
        loop {
            if let Some(done) = self.take() {
                return Ok(Some(done));
            }
            if self.in_flight() == 0 {
                return Ok(None);
            }
            match self.ring.submit_and_wait(1) {
                Ok(submitted) => self.queued -= submitted.min(self.queued),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(fail(error)),
            }
        }
    }

    /// Returns a completed request if the completion queue contains one, without a system call.
    pub fn take(&mut self) -> Option<RingCompletion<F>> {
        let entry = self.ring.completion().next()?;
        let index = u32::try_from(entry.user_data()).ok()?;
        let request = self.slots.get_mut(index as usize)?.take()?;
        self.free.push(index);
        let outcome = match usize::try_from(entry.result()) {
            // Limits the count to the buffer length, in case the kernel reports more.
            Ok(bytes) => Ok(bytes.min(request.buffer.len())),
            Err(_negative) => Err(io::Error::from_raw_os_error(-entry.result())),
        };
        Some(RingCompletion { request, outcome })
    }
}

impl<F> Ring<F> {
    /// Waits until all submitted requests have completed, successfully or not.
    fn drain(&mut self) -> io::Result<()> {
        let mut left = self.slots.len() - self.free.len() - self.queued;
        while left > 0 {
            let completed = self.ring.completion().count();
            left = left.saturating_sub(completed);
            if left > 0 {
                match self.ring.submitter().submit_and_wait(1) {
                    Ok(submitted) => left += submitted,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

impl<F> Drop for Ring<F> {
    fn drop(&mut self) {
        if self.drain().is_err() {
            // The kernel may still access the buffers in flight, so they are leaked.
            mem::forget(mem::take(&mut self.slots));
        }
    }
}

impl<F> fmt::Debug for Ring<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_flight = self.slots.len() - self.free.len();
        write!(f, "Ring({in_flight} of {} requests)", self.slots.len())
    }
}

fn fail(source: io::Error) -> Error {
    Error::new(Op::Ring, "io_uring", source)
}
