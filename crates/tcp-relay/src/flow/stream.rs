//! Abstracts over the two ends of a flow: the client, with or without TLS, and the target.

use std::io::{self, IoSlice};

use haul_reactor::{IoStatus, Socket};
use haul_tls::Transport;

/// A stream of bytes that a flow reads from or writes to. The calls are those of [`Socket`].
pub(crate) trait Stream {
    fn is_readable(&self) -> bool;
    fn is_writable(&self) -> bool;
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<IoStatus>;

    /// Writes the pieces in order. Bytes that a call did not report as written must be offered to
    /// the next call again, first and unchanged.
    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<IoStatus>;

    fn shutdown_write(&mut self) -> io::Result<()>;

    /// Sends bytes that the stream itself queued; returns `true` if none are left.
    fn flush(&mut self) -> io::Result<bool>;

    /// Returns `true` if the connection was reset.
    fn has_error(&self) -> bool;

    /// Returns the socket if its bytes are those of the stream, so that they can be spliced.
    fn plain(&mut self) -> Option<&mut Socket>;
}

/// Writes until the destination would block; returns the number of bytes written.
pub(super) fn write(to: &mut dyn Stream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match to.write(&[IoSlice::new(&bytes[sent..])])? {
            IoStatus::Bytes(more) => sent += more,
            IoStatus::WouldBlock => break,
        }
    }
    Ok(sent)
}

impl Stream for Socket {
    fn is_readable(&self) -> bool {
        self.is_readable()
    }

    fn is_writable(&self) -> bool {
        self.is_writable()
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<IoStatus> {
        self.read(buffer)
    }

    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<IoStatus> {
        self.write(pieces, false)
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        self.shutdown_write()
    }

    fn flush(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    fn has_error(&self) -> bool {
        self.has_error()
    }

    fn plain(&mut self) -> Option<&mut Socket> {
        Some(self)
    }
}

impl Stream for Transport {
    fn is_readable(&self) -> bool {
        self.is_readable()
    }

    fn is_writable(&self) -> bool {
        self.is_writable()
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<IoStatus> {
        self.read(buffer)
    }

    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<IoStatus> {
        self.write(pieces, false)
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        self.shutdown_write()
    }

    fn flush(&mut self) -> io::Result<bool> {
        self.flush()
    }

    fn has_error(&self) -> bool {
        self.socket().has_error()
    }

    fn plain(&mut self) -> Option<&mut Socket> {
        self.plain()
    }
}
