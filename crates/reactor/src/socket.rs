//! Reads and writes a non-blocking stream socket, and tracks its readiness.

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

/// One of the two sockets of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKind {
    /// The socket accepted from a listener.
    Accepted,
    /// The socket connected to an upstream server, if any.
    Connected,
}

/// The outcome of a read or write on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoStatus {
    /// This many bytes were moved; zero from a read means the end of the stream.
    Bytes(usize),
    /// No bytes can be moved now; the connection is driven again when the socket is ready.
    WouldBlock,
}

/// A non-blocking stream socket, connected or connecting.
///
/// Events are edge-triggered, so the socket stores its readiness: it counts as ready until a call
/// returns `EAGAIN`. A caller that moves bytes by other system calls (`splice(2)`) must call
/// [`Self::clear_readable`] or [`Self::clear_writable`] when they return `EAGAIN`.
///
/// Urgent bytes arrive inline, because a listener or connect sets `SO_OOBINLINE` on the socket. The
/// kernel closes descriptors that the peer passes over a unix socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    is_readable: bool,
    is_writable: bool,
    /// `true` if a read that returns fewer bytes than requested shows that the receive buffer is
    /// empty; `false` for unix sockets, because their reads also end after a message with
    /// descriptors.
    short_read_is_empty: bool,
    /// `true` if urgent bytes are pending: a read stops before them even if more bytes follow.
    has_urgent_data: bool,
    /// `true` if the kernel reported that the peer sends no more bytes: no further read event
    /// follows.
    is_read_closed: bool,
    /// `true` if the kernel reported that the peer reads no more bytes.
    is_write_closed: bool,
    /// `true` if the kernel reported an error of the connection.
    has_error: bool,
    /// `true` if the socket is registered with the poller of the thread.
    pub(crate) is_registered: bool,
}

impl Socket {
    /// Wraps a non-blocking descriptor. The socket counts as ready until a call returns `EAGAIN`.
    pub fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            is_readable: true,
            is_writable: true,
            short_read_is_empty: false,
            has_urgent_data: false,
            is_read_closed: false,
            is_write_closed: false,
            has_error: false,
            is_registered: false,
        }
    }

    /// Wraps a non-blocking TCP socket.
    pub(crate) fn tcp(fd: OwnedFd) -> Self {
        Self { short_read_is_empty: true, ..Self::new(fd) }
    }

    /// Marks the socket as connecting: it is not ready before the first event.
    pub(crate) fn connecting(self) -> Self {
        Self { is_readable: false, is_writable: false, ..self }
    }

    /// Returns `true` if a read may return bytes, the end of the stream or an error.
    pub fn is_readable(&self) -> bool {
        self.is_readable
    }

    /// Returns `true` if a write may accept bytes or return an error.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Returns `true` if the peer sends no more bytes; bytes it sent before may be unread. On TCP
    /// the peer may still read (half-close).
    pub fn is_read_closed(&self) -> bool {
        self.is_read_closed
    }

    /// Returns `true` if the peer reads no more bytes: it reset the connection or closed a unix
    /// socket, or both directions were shut down. Bytes it sent before may be unread.
    pub fn is_write_closed(&self) -> bool {
        self.is_write_closed
    }

    /// Returns `true` if the connection was reset or its peer is unreachable. Bytes received before
    /// may be unread.
    pub fn has_error(&self) -> bool {
        self.has_error
    }

    /// Returns `true` if urgent bytes are pending. System calls other than [`Self::read`] may stop
    /// before the urgent bytes and return zero bytes or `EAGAIN`; [`Self::read`] reads past them.
    pub fn has_urgent_data(&self) -> bool {
        self.has_urgent_data
    }

    /// Clears the read readiness; to be called after a read by a system call outside this type,
    /// such as `splice(2)`, returned `EAGAIN`.
    pub fn clear_readable(&mut self) {
        self.is_readable = false;
    }

    /// Clears the write readiness; to be called after a write by a system call outside this type,
    /// such as `splice(2)`, returned `EAGAIN`.
    pub fn clear_writable(&mut self) {
        self.is_writable = false;
    }

    /// Marks the socket as readable up to its end; to be called after a write by a system call
    /// outside this type failed. Bytes that the peer sent before the failure can be read, but the
    /// kernel may report no event for them.
    pub fn mark_failed(&mut self) {
        self.is_readable = true;
        self.is_read_closed = true;
    }

    pub(crate) fn update_readiness(&mut self, event: &mio::event::Event) {
        let has_failed = event.is_error();
        self.is_read_closed |= event.is_read_closed() || has_failed;
        self.has_urgent_data |= event.is_priority();
        self.is_write_closed |= event.is_write_closed() || has_failed;
        self.has_error |= has_failed;
        self.is_readable |= event.is_readable() || self.is_read_closed;
        self.is_writable |= event.is_writable() || event.is_write_closed() || has_failed;
    }

    /// Reads up to `buffer.len()` bytes.
    ///
    /// # Errors
    /// The error of the system call, such as a reset.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<IoStatus> {
        let fd = &self.fd;
        let answer = retry_on_intr(|| recv(fd, &mut *buffer, RecvFlags::empty()));
        let is_short = matches!(answer, Ok((bytes, _)) if bytes < buffer.len());
        if is_short && self.short_read_is_empty && !self.has_urgent_data && !self.is_read_closed {
            // The receive buffer is empty: the next bytes, or the end of the stream, cause an
            // event.
            self.is_readable = false;
        }
        self.has_urgent_data &= answer.is_ok();
        Self::moved(answer.map(|(bytes, _all)| bytes), &mut self.is_readable)
    }

    /// Checks for bytes or the end of the stream without consuming them (`MSG_PEEK`).
    ///
    /// # Errors
    /// The error of the system call, such as a reset.
    pub fn peek(&mut self) -> io::Result<IoStatus> {
        let (fd, mut byte) = (&self.fd, [0]);
        let answer = retry_on_intr(|| recv(fd, &mut byte, RecvFlags::PEEK));
        Self::moved(answer.map(|(bytes, _all)| bytes), &mut self.is_readable)
    }

    /// Writes the pieces in order, as far as the send buffer has room. If `more` is `true`, the
    /// kernel may delay the last partial segment (`MSG_MORE`): pass `true` only if more bytes
    /// follow immediately.
    ///
    /// # Errors
    /// The error of the system call, such as a closed connection; no `SIGPIPE` is raised.
    pub fn write(&mut self, pieces: &[IoSlice<'_>], more: bool) -> io::Result<IoStatus> {
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, more);
        let fd = &self.fd;
        let answer =
            retry_on_intr(|| sendmsg(fd, pieces, &mut SendAncillaryBuffer::default(), flags));
        if matches!(answer, Err(errno) if errno != Errno::AGAIN) {
            self.mark_failed();
        }
        Self::moved(answer, &mut self.is_writable)
    }

    fn moved(answer: rustix::io::Result<usize>, is_ready: &mut bool) -> io::Result<IoStatus> {
        match answer {
            Ok(bytes) => Ok(IoStatus::Bytes(bytes)),
            Err(Errno::AGAIN) => {
                *is_ready = false;
                Ok(IoStatus::WouldBlock)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sets or clears `TCP_CORK`, which delays partial segments by at most 200 ms; clearing it
    /// sends them. Meant for bytes moved by system calls that have no flag like `MSG_MORE`.
    pub fn cork(&mut self, is_corked: bool) {
        // An error is ignored: corking only saves packets, and fails on sockets other than TCP.
        set_tcp_cork(&self.fd, is_corked).unwrap_or_default();
    }

    /// Sends the partial segment that a write with `more` delayed; to be called if no more bytes
    /// follow immediately. Without this call the kernel delays the segment by up to 200 ms.
    pub fn push(&mut self) {
        // Setting TCP_NODELAY again sends pending segments. An error is ignored: sockets other than
        // TCP delay nothing.
        set_tcp_nodelay(&self.fd, true).unwrap_or_default();
    }

    /// Shuts down the write side (`SHUT_WR`): the peer reads the end of the stream.
    ///
    /// # Errors
    /// If the connection is already closed.
    pub fn shutdown_write(&mut self) -> io::Result<()> {
        Ok(shutdown(&self.fd, Shutdown::Write)?)
    }

    /// Returns the outcome of a non-blocking connect; to be called once the socket is writable.
    ///
    /// # Errors
    /// The error of the connect (`SO_ERROR`), or `ConnectionRefused` if the socket is connected to
    /// itself.
    pub fn connect_result(&self) -> io::Result<()> {
        SockRef::from(&self.fd).take_error()?.map_or(Ok(()), Err)?;
        match is_self_connected(&self.fd) {
            true => Err(io::ErrorKind::ConnectionRefused.into()),
            false => Ok(()),
        }
    }

    /// Writes the last bytes, as many as the send buffer takes, and closes the socket; returns their
    /// number. Meant for short refusals: a peer that sends more bytes afterwards may lose them to a
    /// reset, so prefer [`LingeringClose`](crate::LingeringClose).
    pub fn close_with(mut self, last: &[u8]) -> usize {
        // Errors are ignored: the connection ends in either case. Unread bytes would turn the close
        // into a reset.
        self.read(&mut [0; 4 << 10]).ok();
        let written = self.write(&[IoSlice::new(last)], false);
        self.shutdown_write().ok();
        match written {
            Ok(IoStatus::Bytes(bytes)) => bytes,
            Ok(IoStatus::WouldBlock) | Err(_) => 0,
        }
    }

    /// Closes the socket with a reset (RST) in place of a clean end (FIN). A unix socket has no
    /// reset, so it is closed cleanly.
    pub fn reset(self) {
        // An error is ignored: the peer then sees a clean end, and there is no other way to reset.
        SockRef::from(&self.fd).set_linger(Some(Duration::ZERO)).ok();
    }
}

/// Returns `true` if a socket is connected to itself. This happens with TCP when no process listens
/// on a local port and the kernel assigns the connecting socket the same port as its ephemeral
/// port.
pub fn is_self_connected(socket: impl AsFd) -> bool {
    let local = getsockname(&socket).ok().and_then(|address| SocketAddr::try_from(address).ok());
    let peer = getpeername(&socket).ok().flatten();
    local.is_some() && local == peer.and_then(|address| SocketAddr::try_from(address).ok())
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
