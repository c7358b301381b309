//! Stdin in large reads, which a signal may end.

use std::io::{self, Stdin, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, ioctl_fionread, read, write};
use rustix::pipe::fcntl_setpipe_size;

/// What one read asks for, and what a pipe is made to hold: as much as anybody may ask for.
const READ_BYTES: usize = 1 << 20;

/// Asks whoever reads stdin to stop.
#[derive(Debug, Clone)]
pub(super) struct Stop {
    wake: Arc<OwnedFd>,
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { wake: Arc::new(wake), is_asked: Arc::default() })
    }

    pub(super) fn ask(&self) {
        self.is_asked.store(true, Ordering::Release);
        // It only counts, and is far from its end.
        write(&*self.wake, &1_u64.to_ne_bytes()).ok();
    }

    pub(super) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire)
    }

    /// Waits until it is asked, or so many seconds are over.
    pub(super) fn wait(&self, seconds: i64) {
        let mut fds = [PollFd::new(&*self.wake, PollFlags::IN)];
        // However it ends: who waits looks again.
        poll(&mut fds, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })).ok();
    }
}

/// Stdin.
pub(super) struct Input {
    stdin: Stdin,
    stop: Stop,
    buffer: Vec<u8>,
    /// What is still read, once it was asked to stop.
    left: Option<usize>,
}

impl Input {
    pub(super) fn new(stop: Stop) -> Self {
        let stdin = stdin();
        // Where it is no pipe, or a larger one is not allowed, it stays as it is.
        fcntl_setpipe_size(&stdin, READ_BYTES).ok();
        Self { stdin, stop, buffer: vec![0; READ_BYTES], left: None }
    }

    /// The next bytes; none at the end of the input. After a stop is asked for, what is in the pipe
    /// at that moment is the last.
    pub(super) fn next(&mut self) -> io::Result<&[u8]> {
        loop {
            if self.left.is_none() {
                self.wait()?;
            }
            if self.stop.is_asked() && self.left.is_none() {
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
                // Somebody else made it so; waiting comes first then.
                Err(Errno::AGAIN) if self.left.is_none() => {}
                Err(Errno::AGAIN) => return Ok(&[]),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits for bytes, for the end, or for a stop.
    fn wait(&self) -> io::Result<()> {
        let mut fds = [
            PollFd::from_borrowed_fd(self.stdin.as_fd(), PollFlags::IN),
            PollFd::new(&*self.stop.wake, PollFlags::IN),
        ];
        loop {
            match poll(&mut fds, None) {
                // Reading now could wait where no stop is seen.
                Err(Errno::INTR) => {}
                other => return Ok(other.map(drop)?),
            }
        }
    }
}
