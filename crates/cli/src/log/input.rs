//! Reads stdin in large pieces until the input ends or a signal requests a stop.

use std::io::{self, Stdin, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, ioctl_fionread, read, write};
use rustix::pipe::fcntl_setpipe_size;

/// The size of a read and of the pipe, in bytes. An unprivileged process cannot set a larger pipe
/// size by default.
const READ_BYTES: usize = 1 << 20;

/// A request to stop reading stdin, shared with the signal handler.
#[derive(Debug, Clone)]
pub(super) struct Stop {
    wake: Arc<OwnedFd>,
    is_requested: Arc<AtomicBool>,
    /// `true` once all input is written, and the program only waits for compression.
    is_compressing: Arc<AtomicBool>,
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            wake: Arc::new(wake),
            is_requested: Arc::default(),
            is_compressing: Arc::default(),
        })
    }

    pub(super) fn request(&self) {
        self.is_requested.store(true, Ordering::SeqCst);
        // An error is ignored: the write fails only if the counter of the eventfd would overflow,
        // after about 2^64 requests.
        write(&*self.wake, &1_u64.to_ne_bytes()).ok();
    }

    pub(super) fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::SeqCst)
    }

    pub(super) fn begin_compression(&self) {
        self.is_compressing.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_compressing(&self) -> bool {
        self.is_compressing.load(Ordering::SeqCst)
    }

    /// Waits until a stop is requested or `seconds` have passed.
    pub(super) fn wait(&self, seconds: i64) {
        let mut fds = [PollFd::new(&*self.wake, PollFlags::IN)];
        // The result is ignored, because the caller checks its condition again.
        poll(&mut fds, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })).ok();
    }
}

/// Stdin as the input of the log.
pub(super) struct Input {
    stdin: Stdin,
    stop: Stop,
    buffer: Vec<u8>,
    /// The number of bytes to read before the input ends; `None` while no stop was requested.
    left: Option<usize>,
}

impl Input {
    pub(super) fn new(stop: Stop) -> Self {
        let stdin = stdin();
        // The call fails if stdin is not a pipe, or if the limit of the user is smaller. The size
        // of the pipe then remains unchanged.
        fcntl_setpipe_size(&stdin, READ_BYTES).ok();
        Self { stdin, stop, buffer: vec![0; READ_BYTES], left: None }
    }

    /// Returns the next bytes of stdin, or an empty slice at the end of the input. After a stop was
    /// requested, the input ends after the bytes that are in the pipe at that moment.
    pub(super) fn next(&mut self) -> io::Result<&[u8]> {
        loop {
            if self.left.is_none() {
                self.wait()?;
            }
            if self.stop.is_requested() && self.left.is_none() {
                let waiting = ioctl_fionread(&self.stdin).unwrap_or(0);
                self.left = Some(usize::try_from(waiting).unwrap_or(0));
            }
            let bytes = self.left.map_or(READ_BYTES, |left| left.min(READ_BYTES));
            if bytes == 0 {
                return Ok(&[]);
            }
            match read(&self.stdin, &mut self.buffer[..bytes]) {
                Ok(read) => {
                    self.left = self.left.map(|left| left - read);
                    return Ok(&self.buffer[..read]);
                }
                Err(Errno::INTR) => {}
                // Another process that shares stdin made it non-blocking and took the input first:
                // wait for more input.
                Err(Errno::AGAIN) if self.left.is_none() => {}
                Err(Errno::AGAIN) => return Ok(&[]),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits for input, for the end of the input, or for a stop.
    fn wait(&self) -> io::Result<()> {
        let mut fds = [
            PollFd::from_borrowed_fd(self.stdin.as_fd(), PollFlags::IN),
            PollFd::new(&*self.stop.wake, PollFlags::IN),
        ];
        loop {
            match poll(&mut fds, None) {
                // Wait again: a read without input would block, and miss a later stop request.
                Err(Errno::INTR) => {}
                other => return Ok(other.map(drop)?),
            }
        }
    }
}
