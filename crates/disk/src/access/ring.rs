//! Keeps many reads in flight from one thread through io_uring.
//!
//! # Soundness
//! The kernel may write into a buffer at any time between submission and completion of the read.
//! During that time the ring owns the buffer, and no reference to the buffer exists. The completion
//! returns the buffer to the caller. Dropping a ring waits for the reads in flight; leaking a ring
//! leaks its buffers. The ring owns the files of its reads in the same way.
#![expect(unsafe_code, reason = "the kernel keeps addresses of buffers")]

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::{IoUring, opcode, types};

use super::buffer::AlignedBuf;
use crate::error::{Error, Op, Result};

/// The flag `RWF_DONTCACHE` of reads that add no pages to the page cache (Linux 6.14).
const DONTCACHE: i32 = 0x80;

/// The error codes of kernels and sandboxes without io_uring, or with io_uring disabled by sysctl.
const REFUSALS: [i32; 4] = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::EOPNOTSUPP];

/// A read, owned by the ring until the ring returns it as a [`RingCompletion`].
#[derive(Debug)]
pub struct RingRead<F> {
    /// The file to read.
    pub file: F,
    /// The offset in the file of the first byte to read, in bytes.
    pub offset: u64,
    /// The destination buffer, which is filled from its first byte.
    pub buffer: AlignedBuf,
    /// The number of bytes to read, at most the length of the buffer.
    pub bytes: usize,
    /// `true` to add no pages to the page cache. Unlike [`crate::read_uncached`], the read fails if
    /// the file system does not support this.
    pub uncached: bool,
    /// The caller's identifier of the read, which the ring does not interpret.
    pub tag: u64,
}

/// A completed read, successful or not.
#[derive(Debug)]
pub struct RingCompletion<F> {
    /// The read as it was queued, with its file and its buffer.
    pub read: RingRead<F>,
    /// The number of bytes read, which may be fewer than requested; 0 at end of file.
    pub outcome: io::Result<usize>,
}

/// An io_uring for concurrent reads, bound to the thread that created it.
///
/// # Source
/// `io_uring(7)`; `IORING_SETUP_DEFER_TASKRUN` if available (Linux 6.1).
pub struct ReadRing<F> {
    ring: IoUring,
    /// One slot per read. The index of the slot is the `user_data` of the read in the kernel's
    /// queues, so a completion identifies its read.
    slots: Vec<Option<RingRead<F>>>,
    free: Vec<u32>,
    /// Reads in the submission queue that are not submitted yet.
    queued: usize,
    /// Makes the ring neither `Send` nor `Sync`: with `IORING_SETUP_SINGLE_ISSUER` only the thread
    /// that created the ring may submit.
    _not_send: PhantomData<*const ()>,
}

impl<F: AsFd> ReadRing<F> {
    /// Creates a ring for `depth` concurrent reads; a value outside 1 to 4096 is clamped.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if io_uring is missing or not permitted: use plain reads.
    pub fn new(depth: u32) -> Result<Self> {
        let depth = depth.clamp(1, 4096);
        let mut modern = IoUring::builder();
        modern.dontfork().setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
        let ring = match modern.build(depth) {
            // A kernel older than Linux 6.1 refuses these options.
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

    /// Returns the number of reads that are queued or submitted and not yet returned.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// `true` if no further read can be queued before one completes.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Queues a read; [`ReadRing::submit`] or [`ReadRing::wait`] submits it.
    ///
    /// # Errors
    /// Returns the read if the ring is full.
    pub fn push(&mut self, mut read: RingRead<F>) -> std::result::Result<(), RingRead<F>> {
        let Some(index) = self.free.pop() else { return Err(read) };
        let bytes = read.bytes.min(read.buffer.len());
        let length = u32::try_from(bytes).unwrap_or(u32::MAX);
        // The offset -1 would mean the current file offset.
        let offset = read.offset.min(u64::MAX - 1);
        let fd = types::Fd(read.file.as_fd().as_raw_fd());
        let entry = opcode::Read::new(fd, read.buffer.as_mut_ptr(), length)
            .offset(offset)
            .rw_flags(if read.uncached { DONTCACHE } else { 0 })
            .build()
            .user_data(index.into());
        // SAFETY: the buffer has at least `length` bytes. The buffer and the file are moved into
        // the slot below, before the entry can be submitted, and leave the slot only after
        // completion. Moving the buffer does not move its memory.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            // Unreachable: the submission queue has at least as many entries as the ring has slots.
            self.free.push(index);
            return Err(read);
        }
        self.slots[index as usize] = Some(read);
        self.queued += 1;
        Ok(())
    }

    /// Submits the queued reads without waiting.
    ///
    /// # Errors
    /// The error of the system call. Unsubmitted reads stay queued.
    pub fn submit(&mut self) -> Result<()> {
        while self.queued > 0 {
            match self.ring.submit() {
                Ok(submitted) => self.queued -= submitted.min(self.queued),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The completion queue is full: the next call of `wait` empties it.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => break,
                Err(error) => return Err(fail(error)),
            }
        }
        Ok(())
    }

    /// Submits the queued reads and waits until `completions` reads have completed, or all in
    /// flight if these are fewer. [`ReadRing::take`] returns them. Waiting for several reads at
    /// once costs fewer system calls and context switches than waiting for each.
    ///
    /// # Errors
    /// The error of the system call; the ring is unusable afterwards.
    pub fn submit_and_wait(&mut self, completions: usize) -> Result<()> {
        let wanted = completions.min(self.in_flight());
        match self.ring.submit_and_wait(wanted) {
            Ok(submitted) => self.queued -= submitted.min(self.queued),
            // An interrupted call may have submitted some reads or none: the next call continues.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The completion queue is full, so reads have completed.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(fail(error)),
        }
        Ok(())
    }

    /// Submits the queued reads and returns a completed read, waiting if none has completed; `None`
    /// if the ring holds no read.
    ///
    /// # Errors
    /// The error of the system call; the ring is unusable afterwards. A failed read is not an error
    /// of this method.
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

    /// Returns a completed read if the completion queue contains one, without a system call.
    pub fn take(&mut self) -> Option<RingCompletion<F>> {
        let entry = self.ring.completion().next()?;
        let index = u32::try_from(entry.user_data()).ok()?;
        let read = self.slots.get_mut(index as usize)?.take()?;
        self.free.push(index);
        let outcome = match usize::try_from(entry.result()) {
            // Limits the count to the length of the buffer, in case the kernel reports more.
            Ok(bytes) => Ok(bytes.min(read.buffer.len())),
            Err(_negative) => Err(io::Error::from_raw_os_error(-entry.result())),
        };
        Some(RingCompletion { read, outcome })
    }
}

impl<F> ReadRing<F> {
    /// Waits until all submitted reads have completed, successfully or not.
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

impl<F> Drop for ReadRing<F> {
    fn drop(&mut self) {
        if self.drain().is_err() {
            // The kernel may still write to the buffers of the reads in flight, so they are leaked.
            mem::forget(mem::take(&mut self.slots));
        }
    }
}

impl<F> fmt::Debug for ReadRing<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_flight = self.slots.len() - self.free.len();
        write!(f, "ReadRing({in_flight} of {} reads)", self.slots.len())
    }
}

fn fail(source: io::Error) -> Error {
    Error::new(Op::Ring, "io_uring", source)
}
