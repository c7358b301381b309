//! A client or a target that follows a script, and checks every byte it gets.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

/// A stream of bytes that no other connection and no other direction has: the byte at each place
/// is made of the connection's number, the direction and the place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    seed: u64,
}

impl Stream {
    pub(crate) fn new(number: u64, is_up: bool) -> Self {
        Self { seed: mix(number << 1 | u64::from(is_up)) }
    }

    /// Fills `buffer` with the bytes from `place` on.
    pub(crate) fn fill(self, place: u64, buffer: &mut [u8]) {
        let mut at = place;
        let mut left = buffer;
        while !left.is_empty() {
            let word = mix(self.seed ^ (at / 8)).to_le_bytes();
            let from = usize::try_from(at % 8).unwrap();
            let bytes = left.len().min(8 - from);
            left[..bytes].copy_from_slice(&word[from..from + bytes]);
            left = &mut left[bytes..];
            at += bytes as u64;
        }
    }
}

pub(crate) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// What an end of a connection does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    /// What it sends, and how much of it.
    pub(crate) sends: Stream,
    pub(crate) send_bytes: u64,
    /// What it expects; nothing else may come.
    pub(crate) gets: Stream,
    /// How many bytes it writes or reads at once.
    pub(crate) piece: usize,
    /// Reads nothing before all is sent.
    pub(crate) reads_late: bool,
    /// Resets the connection when it has sent and received so many bytes together.
    pub(crate) resets_at: Option<u64>,
}

/// How a connection ended for one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The peer's end came after so many bytes, all of them right.
    Clean(u64),
    /// It failed, after so many bytes, all of them right.
    Broken(u64),
    /// The script said so.
    ResetByMe,
}

/// What an end needs of a socket.
pub(crate) trait Stream2: Read + Write + AsFd {
    fn shut(&self, how: Shutdown) -> io::Result<()>;
    fn no_blocking(&self);
}

macro_rules! stream2 {
    ($kind:ty) => {
        impl Stream2 for $kind {
            fn shut(&self, how: Shutdown) -> io::Result<()> {
                self.shutdown(how)
            }
            fn no_blocking(&self) {
                self.set_nonblocking(true).unwrap();
            }
        }
    };
}
stream2!(std::net::TcpStream);
stream2!(std::os::unix::net::UnixStream);

/// Makes the next close of a socket a reset.
pub(crate) fn reset_on_close(socket: impl AsFd) {
    let time = Some(std::time::Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(socket.as_fd(), time).unwrap();
}

/// Follows the script to its end.
///
/// # Panics
/// When a byte comes that is not the next one of what this end is to get.
pub(crate) fn follow(mut socket: impl Stream2, script: &Script) -> End {
    socket.no_blocking();
    let mut buffer = vec![0; script.piece];
    let mut expected = vec![0; script.piece];
    let (mut sent, mut got, mut has_shut, mut has_end) = (0, 0, false, false);
    loop {
        if script.resets_at.is_some_and(|at| sent + got >= at) {
            reset_on_close(&socket);
            return End::ResetByMe;
        }
        if sent == script.send_bytes && !has_shut {
            has_shut = true;
            if socket.shut(Shutdown::Write).is_err() {
                return End::Broken(got);
            }
        }
        if has_shut && has_end {
            return End::Clean(got);
        }
        let wants_read = !has_end && (has_shut || !script.reads_late);
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wants_read);
        flags.set(PollFlags::OUT, !has_shut);
        let mut polls = [PollFd::new(&socket, flags)];
        poll(&mut polls, None).unwrap();
        let ready = polls[0].revents();
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
                Err(_) => return End::Broken(got),
            }
        }
        if !has_shut && ready.intersects(PollFlags::OUT | failed) {
            let bytes = usize::try_from(script.send_bytes - sent).unwrap().min(script.piece);
            script.sends.fill(sent, &mut buffer[..bytes]);
            match socket.write(&buffer[..bytes]) {
                Ok(bytes) => sent += bytes as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return End::Broken(got),
            }
        }
    }
}
