//! Reads stdin in large pieces until the input ends, or until a signal requests a stop and no more
//! input arrives. Stdin is then closed at once: what a service writes later fails, instead of being
//! accepted by a pipe that nobody reads any more.

use std::fs::File;
use std::io::{self, Stdin, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, ioctl_fionread, read, write};
use rustix::pipe::fcntl_setpipe_size;
use rustix::stdio::dup2_stdin;

use crate::report::print_message;
use crate::units::Bytes;

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

/// The time for which input is read after a stop was requested, as long as more arrives. Then it
/// ends at the end of a line, or after as long again.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// The time for which more input is awaited at the end of a line, after a stop was requested: a
/// writer that waited for room in the pipe continues as soon as there is some.
const MORE_TIME: Duration = Duration::from_millis(50);

/// Stdin as the input of the log.
pub(super) struct Input {
    stdin: Stdin,
    stop: Stop,
    buffer: Vec<u8>,
    /// When the stop was noticed.
    stopped: Option<Instant>,
    ends_with_line: bool,
}

impl Input {
    pub(super) fn new(stop: Stop) -> Self {
        let stdin = stdin();
        // The call fails if stdin is not a pipe, or if the limit of the user is smaller. The size
        // of the pipe then remains unchanged.
        fcntl_setpipe_size(&stdin, READ_BYTES).ok();
        Self { stdin, stop, buffer: vec![0; READ_BYTES], stopped: None, ends_with_line: true }
    }

    /// Returns the next bytes of stdin, or an empty slice at the end of the input. After a stop was
    /// requested, the input ends when no more arrives and the last line has its end, so that
    /// nothing is lost that a service has begun to write; a service that goes on writing is cut off
    /// after [`DRAIN_TIME`], and what it wrote and is not read is reported.
    pub(super) fn next(&mut self) -> io::Result<&[u8]> {
        loop {
            if !self.wait()? {
                self.close()?;
                return Ok(&[]);
            }
            match read(&self.stdin, &mut self.buffer[..]) {
                Ok(read) => {
                    self.ends_with_line = self.buffer[..read].ends_with(b"\n");
                    return Ok(&self.buffer[..read]);
                }
                // Another process that shares stdin made it non-blocking and took the input first:
                // wait for more input.
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits for input, or for its end. After a stop was requested, returns `false` if there is
    /// none in time, or if the time to read on is over.
    fn wait(&mut self) -> io::Result<bool> {
        while !self.stop.is_requested() {
            let mut fds = [
                PollFd::from_borrowed_fd(self.stdin.as_fd(), PollFlags::IN),
                PollFd::new(&*self.stop.wake, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) if fds[0].revents().is_empty() => {}
                Ok(_) => return Ok(true),
            }
        }
        self.wait_after_stop()
    }

    fn wait_after_stop(&mut self) -> io::Result<bool> {
        loop {
            let passed = self.stopped.get_or_insert_with(Instant::now).elapsed();
            let left = (DRAIN_TIME * 2).saturating_sub(passed);
            if left.is_zero() || passed >= DRAIN_TIME && self.ends_with_line {
                return Ok(false);
            }
            let patience = if self.ends_with_line { MORE_TIME } else { left };
            let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
            let mut fds = [PollFd::from_borrowed_fd(self.stdin.as_fd(), PollFlags::IN)];
            match poll(&mut fds, Some(&patience)) {
                Err(Errno::INTR) => {}
                other => return Ok(other? > 0),
            }
        }
    }

    /// Replaces stdin by `/dev/null`. If no other process has the pipe open for reading, writing to
    /// it fails from now on. Another process that reads it, such as the next `haul log` of a
    /// supervisor, gets what is left.
    fn close(&self) -> io::Result<()> {
        let null = File::open("/dev/null")?;
        // An error is ignored: the input is of a kind whose rest is not known.
        let left = ioctl_fionread(&self.stdin).unwrap_or(0);
        dup2_stdin(&null)?;
        if left > 0 {
            print_message(&format!(
                "stopped while the service goes on writing: left {} of its input in the pipe",
                Bytes(left)
            ));
        }
        Ok(())
    }
}
