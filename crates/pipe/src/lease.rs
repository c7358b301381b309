//! Moves bytes into and out of a pipe that is leased to one transfer.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::{Errno, read, retry_on_intr};
use rustix::pipe::{SpliceFlags, splice};

use crate::error::{Error, Op, Result};
use crate::pool::{NoPipe, Pipe, PipePool, Shared};

/// The maximum number of bytes that one `splice` call requests, because since Linux 6.8 the kernel
/// refuses lengths near `usize::MAX` with `EINVAL`.
const CALL_BYTES_MAX: usize = 1 << 30;

/// The outcome of [`Lease::fill`] and [`Lease::fill_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// This many bytes were moved into the pipe: at least one, unless zero were requested.
    Bytes(usize),
    /// End of file: the source will deliver no more bytes.
    End,
    /// The source would block and the pipe is empty: wait until the source is readable.
    SourceEmpty,
    /// The call would block and the pipe is not empty, so the pipe may be full: drain it before
    /// waiting for the source.
    PipeFull,
}

/// The outcome of [`Lease::drain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainOutcome {
    /// This many bytes were moved out of the pipe: zero only if the pipe is empty or zero were
    /// requested.
    Bytes(usize),
    /// The target would block: wait until it is writable.
    TargetFull,
}

/// A pipe leased from a [`PipePool`](crate::PipePool).
///
/// Dropping the lease returns an empty pipe to the pool and closes a non-empty one.
#[derive(Debug)]
pub struct Lease {
    /// The leased pipe; `None` only inside `drop`.
    pipe: Option<Pipe>,
    pending_bytes: usize,
    pool: Arc<Shared>,
}

impl PipePool {
    /// Leases an empty pipe. A pipe that is smaller than
    /// [`PoolOptions::pipe_bytes`](crate::PoolOptions::pipe_bytes) is enlarged first if the kernel
    /// now allows it. Dropping the lease returns an empty pipe to the pool and closes a non-empty
    /// one.
    ///
    /// # Errors
    /// [`NoPipe::Exhausted`] if all pipes are leased, [`NoPipe::Refused`] if the kernel cannot
    /// create another pipe for lack of descriptors or memory.
    pub fn lease(&self) -> std::result::Result<Lease, NoPipe> {
        let (pipe, pool) = self.take()?;
        Ok(Lease { pipe: Some(pipe), pending_bytes: 0, pool })
    }
}

impl Lease {
    /// Returns the number of bytes in the pipe, which may exceed [`Self::capacity_bytes`]: the
    /// capacity counts one page for each slot of the pipe, but a slot filled from a socket may hold
    /// more or less than a page.
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Returns the number of bytes of a file that fit into the empty pipe.
    pub fn capacity_bytes(&self) -> usize {
        self.pipe().capacity_bytes
    }

    /// Moves up to `bytes_max` bytes from a non-blocking socket into the pipe.
    ///
    /// # Errors
    /// The source's error, such as a reset; [`Error::is_refusal`] is `true` if the source cannot be
    /// spliced at all.
    pub fn fill(&mut self, from: impl AsFd, bytes_max: usize) -> Result<Filled> {
        self.splice_in(from.as_fd(), None, bytes_max)
    }

    /// Moves as many bytes of a file as fit into the pipe, at most `bytes_max`, beginning at the
    /// byte `offset`. The call may wait for the disk. A file opened with `O_DIRECT` requires
    /// aligned offsets and lengths; the bytes of such a file move from the disk to the socket
    /// without a copy and without entering the page cache.
    ///
    /// # Errors
    /// The file's error; [`Error::is_refusal`] is `true` if direct I/O does not accept the offset
    /// or length.
    ///
    /// # Source
    /// `copy_splice_read` in the kernel's `fs/splice.c`, since Linux 6.5.
    pub fn fill_at(&mut self, file: impl AsFd, offset: u64, bytes_max: usize) -> Result<Filled> {
        self.splice_in(file.as_fd(), Some(offset), bytes_max)
    }

    fn splice_in(
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

    /// Moves up to `bytes_max` bytes from the pipe to a non-blocking socket. If `more` is `true`,
    /// the kernel may delay the last partial segment (`MSG_MORE`): pass `true` only if more bytes
    /// follow immediately.
    ///
    /// # Errors
    /// The target's error, such as a closed connection; the bytes stay in the pipe.
    pub fn drain(&mut self, to: impl AsFd, bytes_max: usize, more: bool) -> Result<DrainOutcome> {
        let bytes_max = bytes_max.min(self.pending_bytes).min(CALL_BYTES_MAX);
        if bytes_max == 0 {
            return Ok(DrainOutcome::Bytes(0));
        }
        let mut flags = SpliceFlags::NONBLOCK;
        flags.set(SpliceFlags::MORE, more);
        let (from, to) = (&self.pipe().reader, to.as_fd());
        match retry_on_intr(|| splice(from, None, to, None, bytes_max, flags)) {
            // The pipe holds fewer bytes than the lease counted, so it must not be reused.
            Ok(0) => Err(Error::new(Op::Drain, Errno::PIPE)),
            Ok(bytes) => {
                self.pending_bytes -= bytes;
                Ok(DrainOutcome::Bytes(bytes))
            }
            Err(Errno::AGAIN) => Ok(DrainOutcome::TargetFull),
            Err(error) => Err(Error::new(Op::Drain, error)),
        }
    }

    /// Copies bytes from the pipe into memory, for a target that does not support splice. Returns
    /// the number of bytes; zero only if the pipe or `buffer` is empty.
    ///
    /// # Errors
    /// The error of `read(2)`; reading a pipe is not known to fail.
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

    /// Discards the next `bytes` bytes, or all bytes in the pipe if there are fewer. Meant for the
    /// bytes that aligned direct I/O reads before the first requested byte.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
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
            None => unreachable!("a lease owns its pipe until it is dropped"),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            self.pool.release(pipe, self.pending_bytes);
        }
    }
}
