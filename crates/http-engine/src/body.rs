//! The bodies of responses: bytes in memory, and windows of files that the kernel sends by itself.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use haul_reactor::Socket;
use rustix::io::{Errno, retry_on_intr};

/// An error of any kind.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The bytes of a window that are read at once for TLS, which cannot send files by itself.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// The body of a response, which is produced piece by piece.
pub trait ResponseBody {
    /// Returns the next piece when it is ready, and `None` at the end. An error closes the
    /// connection before the declared end of the body.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, BoxError>>>;

    /// Returns `true` if there are no more pieces, as far as is known without a poll.
    fn is_end(&self) -> bool;

    /// Returns the number of bytes left, if it is known.
    fn bytes_left(&self) -> Option<u64>;
}

/// A piece of a body.
#[derive(Debug)]
pub enum Piece {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Bytes of a file.
    Window(Window),
}

impl Piece {
    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Window(window) => window.bytes,
        }
    }
}

/// A range of a file in the page cache, which `sendfile(2)` sends without a copy.
///
/// The thread of the connection sends it. If a page of it is not in the page cache, this thread
/// waits for the disk, and with it all of its connections.
#[derive(Clone)]
pub struct Window {
    /// The file. It is dropped when all bytes are sent.
    pub file: Arc<dyn AsFd + Send + Sync>,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window")
            .field("offset", &self.offset)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Window {
    /// Sends up to `bytes_max` bytes; returns their number, or `None` if the socket is full.
    ///
    /// # Errors
    /// The error of the socket, or `UnexpectedEof` if the file has become shorter.
    pub(crate) fn send(
        &mut self,
        socket: &mut Socket,
        bytes_max: usize,
    ) -> io::Result<Option<usize>> {
        let mut offset = self.offset;
        let count = usize::try_from(self.bytes).unwrap_or(usize::MAX).min(bytes_max);
        let sent = retry_on_intr(|| {
            rustix::fs::sendfile(&*socket, self.file.as_fd(), Some(&mut offset), count)
        });
        match sent {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(sent) => {
                self.advance(sent);
                Ok(Some(sent))
            }
            Err(Errno::AGAIN) => {
                socket.clear_writable();
                Ok(None)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Copies the next bytes out of the file.
    ///
    /// # Errors
    /// The error of the read, or `UnexpectedEof` if the file has become shorter.
    pub(crate) fn read(&mut self) -> io::Result<Bytes> {
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX).min(COPIED_BYTES_MAX);
        let mut buffer = vec![0; bytes];
        let read =
            retry_on_intr(|| rustix::io::pread(self.file.as_fd(), &mut *buffer, self.offset))?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.truncate(read);
        self.advance(read);
        Ok(Bytes::from(buffer))
    }

    fn advance(&mut self, bytes: usize) {
        self.offset += bytes as u64;
        self.bytes -= bytes as u64;
    }
}
