//! A decoder of `aws-chunked` framing: chunk sizes, data and trailer. It does not verify the
//! signatures of chunks, but skips them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use s3s::StdError;

use crate::body::digests::Trailer;
use haul_http_engine::RequestBody;

/// The maximum length of a line with a chunk size, or of a trailer line.
const SIZE_LINE_BYTES_MAX: usize = 1024;

/// The maximum length of the trailer.
const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// An error in the framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChunkError {
    #[error("the aws-chunked body is malformed: {0}")]
    Malformed(&'static str),
    #[error("the aws-chunked body ends too early")]
    Incomplete,
}

/// The position of the decoder in the framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Data(u64),
    DataEnd,
    Trailer,
    End,
}

/// An incremental decoder. Pure.
#[derive(Debug)]
struct Decoder {
    state: State,
    line: Vec<u8>,
    trailer: HeaderMap,
    trailer_bytes: usize,
}

impl Decoder {
    fn new() -> Self {
        let trailer = HeaderMap::new();
        Self { state: State::Size, line: Vec::new(), trailer, trailer_bytes: 0 }
    }

    /// Consumes input and returns the next data. `None` if the rest of the input contains no data.
    fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, ChunkError> {
        while !input.is_empty() {
            match self.state {
                State::Data(0) => self.state = State::DataEnd,
                State::Data(left) => {
                    let here = usize::try_from(left).map_or(input.len(), |n| n.min(input.len()));
                    self.state = State::Data(left - here as u64);
                    return Ok(Some(input.split_to(here)));
                }
                State::End => {
                    return Err(ChunkError::Malformed("bytes follow the end of the body"));
                }
                State::Size | State::DataEnd | State::Trailer => {
                    if let Some(line) = self.line(input)? {
                        self.apply_line(&line)?;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Consumes and returns a line without its terminator; `None` if the input ends within the
    /// line.
    fn line(&mut self, input: &mut Bytes) -> Result<Option<Vec<u8>>, ChunkError> {
        let end = input.iter().position(|&byte| byte == b'\n');
        let here = end.unwrap_or(input.len());
        if self.line.len() + here > SIZE_LINE_BYTES_MAX {
            return Err(ChunkError::Malformed("a line is too long"));
        }
        self.line.extend_from_slice(&input[..here]);
        input.advance(end.map_or(here, |end| end + 1));
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.line);
        if line.pop_if(|byte| *byte == b'\r').is_none() && self.state != State::Trailer {
            return Err(ChunkError::Malformed("a line does not end with CR LF"));
        }
        Ok(Some(line))
    }

    fn apply_line(&mut self, line: &[u8]) -> Result<(), ChunkError> {
        self.state = match (self.state, line) {
            (State::DataEnd, []) => State::Size,
            (State::DataEnd, _) => return Err(ChunkError::Malformed("a chunk exceeds its size")),
            (State::Trailer, []) => State::End,
            (State::Trailer, _) => {
                self.apply_trailer_line(line)?;
                State::Trailer
            }
            (_, _) => match chunk_bytes(line)? {
                0 => State::Trailer,
                bytes => State::Data(bytes),
            },
        };
        Ok(())
    }

    fn apply_trailer_line(&mut self, line: &[u8]) -> Result<(), ChunkError> {
        const ERROR: ChunkError = ChunkError::Malformed("a trailer line is not a header field");
        self.trailer_bytes += line.len();
        if self.trailer_bytes > TRAILER_BYTES_MAX {
            return Err(ChunkError::Malformed("the trailer is too long"));
        }
        let colon = line.iter().position(|&byte| byte == b':').ok_or(ERROR)?;
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        let (Ok(name), Ok(value)) = (name, value) else { return Err(ERROR) };
        self.trailer.append(name, value);
        Ok(())
    }

    /// Returns the trailer at the end of the input, or an error if the body is incomplete. Accepts
    /// a body without the empty line after the trailer, which some clients omit.
    fn finish(&mut self) -> Result<HeaderMap, ChunkError> {
        if self.state == State::Trailer && !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.apply_trailer_line(line.trim_ascii())?;
        }
        match self.state {
            State::Trailer | State::End => Ok(std::mem::take(&mut self.trailer)),
            _ => Err(ChunkError::Incomplete),
        }
    }
}

/// Parses the size in a line such as `10000;chunk-signature=…`.
fn chunk_bytes(line: &[u8]) -> Result<u64, ChunkError> {
    const ERROR: ChunkError = ChunkError::Malformed("a chunk size is not a hexadecimal number");
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(ERROR);
    }
    let digits = std::str::from_utf8(digits).map_err(|_not_text| ERROR)?;
    u64::from_str_radix(digits, 16).map_err(|_too_long| ERROR)
}

/// A request body without its framing. It stores the trailer in `trailer` at its end.
pub(crate) struct DecodedBody {
    framed: RequestBody,
    decoder: Decoder,
    input: Bytes,
    trailer: Trailer,
}

impl DecodedBody {
    pub(crate) fn new(framed: RequestBody, trailer: Trailer) -> Self {
        Self { framed, decoder: Decoder::new(), input: Bytes::new(), trailer }
    }
}

impl Body for DecodedBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let this = self.get_mut();
        loop {
            match this.decoder.next(&mut this.input) {
                Ok(Some(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
            match ready!(Pin::new(&mut this.framed).poll_frame(context)) {
                Some(Ok(frame)) => this.input = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => {
                    return Poll::Ready(match this.decoder.finish() {
                        Ok(trailer) => {
                            // A body may be polled again after its end, when the trailer is already
                            // set.
                            this.trailer.0.get_or_init(|| trailer);
                            None
                        }
                        Err(error) => Some(Err(error.into())),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `body` given in pieces of `step` bytes.
    fn decode(body: &str, step: usize) -> Result<(Vec<u8>, HeaderMap), ChunkError> {
        let mut decoder = Decoder::new();
        let mut data = Vec::new();
        for piece in body.as_bytes().chunks(step) {
            let mut input = Bytes::copy_from_slice(piece);
            while let Some(some) = decoder.next(&mut input)? {
                data.extend_from_slice(&some);
            }
        }
        Ok((data, decoder.finish()?))
    }

    #[test]
    fn data_and_trailer_are_decoded_from_pieces_of_any_size() {
        let signed = "5;chunk-signature=ab\r\nhello\r\n1;chunk-signature=cd\r\n!\r\n\
                      0;chunk-signature=ef\r\n\r\n";
        let trailing = "6\r\nhello!\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\
                        x-amz-trailer-signature: ab\r\n\r\n";
        let unterminated = "6\r\nhello!\r\n0\r\nx-amz-checksum-crc32:AAAA";
        for (body, headers) in [(signed, 0), (trailing, 2), (unterminated, 1)] {
            for step in [1, 2, 3, 7, body.len()] {
                let (data, trailer) = decode(body, step).unwrap();
                assert_eq!(data, b"hello!", "{step}");
                assert_eq!(trailer.len(), headers);
                if headers > 0 {
                    assert_eq!(trailer["x-amz-checksum-crc32"], "AAAA");
                }
            }
        }
    }

    #[test]
    fn truncated_body_is_incomplete() {
        for body in ["", "5", "5\r\n", "5\r\nhell", "5\r\nhello", "5\r\nhello\r\n"] {
            assert_eq!(decode(body, 3).unwrap_err(), ChunkError::Incomplete, "{body:?}");
        }
    }

    #[test]
    fn malformed_bodies_are_refused() {
        let long_line = "1".repeat(2000);
        let long_trailer = format!("0\r\n{}\r\n", "a: b".to_owned() + &"c".repeat(900) + "\r\n")
            + &format!("a:{}\r\n", "c".repeat(900)).repeat(10);
        for body in [
            "x\r\n",
            "\r\n",
            "-1\r\n",
            "5\nhello\r\n",
            "5\r\nhello!\r\n",
            "0\r\n\r\nmore",
            "0\r\nno header\r\n",
            "11111111111111111\r\n",
            &long_line,
            &long_trailer,
        ] {
            let error = decode(body, 5).unwrap_err();
            assert!(matches!(error, ChunkError::Malformed(_)), "{body:.40}");
        }
    }
}
