//! A stream socket that does not block and knows whether it is ready.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{set_tcp_cork, set_tcp_nodelay};
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, getpeername, getsockname, recv, sendmsg,
    shutdown,
};
use socket2::SockRef;

/// What a call on a socket came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// So many bytes; none read is the end of the stream.
    Bytes(usize),
    /// Nothing can be moved now; the connection is driven again when it can.
    WouldBlock,
}

/// A connected, or connecting, socket.
///
/// The kernel tells each change once, so a socket remembers: it counts as ready until a call finds
/// that it is not. Whoever moves bytes by other calls than those here says so with
/// [`Self::source_was_empty`] and [`Self::target_was_full`].
///
/// Urgent bytes arrive in their place, like all others. Descriptors that come with the bytes of a
/// unix socket are closed by the kernel.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    is_readable: bool,
    is_writable: bool,
    /// A read that does not fill its buffer has taken all there was. With a unix socket it may have
    /// stopped behind a message that came with a descriptor.
    reads_all: bool,
    /// There are urgent bytes, at which a read stops, too.
    has_mark: bool,
    /// The kernel told that the peer will send no more: there is no other edge to wait for.
    has_end: bool,
    /// The kernel told that nobody will read what is written.
    is_gone: bool,
    /// The kernel told an error of the connection.
    is_broken: bool,
    /// Known to the poll of the thread.
    pub(crate) is_registered: bool,
}

impl Socket {
    /// Of a descriptor that does not block. It counts as ready until a call says otherwise.
    pub fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            is_readable: true,
            is_writable: true,
            reads_all: false,
            has_mark: false,
            has_end: false,
            is_gone: false,
            is_broken: false,
            is_registered: false,
        }
    }

    /// The same, of TCP.
    pub(crate) fn tcp(fd: OwnedFd) -> Self {
        Self { reads_all: true, ..Self::new(fd) }
    }

    /// Of one that connects: not ready until the kernel says so.
    pub(crate) fn connecting(self) -> Self {
        Self { is_readable: false, is_writable: false, ..self }
    }

    /// A read may find something, or the end, or an error.
    pub fn is_readable(&self) -> bool {
        self.is_readable
    }

    /// A write may find room, or an error.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// The peer sends no more; what it sent before may be unread. Of TCP nobody knows yet whether it
    /// still reads.
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// The peer reads no more: it reset the connection, or closed a unix socket, or had ended and
    /// was told an end. What it sent before may be unread.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The connection was reset, or its peer cannot be reached any more. What came before may be
    /// unread.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// There are urgent bytes. Other calls than those here may stop before them and find nothing, or
    /// an end: [`Self::read`] goes past them.
    pub fn has_mark(&self) -> bool {
        self.has_mark
    }

    /// Somebody else's call found nothing to read.
    pub fn source_was_empty(&mut self) {
        self.is_readable = false;
    }

    /// Somebody else's call found no room.
    pub fn target_was_full(&mut self) {
        self.is_writable = false;
    }

    /// A call that writes to it failed. What the peer said before it went can still be read, up to
    /// the end or the error that comes then, whichever events are still to come.
    pub fn has_failed(&mut self) {
        self.is_readable = true;
        self.has_end = true;
    }

    pub(crate) fn note(&mut self, event: &mio::event::Event) {
        let has_failed = event.is_error();
        self.has_end |= event.is_read_closed() || has_failed;
        self.has_mark |= event.is_priority();
        self.is_gone |= event.is_write_closed() || has_failed;
        self.is_broken |= has_failed;
        self.is_readable |= event.is_readable() || self.has_end;
        self.is_writable |= event.is_writable() || event.is_write_closed() || has_failed;
    }

    /// Reads what has come, up to the length of `buffer`.
    ///
    /// # Errors
    /// The kernel's, such as a reset.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Moved> {
        let fd = &self.fd;
        let answer = retry_on_intr(|| recv(fd, &mut *buffer, RecvFlags::empty()));
        let is_short = matches!(answer, Ok((bytes, _)) if bytes < buffer.len());
        if is_short && self.reads_all && !self.has_mark && !self.has_end {
            // That was all: whatever comes next, the end too, is another edge.
            self.is_readable = false;
        }
        self.has_mark &= answer.is_ok();
        Self::moved(answer.map(|(bytes, _all)| bytes), &mut self.is_readable)
    }

    /// Looks whether something has come, without taking it. The end of the stream counts.
    ///
    /// # Errors
    /// The kernel's, such as a reset.
    pub fn peek(&mut self) -> io::Result<Moved> {
        let (fd, mut byte) = (&self.fd, [0]);
        let answer = retry_on_intr(|| recv(fd, &mut byte, RecvFlags::PEEK));
        Self::moved(answer.map(|(bytes, _all)| bytes), &mut self.is_readable)
    }

    /// Writes these pieces one after the other, as far as there is room. With `more` the kernel may
    /// hold the last bytes back for what follows at once: say so only when it is certain.
    ///
    /// # Errors
    /// The kernel's, such as a closed connection; no signal is raised.
    pub fn write(&mut self, pieces: &[IoSlice<'_>], more: bool) -> io::Result<Moved> {
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, more);
        let fd = &self.fd;
        let answer =
            retry_on_intr(|| sendmsg(fd, pieces, &mut SendAncillaryBuffer::default(), flags));
        if matches!(answer, Err(errno) if errno != Errno::AGAIN) {
            self.has_failed();
        }
        Self::moved(answer, &mut self.is_writable)
    }

    fn moved(answer: rustix::io::Result<usize>, is_ready: &mut bool) -> io::Result<Moved> {
        match answer {
            Ok(bytes) => Ok(Moved::Bytes(bytes)),
            Err(Errno::AGAIN) => {
                *is_ready = false;
                Ok(Moved::WouldBlock)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Has the kernel hold back what fills no segment, or send it and hold back no more: for what is
    /// moved by other calls than those here. What is held back goes after a fifth of a second at the
    /// latest.
    pub fn cork(&mut self, is_corked: bool) {
        // It saves packets. A socket of another kind has none.
        set_tcp_cork(&self.fd, is_corked).unwrap_or_default();
    }

    /// Sends the last bytes of what was written with `more`, since nothing follows at once after all.
    /// Otherwise they may wait some tenths of a second.
    pub fn push(&mut self) {
        // To ask a socket once more not to wait has it send; one of another kind never waits.
        set_tcp_nodelay(&self.fd, true).unwrap_or_default();
    }

    /// Says to the peer that nothing more will come.
    ///
    /// # Errors
    /// When the connection is gone already.
    pub fn shut_write(&mut self) -> io::Result<()> {
        Ok(shutdown(&self.fd, Shutdown::Write)?)
    }

    /// What became of a connection that was begun: once it is writable, whether it stands.
    ///
    /// # Errors
    /// Why it does not.
    pub fn connected(&self) -> io::Result<()> {
        SockRef::from(&self.fd).take_error()?.map_or(Ok(()), Err)?;
        match is_to_itself(&self.fd) {
            true => Err(io::ErrorKind::ConnectionRefused.into()),
            false => Ok(()),
        }
    }

    /// Closes it so that the peer gets a reset in place of a clean end. For a unix socket there is
    /// no such thing, and it is simply closed.
    pub fn reset(self) {
        // Without it the peer takes what was cut short for whole; there is nothing else to do.
        SockRef::from(&self.fd).set_linger(Some(Duration::ZERO)).ok();
    }
}

/// Whether a socket is connected to itself: TCP does so when nobody listens at an address of this
/// machine, and the port it gives to whoever connects there happens to be that one.
pub fn is_to_itself(socket: impl AsFd) -> bool {
    let near = getsockname(&socket).ok().and_then(|address| SocketAddr::try_from(address).ok());
    let far = getpeername(&socket).ok().flatten();
    near.is_some() && near == far.and_then(|address| SocketAddr::try_from(address).ok())
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
