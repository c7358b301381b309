//! Runs a client or target that follows a script and verifies every byte it receives.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;

use haul_testing::{ClientStream, Random};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A byte stream unique to its connection and direction: each byte is a function of the
/// connection's number, the direction and the offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    seed: u64,
}

impl Stream {
    pub(crate) fn new(number: u64, is_up: bool) -> Self {
        Self { seed: Random(number << 1 | u64::from(is_up)).number() }
    }

    /// Fills `buffer` with the bytes from `offset` on.
    pub(crate) fn fill(self, offset: u64, buffer: &mut [u8]) {
        let mut at = offset;
        let mut left = buffer;
        while !left.is_empty() {
            let word = Random(self.seed ^ (at / 8)).number().to_le_bytes();
            let from = usize::try_from(at % 8).unwrap();
            let bytes = left.len().min(8 - from);
            left[..bytes].copy_from_slice(&word[from..from + bytes]);
            left = &mut left[bytes..];
            at += bytes as u64;
        }
    }
}

/// The actions of one end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    /// The stream of which this end sends the first `send_bytes` bytes.
    pub(crate) sends: Stream,
    pub(crate) send_bytes: u64,
    /// The stream that this end expects to receive.
    pub(crate) gets: Stream,
    /// The maximum number of bytes written or read at once.
    pub(crate) piece: usize,
    /// `true` if this end reads nothing before it has sent everything.
    pub(crate) reads_late: bool,
    /// The sum of sent and received bytes at which this end resets the connection; `None`: never.
    pub(crate) resets_at: Option<u64>,
}

/// The way a connection ended, as one of its ends observed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// EOF after this many correct bytes.
    Clean(u64),
    /// An error of the socket, after this many bytes were received as expected.
    Broken(u64),
    /// This end reset the connection, as its script says.
    ResetByMe,
}

/// The operations of a socket that a script needs.
pub(crate) trait Socket: Read + Write + AsFd {
    /// Sends the end of the stream; to be repeated after `WouldBlock`.
    fn shut(&mut self) -> io::Result<()>;
    fn set_nonblocking(&self);
    /// Returns `true` if a read returns bytes although the socket is not readable.
    fn has_decrypted(&mut self) -> bool {
        false
    }
}

macro_rules! socket_impl {
    ($kind:ty) => {
        impl Socket for $kind {
            fn shut(&mut self) -> io::Result<()> {
                self.shutdown(Shutdown::Write)
            }
            fn set_nonblocking(&self) {
                self.set_nonblocking(true).unwrap();
            }
        }
    };
}
socket_impl!(std::net::TcpStream);
socket_impl!(std::os::unix::net::UnixStream);

impl Socket for ClientStream {
    fn shut(&mut self) -> io::Result<()> {
        self.shutdown_write()
    }
    fn set_nonblocking(&self) {
        self.tcp().set_nonblocking(true).unwrap();
    }
    fn has_decrypted(&mut self) -> bool {
        Self::has_decrypted(self)
    }
}

/// Makes closing the socket send a reset (`SO_LINGER` of 0).
pub(crate) fn reset_on_close(socket: impl AsFd) {
    let time = Some(std::time::Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(socket.as_fd(), time).unwrap();
}

/// Runs the script to its end.
///
/// # Panics
/// A received byte is not the next one of the expected stream.
pub(crate) fn follow(mut socket: impl Socket, script: &Script) -> Outcome {
    socket.set_nonblocking();
    let mut buffer = vec![0; script.piece];
    let mut expected = vec![0; script.piece];
    let (mut sent, mut got, mut has_shut, mut has_end) = (0, 0, false, false);
    loop {
        if script.resets_at.is_some_and(|at| sent + got >= at) {
            reset_on_close(&socket);
            return Outcome::ResetByMe;
        }
        if sent == script.send_bytes && !has_shut {
            match socket.shut() {
                Ok(()) => has_shut = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Outcome::Broken(got),
            }
        }
        if has_shut && has_end {
            return Outcome::Clean(got);
        }
        let wants_read = !has_end && (has_shut || !script.reads_late);
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wants_read);
        flags.set(PollFlags::OUT, !has_shut);
        let has_decrypted = wants_read && socket.has_decrypted();
        let mut polls = [PollFd::new(&socket, flags)];
        poll(&mut polls, has_decrypted.then_some(&Timespec::default())).unwrap();
        let mut ready = polls[0].revents();
        ready.set(PollFlags::IN, ready.contains(PollFlags::IN) || has_decrypted);
        let failed = PollFlags::ERR | PollFlags::HUP;
        if wants_read && ready.intersects(PollFlags::IN | failed) {
            match socket.read(&mut buffer) {
                Ok(0) => has_end = true,
                Ok(bytes) => {
                    script.gets.fill(got, &mut expected[..bytes]);
                    assert!(
                        buffer[..bytes] == expected[..bytes],
                        "a foreign, lost or repeated byte between {got} and {}",
                        got + bytes as u64
                    );
                    got += bytes as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Outcome::Broken(got),
            }
        }
        if sent < script.send_bytes && ready.intersects(PollFlags::OUT | failed) {
            let bytes = usize::try_from(script.send_bytes - sent).unwrap().min(script.piece);
            script.sends.fill(sent, &mut buffer[..bytes]);
            match socket.write(&buffer[..bytes]) {
                Ok(bytes) => sent += bytes as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Outcome::Broken(got),
            }
        }
    }
}
