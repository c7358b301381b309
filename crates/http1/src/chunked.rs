//! Parses and writes the framing of the chunked transfer coding. The caller transfers the data.

use crate::error::HttpError;
use crate::fields::{is_token_byte, is_value_byte};
use crate::limits::ChunkLimits;

/// The next part of a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    /// This many data bytes of the chunk follow. The caller transfers these bytes, passes their
    /// number to [`ChunkedDecoder::advance`], and then scans the bytes after them.
    Data(u64),
    /// The framing is incomplete: more bytes are needed.
    Incomplete,
    /// The end of the body. Further bytes are not part of this message.
    End,
}

/// A decoder of the framing of a chunked body. It validates extensions and trailers and discards
/// them.
///
/// ```
/// use haul_http1::{Chunk, ChunkLimits, ChunkedDecoder};
///
/// let mut chunks = ChunkedDecoder::new(ChunkLimits::default());
/// let body = b"5\r\nhello\r\n0\r\n\r\nGET";
/// assert_eq!(chunks.scan(body), Ok((3, Chunk::Data(5))));
/// chunks.advance(5); // the data may never have been in memory
/// assert_eq!(chunks.scan(&body[8..]), Ok((7, Chunk::End)));
/// ```
#[derive(Debug, Clone)]
pub struct ChunkedDecoder {
    state: State,
    limits: ChunkLimits,
    /// While the size line is parsed: the chunk size parsed so far. Then: the number of remaining
    /// data bytes of the chunk.
    data_bytes: u64,
    /// The length so far of the element being parsed: digits of the size, or bytes of the extension
    /// or the trailer section.
    line_bytes: usize,
    /// The length in bytes of the extensions of all chunks so far.
    extensions_bytes: usize,
}

/// The element of the grammar that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    /// Before the name of an extension.
    Extension,
    ExtensionName,
    /// Blanks after a name, before `=` or `;`.
    ExtensionNameEnd,
    /// Before the value of an extension.
    ExtensionValue,
    ExtensionToken,
    ExtensionQuoted,
    /// After a backslash in a quoted value.
    ExtensionEscape,
    ExtensionQuotedEnd,
    /// Blanks after the size or a value, before `;`.
    ExtensionEnd,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    End,
}

impl State {
    const fn is_extension(self) -> bool {
        matches!(
            self,
            Self::Extension
                | Self::ExtensionName
                | Self::ExtensionNameEnd
                | Self::ExtensionValue
                | Self::ExtensionToken
                | Self::ExtensionQuoted
                | Self::ExtensionEscape
                | Self::ExtensionQuotedEnd
                | Self::ExtensionEnd
        )
    }

    /// Returns the state after a byte of an extension (RFC 9112, section 7.1.1); `None` if it is
    /// malformed there.
    const fn next_of_extension(self, byte: u8) -> Option<Self> {
        let is_blank = matches!(byte, b' ' | b'\t');
        Some(match (self, byte) {
            (Self::Extension | Self::ExtensionValue, _) if is_blank => self,
            (Self::Extension | Self::ExtensionName, _) if is_token_byte(byte) => {
                Self::ExtensionName
            }
            (Self::ExtensionName | Self::ExtensionNameEnd, _) if is_blank => Self::ExtensionNameEnd,
            (Self::ExtensionName | Self::ExtensionNameEnd, b'=') => Self::ExtensionValue,
            (Self::ExtensionValue, b'"') => Self::ExtensionQuoted,
            (Self::ExtensionValue | Self::ExtensionToken, _) if is_token_byte(byte) => {
                Self::ExtensionToken
            }
            (Self::ExtensionQuoted, b'"') => Self::ExtensionQuotedEnd,
            (Self::ExtensionQuoted, b'\\') => Self::ExtensionEscape,
            (Self::ExtensionQuoted | Self::ExtensionEscape, _) if is_value_byte(byte) => {
                Self::ExtensionQuoted
            }
            (Self::ExtensionToken | Self::ExtensionQuotedEnd | Self::ExtensionEnd, _)
                if is_blank =>
            {
                Self::ExtensionEnd
            }
            (
                Self::ExtensionName
                | Self::ExtensionNameEnd
                | Self::ExtensionToken
                | Self::ExtensionQuotedEnd
                | Self::ExtensionEnd,
                b';',
            ) => Self::Extension,
            _ => return None,
        })
    }
}

/// The maximum number of hexadecimal digits of a chunk size. The largest accepted size, 2^63 - 1,
/// has 16 digits.
const DIGITS_MAX: usize = 16;

impl ChunkedDecoder {
    /// Creates a decoder at the first byte of a body.
    pub const fn new(limits: ChunkLimits) -> Self {
        Self { state: State::Size, limits, data_bytes: 0, line_bytes: 0, extensions_bytes: 0 }
    }

    /// Parses framing at the start of `bytes`, which must follow the bytes that were scanned or
    /// advanced over before. Returns the number of framing bytes, and the part of the body that
    /// follows them. If the part is [`Chunk::Incomplete`], all of `bytes` is framing.
    ///
    /// # Errors
    /// Fails if the framing is invalid or exceeds a limit. The end of the body is then unknown.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<(usize, Chunk), HttpError> {
        for (consumed, byte) in bytes.iter().enumerate() {
            match self.state {
                State::Data => return Ok((consumed, Chunk::Data(self.data_bytes))),
                State::End => return Ok((consumed, Chunk::End)),
                _ => self.state = self.next(*byte)?,
            }
        }
        let next = match self.state {
            State::Data => Chunk::Data(self.data_bytes),
            State::End => Chunk::End,
            _ => Chunk::Incomplete,
        };
        Ok((bytes.len(), next))
    }

    /// Advances over `data_bytes` bytes of the chunk's data, at most as many as are left.
    pub fn advance(&mut self, data_bytes: u64) {
        debug_assert!(self.state == State::Data && data_bytes <= self.data_bytes, "{self:?}");
        if self.state == State::Data {
            self.data_bytes = self.data_bytes.saturating_sub(data_bytes);
            if self.data_bytes == 0 {
                self.state = State::DataCr;
            }
        }
    }

    fn next(&mut self, byte: u8) -> Result<State, HttpError> {
        match (self.state, byte) {
            (State::Size, b'\r') if self.line_bytes > 0 => Ok(State::SizeLf),
            (State::Size, b';') if self.line_bytes > 0 => {
                self.line_bytes = 0;
                self.extension(State::Extension)
            }
            (State::Size, b' ' | b'\t') if self.line_bytes > 0 => {
                self.line_bytes = 0;
                self.extension(State::ExtensionEnd)
            }
            (State::Size, _) => self.digit(byte),
            (State::ExtensionName | State::ExtensionToken | State::ExtensionQuotedEnd, b'\r') => {
                Ok(State::SizeLf)
            }
            (state, _) if state.is_extension() => match state.next_of_extension(byte) {
                Some(next) => self.extension(next),
                None => Err(HttpError::bad_request("malformed chunk extension")),
            },
            (State::SizeLf, b'\n') => Ok(self.after_size()),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(self.line(State::Size)),
            (State::DataCr | State::DataLf, _) => {
                Err(HttpError::bad_request("chunk data is not followed by CRLF"))
            }
            (State::TrailerStart, b'\r') => Ok(State::EndLf),
            (State::TrailerStart | State::TrailerName, _) if is_token_byte(byte) => {
                self.trailer(State::TrailerName)
            }
            (State::TrailerName, b':') => self.trailer(State::TrailerValue),
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            (State::TrailerValue, _) if is_value_byte(byte) => self.trailer(State::TrailerValue),
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            (State::EndLf, b'\n') => Ok(State::End),
            (State::SizeLf | State::TrailerLf | State::EndLf, _) => {
                Err(HttpError::bad_request("CR without LF"))
            }
            _ => Err(HttpError::bad_request("invalid trailer field in a chunked body")),
        }
    }

    /// Resets the counters for the next line, and returns `state`, the state at the start of this
    /// line.
    fn line(&mut self, state: State) -> State {
        (self.data_bytes, self.line_bytes) = (0, 0);
        state
    }

    /// Returns the state after the size line: data, or the trailer section if the size is 0.
    fn after_size(&mut self) -> State {
        if self.data_bytes > 0 { State::Data } else { self.line(State::TrailerStart) }
    }

    fn digit(&mut self, byte: u8) -> Result<State, HttpError> {
        const INVALID: HttpError = HttpError::bad_request("chunk size is not a hexadecimal number");
        let digit = char::from(byte).to_digit(16).ok_or(INVALID)?;
        self.line_bytes += 1;
        self.data_bytes = self.data_bytes << 4 | u64::from(digit);
        if self.line_bytes > DIGITS_MAX || i64::try_from(self.data_bytes).is_err() {
            return Err(HttpError::bad_request("chunk size is too large"));
        }
        Ok(State::Size)
    }

    /// Counts a byte of an extension, and returns `next`, the state after it.
    fn extension(&mut self, next: State) -> Result<State, HttpError> {
        self.line_bytes += 1;
        self.extensions_bytes += 1;
        if self.line_bytes > self.limits.extension_bytes_max
            || self.extensions_bytes > self.limits.extensions_bytes_max
        {
            return Err(HttpError::new(413, "chunk extensions are too long"));
        }
        Ok(next)
    }

    fn trailer(&mut self, state: State) -> Result<State, HttpError> {
        self.line_bytes += 1;
        if self.line_bytes > self.limits.trailer_bytes_max {
            return Err(HttpError::new(431, "trailer section is too long"));
        }
        Ok(state)
    }
}

/// Writes the size line of a chunk. The caller appends the data and a CRLF.
///
/// `data_bytes` must not be 0, because an empty chunk ends the body. To end the body, write
/// [`LAST_CHUNK`].
pub fn write_chunk_size(out: &mut Vec<u8>, data_bytes: u64) {
    debug_assert!(data_bytes > 0, "an empty chunk ends the body");
    let digits = data_bytes.ilog2() / 4;
    for place in (0..=digits).rev() {
        out.push(b"0123456789abcdef"[(data_bytes >> (4 * place) & 15) as usize]);
    }
    out.extend_from_slice(b"\r\n");
}

/// The last chunk and the empty trailer section.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
