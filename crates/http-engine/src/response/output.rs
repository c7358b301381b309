//! The bytes of a response that the socket has not taken.

use std::io::{self, IoSlice};

use bytes::Bytes;
use haul_http1::{LAST_CHUNK, write_chunk_size};
use haul_reactor::{IoStatus, Socket};
use haul_tls::Transport;

use super::body::{Piece, SplicedPiece, Window, WindowSent};
use super::framing::BodyFraming;

/// The bytes of a body that are sent at once, before other connections have their turn.
const STEP_BYTES: usize = 1 << 20;

/// A head, and a piece of the body after it.
#[derive(Default)]
pub(crate) struct Output {
    first: Vec<u8>,
    first_at: usize,
    /// Bytes in memory, which precede those of `file`.
    frame: Bytes,
    file: Option<FilePiece>,
    /// The end of a chunk.
    last: &'static [u8],
    /// More bytes of the body follow those in this output.
    is_followed: bool,
    hold: Hold,
}

/// A piece that is not in memory.
enum FilePiece {
    Window(Window),
    Spliced(Box<dyn SplicedPiece>),
}

impl FilePiece {
    fn bytes(&self) -> u64 {
        match self {
            Self::Window(window) => window.bytes,
            Self::Spliced(piece) => piece.bytes(),
        }
    }
}

/// The state of a partial segment at the end of the bytes sent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Hold {
    #[default]
    Sent,
    /// The kernel may delay it (`MSG_MORE`).
    Delayed,
    /// The kernel delays it until the socket is uncorked (`TCP_CORK`).
    Corked,
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// The socket took this many bytes, of which `body` belong to the body.
    Bytes {
        all: usize,
        body: usize,
    },
    SocketFull,
    /// The kernel cannot send windows of this file.
    Unsendable,
}

impl Output {
    pub(crate) fn is_empty(&self) -> bool {
        self.is_memory_sent() && self.file.is_none() && self.last.is_empty()
    }

    /// Returns `true` if no bytes are left but those of a file and the end of its chunk.
    fn is_memory_sent(&self) -> bool {
        self.first_at == self.first.len() && self.frame.is_empty()
    }

    /// Returns the buffer for bytes that precede the piece.
    pub(crate) fn first(&mut self) -> &mut Vec<u8> {
        &mut self.first
    }

    /// Adds a piece of the body, in its framing.
    ///
    /// # Errors
    /// If the body is longer than it was declared.
    pub(crate) fn push(&mut self, piece: Piece, framing: &mut BodyFraming) -> io::Result<()> {
        debug_assert!(self.frame.is_empty() && self.file.is_none() && self.last.is_empty());
        let bytes = piece.bytes();
        self.is_followed = false;
        match framing {
            _ if bytes == 0 => return Ok(()),
            BodyFraming::Absent => return Ok(()),
            BodyFraming::Length(left) => {
                let Some(rest) = left.checked_sub(bytes) else {
                    return Err(io::Error::other("the body is longer than it was declared"));
                };
                *left = rest;
                self.is_followed = rest > 0;
            }
            BodyFraming::Chunked => {
                write_chunk_size(&mut self.first, bytes);
                self.last = b"\r\n";
            }
            BodyFraming::UntilClose => {}
        }
        match piece {
            Piece::Bytes(frame) => self.frame = frame,
            Piece::Window(window) => self.file = Some(FilePiece::Window(window)),
            Piece::Spliced(piece) => self.file = Some(FilePiece::Spliced(piece)),
        }
        Ok(())
    }

    /// Ends the body.
    ///
    /// # Errors
    /// If the body is shorter than it was declared.
    pub(crate) fn end(&mut self, framing: BodyFraming) -> io::Result<()> {
        match framing {
            BodyFraming::Length(1..) => {
                Err(io::Error::other("the body is shorter than it was declared"))
            }
            BodyFraming::Chunked => {
                // The piece before it, if any, was not sent yet.
                if self.frame.is_empty() && self.file.is_none() {
                    self.first.extend_from_slice(LAST_CHUNK);
                } else {
                    self.last = b"\r\n0\r\n\r\n";
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the rest of a window to the body, which can then check its file again. In a chunk,
    /// the size of which was sent already, the rest stays. Returns `true` if there is a rest that
    /// the body must produce again.
    pub(crate) fn return_window(&mut self, framing: &mut BodyFraming) -> bool {
        let BodyFraming::Length(left) = framing else { return false };
        if !self.is_memory_sent() {
            return false;
        }
        let Some(file) = self.file.take_if(|file| matches!(file, FilePiece::Window(_))) else {
            return false;
        };
        *left += file.bytes();
        true
    }

    /// Writes once. With TLS, `buffer` holds the bytes of a window.
    ///
    /// # Errors
    /// The error of the socket, or of a read of the window.
    pub(crate) fn write(
        &mut self,
        socket: &mut Transport,
        buffer: &mut [u8],
    ) -> io::Result<Written> {
        let is_memory_sent = self.is_memory_sent();
        let Some(file) = self.file.as_mut().filter(|_| is_memory_sent) else {
            return self.write_memory(socket);
        };
        let more = self.is_followed || !self.last.is_empty() || file.bytes() > STEP_BYTES as u64;
        let sent = match (file, socket.plain()) {
            (FilePiece::Window(window), Some(plain)) => {
                self.hold = corked(plain, more, self.hold);
                match window.send(plain, STEP_BYTES)? {
                    WindowSent::Bytes(sent) => sent,
                    WindowSent::SocketFull => return Ok(Written::SocketFull),
                    WindowSent::Unsendable => return Ok(Written::Unsendable),
                }
            }
            (FilePiece::Window(window), None) => {
                // Bytes that are not sent now are read again, which the transport permits.
                let bytes = window.read(buffer)?;
                let more = more || (bytes.len() as u64) < window.bytes;
                match socket.write(&[IoSlice::new(bytes)], more)? {
                    IoStatus::Bytes(sent) => sent,
                    IoStatus::WouldBlock => return Ok(Written::SocketFull),
                }
            }
            (FilePiece::Spliced(piece), plain) => {
                let plain = plain.ok_or(io::ErrorKind::Unsupported)?;
                match piece.send(plain, STEP_BYTES, more)? {
                    IoStatus::Bytes(sent) => sent,
                    IoStatus::WouldBlock => return Ok(Written::SocketFull),
                }
            }
        };
        self.note_hold(socket, more);
        if let Some(FilePiece::Window(window)) = &mut self.file {
            window.advance(sent as u64);
        }
        self.file.take_if(|file| file.bytes() == 0);
        Ok(Written::Bytes { all: sent, body: sent })
    }

    /// Writes bytes in memory.
    fn write_memory(&mut self, socket: &mut Transport) -> io::Result<Written> {
        let first = &self.first[self.first_at..];
        let frame = &self.frame[..self.frame.len().min(STEP_BYTES)];
        let is_all = frame.len() == self.frame.len() && self.file.is_none();
        let last = if is_all { self.last } else { &[] };
        let more = !is_all || self.is_followed;
        let pieces = [IoSlice::new(first), IoSlice::new(frame), IoSlice::new(last)];
        let IoStatus::Bytes(all) = socket.write(&pieces, more)? else {
            return Ok(Written::SocketFull);
        };
        self.note_hold(socket, more);
        let body = self.advance(all);
        Ok(Written::Bytes { all, body })
    }

    /// Notes that the last write allowed the kernel to delay a partial segment, or not.
    fn note_hold(&mut self, socket: &mut Transport, more: bool) {
        match (more, self.hold) {
            (true, Hold::Corked) => {}
            (true, _) => self.hold = Hold::Delayed,
            (false, Hold::Corked) => self.release(socket),
            (false, _) => self.hold = Hold::Sent,
        }
    }

    /// Has the kernel send a partial segment, because the next bytes are not ready.
    pub(crate) fn release(&mut self, socket: &mut Transport) {
        match std::mem::take(&mut self.hold) {
            Hold::Sent => {}
            Hold::Delayed => socket.socket_mut().push(),
            Hold::Corked => socket.socket_mut().cork(false),
        }
    }

    /// Removes bytes that the socket took; returns the number of those of the body.
    fn advance(&mut self, bytes: usize) -> usize {
        let from_first = bytes.min(self.first.len() - self.first_at);
        self.first_at += from_first;
        if self.first_at == self.first.len() {
            self.first.clear();
            self.first_at = 0;
        }
        let from_frame = (bytes - from_first).min(self.frame.len());
        drop(self.frame.split_to(from_frame));
        self.last = &self.last[bytes - from_first - from_frame..];
        from_frame
    }
}

/// Corks the socket if more bytes follow, since each `sendfile(2)` would end with a short segment;
/// uncorks it otherwise.
fn corked(socket: &mut Socket, more: bool, hold: Hold) -> Hold {
    match (more, hold) {
        (true, Hold::Corked) => Hold::Corked,
        (true, _) => {
            socket.cork(true);
            Hold::Corked
        }
        (false, Hold::Corked) => {
            socket.cork(false);
            Hold::Sent
        }
        (false, hold) => hold,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn piece(text: &'static str) -> Piece {
        Piece::Bytes(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn body_of_another_length_than_declared_is_an_error() {
        let mut output = Output::default();
        let mut framing = BodyFraming::Length(3);
        output.push(piece("ab"), &mut framing).unwrap();
        assert!(output.end(framing).is_err());
        output.advance(2);
        assert!(output.is_empty());
        assert!(output.push(piece("ab"), &mut framing).is_err());
    }

    #[test]
    fn output_advances_across_its_parts() {
        let mut output = Output::default();
        let mut framing = BodyFraming::Chunked;
        output.first().extend_from_slice(b"head");
        output.push(piece("frame"), &mut framing).unwrap();
        output.end(framing).unwrap();
        let all = b"head5\r\nframe\r\n0\r\n\r\n";
        let mut taken = 0;
        for step in [1, 5, 3, 4, 2] {
            output.advance(step);
            taken += step;
            let left = [&output.first[output.first_at..], &output.frame, output.last].concat();
            assert_eq!(left, &all[taken..], "{taken}");
        }
    }
    #[test]
    fn unsent_rest_of_a_window_returns_to_the_body() {
        let window = || Window { file: Arc::new(io::stdin()), offset: 3, bytes: 5 };
        let mut output = Output::default();
        let mut framing = BodyFraming::Length(7);
        output.first().extend_from_slice(b"head");
        output.push(Piece::Window(window()), &mut framing).unwrap();
        output.return_window(&mut framing);
        assert_eq!(framing, BodyFraming::Length(2), "the head is not sent");
        output.advance(4);
        output.return_window(&mut framing);
        assert_eq!(framing, BodyFraming::Length(7));
        assert!(output.is_empty());
        framing = BodyFraming::Chunked;
        output.push(Piece::Window(window()), &mut framing).unwrap();
        output.advance(output.first.len());
        output.return_window(&mut framing);
        assert!(output.file.is_some(), "the size of the chunk is sent");
    }
}
