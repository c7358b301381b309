//! A stream socket with or without TLS.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use haul_reactor::{IoStatus, Socket};

use crate::tls_socket::TlsSocket;

/// A stream to a peer, in plaintext or over TLS, with the calls of [`Socket`].
///
/// The owner must call [`Self::flush`] whenever the reactor drives the connection: it sends records
/// that did not fit into the send buffer.
#[derive(Debug)]
pub struct Transport(Stream);

#[derive(Debug)]
enum Stream {
    Plain(Socket),
    Tls(Box<TlsSocket>),
}

impl Transport {
    pub(crate) fn tls(tls: TlsSocket) -> Self {
        Self(Stream::Tls(Box::new(tls)))
    }

    /// Returns the socket below the transport.
    pub fn socket(&self) -> &Socket {
        match &self.0 {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => tls.socket(),
        }
    }

    /// Returns the socket below the transport, to register it, or to discard received bytes.
    pub fn socket_mut(&mut self) -> &mut Socket {
        match &mut self.0 {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => tls.socket_mut(),
        }
    }

    /// Returns the socket if it has no TLS, for system calls such as `sendfile(2)` and `splice(2)`.
    pub fn plain(&mut self) -> Option<&mut Socket> {
        match &mut self.0 {
            Stream::Plain(socket) => Some(socket),
            Stream::Tls(_) => None,
        }
    }

    /// Returns `true` if the transport has TLS.
    pub fn is_tls(&self) -> bool {
        matches!(&self.0, Stream::Tls(_))
    }

    /// Returns `true` while a handshake is incomplete: a write accepts nothing.
    pub fn is_handshaking(&self) -> bool {
        matches!(&self.0, Stream::Tls(tls) if tls.is_handshaking())
    }

    /// Returns `true` if a read may return bytes, the end of the stream or an error.
    pub fn is_readable(&self) -> bool {
        match &self.0 {
            Stream::Plain(socket) => socket.is_readable(),
            Stream::Tls(tls) => tls.is_readable(),
        }
    }

    /// Returns `true` if a write may accept bytes or return an error.
    pub fn is_writable(&self) -> bool {
        match &self.0 {
            Stream::Plain(socket) => socket.is_writable(),
            Stream::Tls(tls) => tls.is_writable(),
        }
    }

    /// Returns `true` if bytes that the transport itself queued are not sent yet. Written bytes are
    /// never among them: [`Self::write`] reports only bytes that the kernel has accepted.
    pub fn has_unsent(&self) -> bool {
        matches!(&self.0, Stream::Tls(tls) if tls.has_unsent())
    }

    /// Performs the handshake; returns `true` once it is complete. Reads no application data.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn handshake(&mut self) -> io::Result<bool> {
        match &mut self.0 {
            Stream::Plain(_) => Ok(true),
            Stream::Tls(tls) => tls.handshake(),
        }
    }

    /// Adds bytes of the TLS session that the caller has read from [`Self::socket_mut`], for
    /// example behind a header that precedes the handshake.
    pub fn add_received(&mut self, bytes: &[u8]) {
        if let Stream::Tls(tls) = &mut self.0 {
            tls.add_received(bytes);
        }
    }

    /// Reads up to `buffer.len()` bytes; zero bytes are the end of the stream. Performs the
    /// handshake first. Over TLS, `buffer` also holds ciphertext temporarily, so its length limits
    /// the bytes of a system call.
    ///
    /// # Errors
    /// The error of the system call, such as a reset; `InvalidData` if the peer violates the
    /// protocol of TLS; `UnexpectedEof` if a TLS peer closes the connection without `close_notify`.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<IoStatus> {
        match &mut self.0 {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Tls(tls) => tls.read(buffer),
        }
    }

    /// Writes the pieces in order, as far as the send buffer has room. If `more` is `true`, the
    /// kernel may delay the last partial segment (`MSG_MORE`).
    ///
    /// Over TLS, bytes may be encrypted although their records do not fit into the send buffer.
    /// They are reported by a later call. Therefore the next call must offer the bytes that this
    /// call did not report, unchanged and first; only the bytes after them may differ.
    ///
    /// # Errors
    /// The error of the system call, such as a closed connection.
    pub fn write(&mut self, pieces: &[IoSlice<'_>], more: bool) -> io::Result<IoStatus> {
        match &mut self.0 {
            Stream::Plain(socket) => socket.write(pieces, more),
            Stream::Tls(tls) => tls.write(pieces, more),
        }
    }

    /// Sends bytes that the transport itself queued, such as those of a handshake; returns `true`
    /// if none are left.
    ///
    /// # Errors
    /// The error of the system call, such as a closed connection.
    pub fn flush(&mut self) -> io::Result<bool> {
        match &mut self.0 {
            Stream::Plain(_) => Ok(true),
            Stream::Tls(tls) => tls.flush(),
        }
    }

    /// Shuts down the write side: the peer reads the end of the stream. Over TLS, sends
    /// `close_notify` first; if the send buffer is full, [`Self::flush`] completes the shutdown.
    ///
    /// # Errors
    /// If the connection is already closed.
    pub fn shutdown_write(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Stream::Plain(socket) => socket.shutdown_write(),
            Stream::Tls(tls) => tls.shutdown_write(),
        }
    }

    /// Closes the connection cleanly: a TLS peer receives `close_notify`, unless the send buffer is
    /// full.
    pub fn close(mut self) {
        if let Stream::Tls(tls) = &mut self.0
            && !tls.is_handshaking()
        {
            // An error is ignored: the connection is closed already.
            tls.shutdown_write().unwrap_or_default();
        }
    }

    /// Closes the connection with a reset (RST); see [`Socket::reset`].
    pub fn reset(self) {
        match self.0 {
            Stream::Plain(socket) => socket.reset(),
            Stream::Tls(tls) => tls.into_socket().reset(),
        }
    }
}

impl From<Socket> for Transport {
    fn from(socket: Socket) -> Self {
        Self(Stream::Plain(socket))
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}
