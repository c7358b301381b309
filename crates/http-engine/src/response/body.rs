//! The bodies of responses: bytes in memory, and bytes that the kernel moves by itself.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use haul_reactor::{IoStatus, Socket};
use rustix::io::{Errno, retry_on_intr};

/// An error of any kind.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a response, which is produced piece by piece.
pub trait ResponseBody {
    /// The sources of bytes that the server distinguishes.
    type Source: BodySource;

    /// Returns the next piece when it is ready, and `None` at the end. An error closes the
    /// connection before the declared end of the body.
    ///
    /// If the body has a declared length, the socket may take only a part of a [`Piece::Window`].
    /// The rest is then dropped, and the next piece must begin with its first byte: see
    /// [`Self::on_sent`]. So the body can check the file again before each part is sent.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, BoxError>>>;

    /// Returns `true` if there are no more pieces, as far as is known without a poll.
    fn is_end(&self) -> bool;

    /// Returns the number of bytes left, if it is known.
    fn bytes_left(&self) -> Option<u64>;

    /// Receives the number of bytes of the last piece that the socket has taken.
    fn on_sent(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Learns that the kernel cannot send windows of this file by itself. Returns `true` if the
    /// body continues with other pieces; otherwise the connection is closed.
    fn on_unsendable(&mut self) -> bool {
        false
    }

    /// Returns the source of the bytes so far, for the statistics and the access log.
    fn source(&self) -> Self::Source {
        Self::Source::default()
    }
}

/// The body of a server whose bodies are all [`Inline::Bytes`](crate::Inline::Bytes).
impl ResponseBody for Infallible {
    type Source = ();

    fn poll_piece(&mut self, _context: &mut Context<'_>) -> Poll<Option<Result<Piece, BoxError>>> {
        match *self {}
    }

    fn is_end(&self) -> bool {
        match *self {}
    }

    fn bytes_left(&self) -> Option<u64> {
        match *self {}
    }
}

/// The source of the bytes of a response, such as a cache, for the statistics and the access log.
pub trait BodySource: Copy + Default + fmt::Debug + Send + 'static {
    /// The name of the source in JSON lines of the access log. `None`: lines have the identifier of
    /// the request instead.
    const LOG_FIELD: Option<&'static str>;

    /// Returns the name of this source in the access log.
    fn name(self) -> Option<&'static str>;
}

/// Responses have one source only.
impl BodySource for () {
    const LOG_FIELD: Option<&'static str> = None;

    fn name(self) -> Option<&'static str> {
        None
    }
}

/// A piece of a body.
pub enum Piece {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Bytes of a file.
    Window(Window),
    /// Bytes that are moved by a system call of the server. Only without TLS.
    Spliced(Box<dyn SplicedPiece>),
}

impl Piece {
    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Window(window) => window.bytes,
            Self::Spliced(piece) => piece.bytes(),
        }
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Bytes(_) => "Bytes",
            Self::Window(_) => "Window",
            Self::Spliced(_) => "Spliced",
        };
        f.debug_tuple(name).field(&self.bytes()).finish()
    }
}

/// Bytes that a system call such as `splice(2)` moves to the socket.
pub trait SplicedPiece: Send {
    /// Returns the number of bytes left.
    fn bytes(&self) -> u64;

    /// Moves up to `bytes_max` bytes. `more`: other bytes follow at once. Must call
    /// [`Socket::clear_writable`] if the socket is full.
    ///
    /// # Errors
    /// The error of the system call; the connection is closed.
    fn send(&mut self, socket: &mut Socket, bytes_max: usize, more: bool) -> io::Result<IoStatus>;
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

/// The outcome of sending a part of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowSent {
    Bytes(usize),
    SocketFull,
    /// The file system does not support `sendfile(2)`.
    Unsendable,
}

impl Window {
    /// Removes bytes that were sent from the front.
    pub fn advance(&mut self, bytes: u64) {
        self.offset += bytes;
        self.bytes -= bytes;
    }

    /// Sends up to `bytes_max` bytes.
    ///
    /// # Errors
    /// The error of the socket, or `UnexpectedEof` if the file has become shorter.
    pub(crate) fn send(&self, socket: &mut Socket, bytes_max: usize) -> io::Result<WindowSent> {
        let mut offset = self.offset;
        let count = usize::try_from(self.bytes).unwrap_or(usize::MAX).min(bytes_max);
        let sent = retry_on_intr(|| {
            rustix::fs::sendfile(&*socket, self.file.as_fd(), Some(&mut offset), count)
        });
        match sent {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(sent) => Ok(WindowSent::Bytes(sent)),
            Err(Errno::AGAIN) => {
                socket.clear_writable();
                Ok(WindowSent::SocketFull)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::OPNOTSUPP) => {
                Ok(WindowSent::Unsendable)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Reads the first bytes of the window, as many as fit into `buffer`.
    ///
    /// # Errors
    /// The error of the read, or `UnexpectedEof` if the file has become shorter.
    pub(crate) fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..bytes];
        let read =
            retry_on_intr(|| rustix::io::pread(self.file.as_fd(), &mut *buffer, self.offset))?;
        match read {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(&buffer[..read]),
        }
    }
}
