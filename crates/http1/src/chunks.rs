//! The frame of a chunked body: says how many bytes of data follow, and leaves those alone.

use crate::fields::{is_token_byte, is_value_byte};
use crate::limits::ChunkLimits;
use crate::refused::Refused;

/// What comes next in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    /// Data: this many bytes of the chunk are still to come. Take them by whatever way, say how
    /// many they were to [`Chunks::passed`], and scan on after them.
    Data(u64),
    /// More bytes are needed.
    Unfinished,
    /// The body has ended. What follows is not of this message.
    End,
}

/// Reads the frame of a chunked body: sizes, extensions and trailers, of which only sizes count.
///
/// ```
/// use haul_http1::{Chunk, ChunkLimits, Chunks};
///
/// let mut chunks = Chunks::new(ChunkLimits::default());
/// let body = b"5\r\nhello\r\n0\r\n\r\nGET";
/// assert_eq!(chunks.scan(body), Ok((3, Chunk::Data(5))));
/// chunks.passed(5); // the data may never have been in memory
/// assert_eq!(chunks.scan(&body[8..]), Ok((7, Chunk::End)));
/// ```
#[derive(Debug, Clone)]
pub struct Chunks {
    at: At,
    limits: ChunkLimits,
    /// Of the chunk, while its size is read; then what is left of its data.
    data_bytes: u64,
    /// Digits of the size, or bytes of extension or trailer.
    line_bytes: usize,
    /// Extensions of all chunks.
    extensions_bytes: usize,
}

/// Which byte is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Size,
    Extension,
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

/// As many hexadecimal digits as 2^63 - 1 has.
const DIGITS_MAX: usize = 16;

impl Chunks {
    /// At the first byte of a body.
    pub const fn new(limits: ChunkLimits) -> Self {
        Self { at: At::Size, limits, data_bytes: 0, line_bytes: 0, extensions_bytes: 0 }
    }

    /// Reads on in `bytes`, which follow what was read and passed before: how many of them belong
    /// to the frame, and what comes after these. All do where more are needed.
    ///
    /// # Errors
    /// They are no frame of chunks, or beyond a limit. Where the body ends is not known then.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<(usize, Chunk), Refused> {
        for (read, byte) in bytes.iter().enumerate() {
            match self.at {
                At::Data => return Ok((read, Chunk::Data(self.data_bytes))),
                At::End => return Ok((read, Chunk::End)),
                _ => self.at = self.next(*byte)?,
            }
        }
        let next = match self.at {
            At::Data => Chunk::Data(self.data_bytes),
            At::End => Chunk::End,
            _ => Chunk::Unfinished,
        };
        Ok((bytes.len(), next))
    }

    /// Takes note that `data_bytes` of the data were passed on, no more than were left.
    pub fn passed(&mut self, data_bytes: u64) {
        debug_assert!(self.at == At::Data && data_bytes <= self.data_bytes, "{self:?}");
        if self.at == At::Data {
            self.data_bytes = self.data_bytes.saturating_sub(data_bytes);
            if self.data_bytes == 0 {
                self.at = At::DataCr;
            }
        }
    }

    fn next(&mut self, byte: u8) -> Result<At, Refused> {
        match (self.at, byte) {
            (At::Size, b'\r') if self.line_bytes > 0 => Ok(At::SizeLf),
            (At::Size, b';') if self.line_bytes > 0 => self.extension(),
            (At::Size, _) => self.digit(byte),
            (At::Extension, b'\r') => Ok(At::SizeLf),
            (At::Extension, b'\t' | b' '..=b'~') => self.extension(),
            (At::Extension, _) => Err(Refused::bad("an extension of a chunk has a wrong byte")),
            (At::SizeLf, b'\n') => Ok(self.begun()),
            (At::DataCr, b'\r') => Ok(At::DataLf),
            (At::DataLf, b'\n') => Ok(self.line(At::Size)),
            (At::DataCr | At::DataLf, _) => Err(Refused::bad("a chunk is longer than it says")),
            (At::TrailerStart, b'\r') => Ok(At::EndLf),
            (At::TrailerStart | At::TrailerName, _) if is_token_byte(byte) => {
                self.trailer(At::TrailerName)
            }
            (At::TrailerName, b':') => self.trailer(At::TrailerValue),
            (At::TrailerValue, b'\r') => Ok(At::TrailerLf),
            (At::TrailerValue, _) if is_value_byte(byte) => self.trailer(At::TrailerValue),
            (At::TrailerLf, b'\n') => Ok(At::TrailerStart),
            (At::EndLf, b'\n') => Ok(At::End),
            (At::SizeLf | At::TrailerLf | At::EndLf, _) => Err(Refused::bad("a CR without LF")),
            _ => Err(Refused::bad("a trailer of a chunked body is no field")),
        }
    }

    /// The next line, or what stands at its place.
    fn line(&mut self, at: At) -> At {
        (self.data_bytes, self.line_bytes) = (0, 0);
        at
    }

    /// The line with the size has ended.
    fn begun(&mut self) -> At {
        if self.data_bytes > 0 { At::Data } else { self.line(At::TrailerStart) }
    }

    fn digit(&mut self, byte: u8) -> Result<At, Refused> {
        const WRONG: Refused = Refused::bad("the size of a chunk is no hexadecimal number");
        let digit = char::from(byte).to_digit(16).ok_or(WRONG)?;
        self.line_bytes += 1;
        self.data_bytes = self.data_bytes << 4 | u64::from(digit);
        if self.line_bytes > DIGITS_MAX || i64::try_from(self.data_bytes).is_err() {
            return Err(Refused::bad("the size of a chunk is too large"));
        }
        Ok(At::Size)
    }

    fn extension(&mut self) -> Result<At, Refused> {
        if self.at == At::Size {
            self.line_bytes = 0;
        }
        self.line_bytes += 1;
        self.extensions_bytes += 1;
        if self.line_bytes > self.limits.extension_bytes_max
            || self.extensions_bytes > self.limits.extensions_bytes_max
        {
            return Err(Refused::new(413, "too long extensions of chunks"));
        }
        Ok(At::Extension)
    }

    fn trailer(&mut self, at: At) -> Result<At, Refused> {
        self.line_bytes += 1;
        if self.line_bytes > self.limits.trailer_bytes_max {
            return Err(Refused::new(431, "too long trailers"));
        }
        Ok(at)
    }
}

/// Writes the line before `data_bytes` of data, which must be followed by CR and LF.
///
/// An empty chunk would be the last: see [`LAST_CHUNK`].
pub fn write_chunk_size(out: &mut Vec<u8>, data_bytes: u64) {
    debug_assert!(data_bytes > 0, "this would end the body");
    let digits = data_bytes.ilog2() / 4;
    for place in (0..=digits).rev() {
        out.push(b"0123456789abcdef"[(data_bytes >> (4 * place) & 15) as usize]);
    }
    out.extend_from_slice(b"\r\n");
}

/// What a chunked body without trailers ends with.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
