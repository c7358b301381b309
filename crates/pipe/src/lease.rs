//! A pipe lent to one transfer.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::{Errno, read, retry_on_intr};
use rustix::pipe::{SpliceFlags, splice};

use crate::error::{Error, Op, Result};
use crate::pool::{Pipe, Shared};

/// Lengths near `usize::MAX` are refused with `EINVAL` since Linux 6.8.
const CALL_BYTES_MAX: usize = 1 << 30;

/// What taking bytes in came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// So many came in, at least one.
    Bytes(usize),
    /// The source has ended: no more will ever come.
    End,
    /// Nothing is inside and nothing came: wait until the source can be read.
    SourceEmpty,
    /// Nothing came while something is inside, so the pipe may be full: drain it first, and do not
    /// wait for the source before that.
    PipeFull,
}

/// What letting bytes out came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// So many went out; none only when none were inside or wanted.
    Bytes(usize),
    /// Something is inside, and the target takes nothing: wait until it can be written.
    TargetFull,
}

/// A pipe lent by a [`PipePool`](crate::PipePool).
///
/// Dropped, it goes back to the pool when it is empty, and is closed otherwise.
#[derive(Debug)]
pub struct Lease {
    /// `None` only while it is dropped.
    pipe: Option<Pipe>,
    pending_bytes: usize,
    home: Arc<Shared>,
}

impl Lease {
    pub(crate) fn new(pipe: Pipe, home: Arc<Shared>) -> Self {
        Self { pipe: Some(pipe), pending_bytes: 0, home }
    }

    /// How many bytes are inside. This may be more than [`Self::capacity_bytes`]: a pipe has slots,
    /// and a slot may hold more than a page of a socket's memory, or less.
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// How many bytes of a file fit in.
    pub fn capacity_bytes(&self) -> usize {
        self.pipe().capacity_bytes
    }

    /// Takes in up to `bytes_max` bytes of a socket that does not block.
    ///
    /// # Errors
    /// What the source fails with, such as a reset; [`Error::is_refusal`] tells that it cannot be
    /// spliced at all.
    pub fn fill(&mut self, from: impl AsFd, bytes_max: usize) -> Result<Filled> {
        self.take_in(from.as_fd(), None, bytes_max)
    }

    /// Takes in up to `bytes_max` bytes at `offset` of a file, as many as fit; this waits for the
    /// disk. A file opened past the page cache (`O_DIRECT`) wants aligned offsets and lengths, and
    /// its bytes go from the disk to the socket without a copy and without a page of the cache.
    ///
    /// # Errors
    /// What the file fails with; an offset or a length that direct I/O does not take is a refusal.
    ///
    /// # Source
    /// `copy_splice_read` in the kernel's `fs/splice.c`, since Linux 6.5.
    pub fn fill_at(&mut self, file: impl AsFd, offset: u64, bytes_max: usize) -> Result<Filled> {
        self.take_in(file.as_fd(), Some(offset), bytes_max)
    }

    fn take_in(
        &mut self,
        from: BorrowedFd<'_>,
        mut offset: Option<u64>,
        bytes_max: usize,
    ) -> Result<Filled> {
        if bytes_max == 0 {
            return Ok(Filled::Bytes(0));
        }
        let bytes_max = bytes_max.min(CALL_BYTES_MAX);
        let into = &self.pipe().writer;
        let moved = retry_on_intr(|| {
            splice(from, offset.as_mut(), into, None, bytes_max, SpliceFlags::NONBLOCK)
        });
        match moved {
            Ok(0) => Ok(Filled::End),
            Ok(bytes) => {
                self.pending_bytes += bytes;
                Ok(Filled::Bytes(bytes))
            }
            Err(Errno::AGAIN) if self.pending_bytes == 0 => Ok(Filled::SourceEmpty),
            Err(Errno::AGAIN) => Ok(Filled::PipeFull),
            Err(error) => Err(Error::new(Op::Fill, error)),
        }
    }

    /// Lets up to `bytes_max` bytes out to a socket that does not block. With `more` the kernel
    /// may hold back the last bytes for what follows at once (`MSG_MORE`): say so only when it is
    /// certain.
    ///
    /// # Errors
    /// What the target fails with, such as a closed connection; what is inside stays inside.
    pub fn drain(&mut self, to: impl AsFd, bytes_max: usize, more: bool) -> Result<Drained> {
        let bytes_max = bytes_max.min(self.pending_bytes).min(CALL_BYTES_MAX);
        if bytes_max == 0 {
            return Ok(Drained::Bytes(0));
        }
        let mut flags = SpliceFlags::NONBLOCK;
        flags.set(SpliceFlags::MORE, more);
        let (from, to) = (&self.pipe().reader, to.as_fd());
        match retry_on_intr(|| splice(from, None, to, None, bytes_max, flags)) {
            // The pipe has fewer bytes than went in: nobody may have it after this.
            Ok(0) => Err(Error::new(Op::Drain, Errno::PIPE)),
            Ok(bytes) => {
                self.pending_bytes -= bytes;
                Ok(Drained::Bytes(bytes))
            }
            Err(Errno::AGAIN) => Ok(Drained::TargetFull),
            Err(error) => Err(Error::new(Op::Drain, error)),
        }
    }

    /// Copies bytes out of the pipe into memory: for a target that cannot be spliced to. Says how
    /// many, which is none only when nothing is inside or `buffer` is empty.
    ///
    /// # Errors
    /// The kernel's; none are known.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.pending_bytes == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let from = &self.pipe().reader;
        let bytes = retry_on_intr(|| read(from, &mut *buffer))
            .map_err(|error| Error::new(Op::Read, error))?;
        if bytes == 0 {
            return Err(Error::new(Op::Read, Errno::PIPE));
        }
        self.pending_bytes -= bytes;
        Ok(bytes)
    }

    /// Throws away the next `bytes` bytes, or all that are inside: what direct I/O had to read
    /// before the first byte that was wanted.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn discard(&mut self, bytes: usize) -> Result<()> {
        let mut left = bytes.min(self.pending_bytes);
        let mut buffer = [0; 4096];
        while left > 0 {
            let piece = left.min(buffer.len());
            left -= self.read(&mut buffer[..piece])?;
        }
        Ok(())
    }

    fn pipe(&self) -> &Pipe {
        match &self.pipe {
            Some(pipe) => pipe,
            None => unreachable!("a lease has its pipe until it is dropped"),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            self.home.take_back(pipe, self.pending_bytes);
        }
    }
}
