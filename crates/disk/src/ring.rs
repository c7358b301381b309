//! Many reads under way at once, from one thread: io_uring for reads alone.
//!
//! # Why it is sound
//! The kernel writes into a buffer at any time between the read being handed over and its
//! completion. In that time the ring owns the buffer, and nobody has a reference to it: it comes
//! back only with the completion. A ring that is dropped waits for what is under way; one that is
//! forgotten forgets its buffers, too. Descriptors are owned in the same way.
#![expect(unsafe_code, reason = "the kernel takes addresses of buffers")]

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::{IoUring, opcode, types};

use crate::buffer::AlignedBuf;
use crate::error::{Error, Op, Result};

/// `RWF_DONTCACHE` (Linux 6.14).
const DONTCACHE: i32 = 0x80;

/// Kernels and sandboxes without io_uring say one of these; so does one where root switched it off.
const REFUSALS: [i32; 4] = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::EOPNOTSUPP];

/// A read for the ring, which owns all of it until it is [`RingDone`].
#[derive(Debug)]
pub struct RingRead<F> {
    /// The file.
    pub file: F,
    /// Where in the file.
    pub offset: u64,
    /// Where the bytes go, from its beginning.
    pub buffer: AlignedBuf,
    /// How many are asked for; never more than the buffer takes.
    pub bytes: usize,
    /// Leaves in the page cache only what was there before, as [`crate::read_uncached`] does; an
    /// error where the file system does not offer that.
    pub uncached: bool,
    /// What the caller knows it by.
    pub tag: u64,
}

/// A read that is over, successful or not.
#[derive(Debug)]
pub struct RingDone<F> {
    /// The read, with its file and buffer.
    pub read: RingRead<F>,
    /// How many bytes came; fewer than asked for is no error, 0 is the end of the file.
    pub outcome: io::Result<usize>,
}

/// Reads under way, as many as it was made for. It stays in the thread that made it.
///
/// # Source
/// `io_uring(7)`; `IORING_SETUP_DEFER_TASKRUN` where the kernel has it (Linux 6.1).
pub struct ReadRing<F> {
    ring: IoUring,
    /// A slot for each read; its index is what the kernel gives back.
    slots: Vec<Option<RingRead<F>>>,
    free: Vec<u32>,
    /// In the queue, and not yet handed to the kernel.
    queued: usize,
    /// The kernel wants one thread alone to use the ring.
    _of_one_thread: PhantomData<*const ()>,
}

impl<F: AsFd> ReadRing<F> {
    /// A ring for `depth` reads at a time, 1 to 4096.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] where there is no io_uring, or it is not for us: use plain reads.
    pub fn new(depth: u32) -> Result<Self> {
        let depth = depth.clamp(1, 4096);
        let mut modern = IoUring::builder();
        modern.dontfork().setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
        let ring = match modern.build(depth) {
            // An older kernel, which does not know these options.
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
            _of_one_thread: PhantomData,
        })
    }

    /// How many reads it has, handed to the kernel or still queued.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether it takes no more before one is over.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Queues a read; the kernel gets it with the next [`ReadRing::submit`] or [`ReadRing::wait`].
    ///
    /// # Errors
    /// The read itself, when the ring is full.
    pub fn push(&mut self, mut read: RingRead<F>) -> std::result::Result<(), RingRead<F>> {
        let Some(index) = self.free.pop() else { return Err(read) };
        let bytes = read.bytes.min(read.buffer.len());
        let length = u32::try_from(bytes).unwrap_or(u32::MAX);
        // The offset of all ones would mean "wherever the descriptor stands".
        let offset = read.offset.min(u64::MAX - 1);
        let fd = types::Fd(read.file.as_fd().as_raw_fd());
        let entry = opcode::Read::new(fd, read.buffer.as_mut_ptr(), length)
            .offset(offset)
            .rw_flags(if read.uncached { DONTCACHE } else { 0 })
            .build()
            .user_data(index.into());
        // SAFETY: the buffer has at least `length` bytes. It and the file go into the slot before
        // anything else can happen, and leave it only when the kernel says the read is over, or
        // never; moving the buffer does not move its memory.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            // There are as many slots as entries, so this cannot be; it costs a line to be sure.
            self.free.push(index);
            return Err(read);
        }
        self.slots[index as usize] = Some(read);
        self.queued += 1;
        Ok(())
    }

    /// Hands what is queued to the kernel, and does not wait.
    ///
    /// # Errors
    /// As the kernel says. What was queued stays so.
    pub fn submit(&mut self) -> Result<()> {
        while self.queued > 0 {
            match self.ring.submit() {
                Ok(taken) => self.queued -= taken.min(self.queued),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The kernel has no room for the moment: the next wait makes some.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => break,
                Err(error) => return Err(fail(error)),
            }
        }
        Ok(())
    }

    /// Hands over what is queued, and gives a read that is over, waiting for it where none is;
    /// `None` when there are none.
    ///
    /// # Errors
    /// As the kernel says; the ring is of no use then. A read that fails is no error here.
    pub fn wait(&mut self) -> Result<Option<RingDone<F>>> {
        loop {
            if let Some(done) = self.take() {
                return Ok(Some(done));
            }
            if self.in_flight() == 0 {
                return Ok(None);
            }
            match self.ring.submit_and_wait(1) {
                Ok(taken) => self.queued -= taken.min(self.queued),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(fail(error)),
            }
        }
    }

    /// A read that is over, if one is known to be: no call, no waiting.
    pub fn take(&mut self) -> Option<RingDone<F>> {
        let entry = self.ring.completion().next()?;
        let index = u32::try_from(entry.user_data()).ok()?;
        let read = self.slots.get_mut(index as usize)?.take()?;
        self.free.push(index);
        let outcome = match usize::try_from(entry.result()) {
            // More than the buffer has cannot have come.
            Ok(bytes) => Ok(bytes.min(read.buffer.len())),
            Err(_negative) => Err(io::Error::from_raw_os_error(-entry.result())),
        };
        Some(RingDone { read, outcome })
    }
}

impl<F> ReadRing<F> {
    /// Waits for all that the kernel has, whatever comes of it.
    fn drain(&mut self) -> io::Result<()> {
        let mut left = self.slots.len() - self.free.len() - self.queued;
        while left > 0 {
            let over = self.ring.completion().count();
            left = left.saturating_sub(over);
            if left > 0 {
                match self.ring.submitter().submit_and_wait(1) {
                    Ok(taken) => left += taken,
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
            // Nobody knows what the kernel still writes to, so nobody may use that memory again.
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
