//! The head and the framing of a response, and its bytes that the socket has not taken.

use std::io::{self, IoSlice};

use bytes::Bytes;
use haul_http1::{Date, HeadWriter, InvalidHead, LAST_CHUNK, write_chunk_size};
use haul_reactor::IoStatus;
use haul_tls::Transport;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::response::Parts;

use crate::body::{Piece, Window};

/// The framing of the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// No byte of the body is sent.
    Absent,
    /// This many bytes are left.
    Length(u64),
    Chunked,
    UntilClose,
}

/// The properties of a response that its request and connection determine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) is_head: bool,
    /// The client speaks HTTP/1.0.
    pub(crate) is_old: bool,
    /// The connection is closed after the response.
    pub(crate) closes: bool,
}

impl Terms {
    /// Returns the value of the field Connection, if it is needed.
    pub(crate) fn connection(self) -> Option<&'static str> {
        match (self.closes, self.is_old) {
            (true, _) => Some("close"),
            (false, true) => Some("keep-alive"),
            (false, false) => None,
        }
    }
}

/// Writes the head of a response whose body has `bytes`, if that is known. Returns the framing of
/// the body, and `true` if the connection is to be closed after it.
///
/// # Errors
/// If a field is invalid.
pub(crate) fn write_head(
    parts: &Parts,
    bytes: Option<u64>,
    mut terms: Terms,
    date: &Date,
    out: &mut Vec<u8>,
) -> Result<(BodyFraming, bool), InvalidHead> {
    let status = parts.status.as_u16();
    let declared = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let bytes = declared.and_then(|length| length.parse().ok()).or(bytes);
    let has_body = !matches!(status, 204 | 304);
    let framing = match bytes {
        _ if terms.is_head || !has_body => BodyFraming::Absent,
        Some(bytes) => BodyFraming::Length(bytes),
        None if terms.is_old => BodyFraming::UntilClose,
        None => BodyFraming::Chunked,
    };
    let asks_to_close = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"close");
    terms.closes |= parts.headers.get(CONNECTION).is_some_and(asks_to_close);
    terms.closes |= framing == BodyFraming::UntilClose;
    let mut head = HeadWriter::response(out, status);
    if !parts.headers.contains_key(DATE) {
        head.date("date", date);
    }
    if let Some(connection) = terms.connection() {
        head.field("connection", connection.as_bytes());
    }
    for (name, value) in &parts.headers {
        if ![CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
            head.field(name.as_str(), value.as_bytes());
        }
    }
    match (framing, bytes) {
        (BodyFraming::Chunked, _) => {
            head.field("transfer-encoding", b"chunked");
        }
        (_, Some(bytes)) if has_body => {
            head.number("content-length", bytes);
        }
        _ => {}
    }
    head.end()?;
    Ok((framing, terms.closes))
}

/// The bytes of a window that are sent at once, before other connections have their turn.
const WINDOW_STEP_BYTES: usize = 1 << 20;

/// Bytes that the socket has not taken: a head, and a piece of the body after it.
#[derive(Debug, Default)]
pub(crate) struct Output {
    first: Vec<u8>,
    first_at: usize,
    /// Bytes in memory, which precede those of the window.
    frame: Bytes,
    window: Option<Window>,
    /// The kernel holds back segments that are not full, until the end of the window.
    is_corked: bool,
    /// The end of a chunk.
    last: &'static [u8],
}

impl Output {
    pub(crate) fn new(first: Vec<u8>, frame: Bytes) -> Self {
        Self { first, frame, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_memory_sent() && self.window.is_none() && self.last.is_empty()
    }

    /// Returns `true` if no bytes are left but those of the window and the end of its chunk.
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
        debug_assert!(self.frame.is_empty() && self.window.is_none() && self.last.is_empty());
        let bytes = piece.bytes();
        match framing {
            _ if bytes == 0 => return Ok(()),
            BodyFraming::Absent => return Ok(()),
            BodyFraming::Length(left) => {
                let Some(rest) = left.checked_sub(bytes) else {
                    return Err(io::Error::other("the body is longer than it was declared"));
                };
                *left = rest;
            }
            BodyFraming::Chunked => {
                write_chunk_size(&mut self.first, bytes);
                self.last = b"\r\n";
            }
            BodyFraming::UntilClose => {}
        }
        match piece {
            Piece::Bytes(frame) => self.frame = frame,
            Piece::Window(window) => self.window = Some(window),
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
                if self.frame.is_empty() && self.window.is_none() {
                    self.first.extend_from_slice(LAST_CHUNK);
                } else {
                    self.last = b"\r\n0\r\n\r\n";
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes once; returns the number of bytes that the socket took, or `None` if it is full.
    ///
    /// # Errors
    /// The error of the socket, or of a read of the window.
    pub(crate) fn write(&mut self, socket: &mut Transport) -> io::Result<Option<usize>> {
        let Some(window) = &mut self.window else { return self.write_memory(socket, false) };
        if self.first_at < self.first.len() || !self.frame.is_empty() {
            return self.write_memory(socket, true);
        }
        let Some(plain) = socket.plain() else {
            self.frame = window.read()?;
            self.window.take_if(|window| window.bytes == 0);
            return self.write_memory(socket, self.window.is_some());
        };
        // Without this, each call would end with a short segment.
        if !self.is_corked && window.bytes > WINDOW_STEP_BYTES as u64 {
            self.is_corked = true;
            plain.cork(true);
        }
        let sent = window.send(plain, WINDOW_STEP_BYTES)?;
        if self.window.take_if(|window| window.bytes == 0).is_some()
            && std::mem::take(&mut self.is_corked)
        {
            plain.cork(false);
        }
        Ok(sent)
    }

    /// Writes bytes in memory. `more`: those of the window follow at once.
    fn write_memory(&mut self, socket: &mut Transport, more: bool) -> io::Result<Option<usize>> {
        let first = &self.first[self.first_at..];
        let last = if more { &[] } else { self.last };
        let pieces = [IoSlice::new(first), IoSlice::new(&self.frame), IoSlice::new(last)];
        let IoStatus::Bytes(bytes) = socket.write(&pieces, more)? else { return Ok(None) };
        self.advance(bytes);
        Ok(Some(bytes))
    }

    /// Removes bytes that the socket took.
    pub(crate) fn advance(&mut self, bytes: usize) {
        let of_first = bytes.min(self.first.len() - self.first_at);
        self.first_at += of_first;
        if self.first_at == self.first.len() {
            self.first.clear();
            self.first_at = 0;
        }
        let of_frame = (bytes - of_first).min(self.frame.len());
        drop(self.frame.split_to(of_frame));
        self.last = &self.last[bytes - of_first - of_frame..];
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::Response;

    use super::*;

    fn head(
        response: Response<()>,
        bytes: Option<u64>,
        terms: Terms,
    ) -> (String, BodyFraming, bool) {
        let date = Date::of(SystemTime::UNIX_EPOCH);
        let mut out = Vec::new();
        let (framing, closes) =
            write_head(&response.into_parts().0, bytes, terms, &date, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), framing, closes)
    }

    fn piece(text: &'static str) -> Piece {
        Piece::Bytes(Bytes::from_static(text.as_bytes()))
    }

    const TERMS: Terms = Terms { is_head: false, is_old: false, closes: false };

    #[test]
    fn framing_follows_the_version_and_the_length() {
        let plain = || Response::new(());
        let (text, framing, closes) = head(plain(), Some(5), TERMS);
        assert!(text.ends_with("\r\ncontent-length: 5\r\n\r\n"), "{text}");
        assert_eq!((framing, closes), (BodyFraming::Length(5), false));
        let (text, framing, closes) = head(plain(), None, TERMS);
        assert!(text.ends_with("\r\ntransfer-encoding: chunked\r\n\r\n"), "{text}");
        assert_eq!((framing, closes), (BodyFraming::Chunked, false));
        let (text, framing, closes) = head(plain(), None, Terms { is_old: true, ..TERMS });
        assert!(text.contains("connection: close\r\n"), "{text}");
        assert_eq!((framing, closes), (BodyFraming::UntilClose, true));
        let (text, framing, _) = head(plain(), Some(5), Terms { is_head: true, ..TERMS });
        assert!(text.contains("content-length: 5\r\n"), "{text}");
        assert_eq!(framing, BodyFraming::Absent);
        let empty = Response::builder().status(204).body(()).unwrap();
        let (text, framing, _) = head(empty, Some(0), Terms { is_old: true, ..TERMS });
        assert!(!text.contains("content-length") && text.contains("keep-alive"), "{text}");
        assert_eq!(framing, BodyFraming::Absent);
    }

    #[test]
    fn fields_of_the_framing_are_the_engine_s_own() {
        let response = Response::builder()
            .header("connection", "close")
            .header("transfer-encoding", "chunked")
            .header("content-length", "7")
            .header("etag", "\"a\"")
            .body(())
            .unwrap();
        let (text, framing, closes) = head(response, None, TERMS);
        let expected = "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
                        connection: close\r\netag: \"a\"\r\ncontent-length: 7\r\n\r\n";
        assert_eq!((text.as_str(), framing, closes), (expected, BodyFraming::Length(7), true));
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
}
