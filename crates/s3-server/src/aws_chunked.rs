//! The framing `aws-chunked`, as far as a server needs it that does not check signatures: sizes,
//! data, trailer. The signatures in it are read over.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use s3s::StdError;

use crate::digests::Trailer;
use haul_http_engine::RequestBody;

/// The longest line that tells the size of a chunk.
const SIZE_LINE_BYTES_MAX: usize = 1024;

/// The most bytes of all lines of the trailer.
const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// What is wrong with a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChunkError {
    #[error("the aws-chunked body is malformed: {0}")]
    Malformed(&'static str),
    #[error("the aws-chunked body ends too early")]
    Incomplete,
}

/// Where in the framing we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Data(u64),
    DataEnd,
    Trailer,
    End,
}

/// Takes the framing away from bytes as they come. Pure.
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

    /// The next piece of data in `input`, which is consumed up to its end; `None` once there is
    /// nothing more in it.
    fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, ChunkError> {
        while !input.is_empty() {
            match self.state {
                State::Data(0) => self.state = State::DataEnd,
                State::Data(left) => {
                    let here = usize::try_from(left).map_or(input.len(), |n| n.min(input.len()));
                    self.state = State::Data(left - here as u64);
                    return Ok(Some(input.split_to(here)));
                }
                State::End => return Err(ChunkError::Malformed("bytes follow its end")),
                State::Size | State::DataEnd | State::Trailer => {
                    if let Some(line) = self.line(input)? {
                        self.take_line(&line)?;
                    }
                }
            }
        }
        Ok(None)
    }

    /// The rest of a line without its end, or `None` if the line goes on past the input.
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

    fn take_line(&mut self, line: &[u8]) -> Result<(), ChunkError> {
        self.state = match (self.state, line) {
            (State::DataEnd, []) => State::Size,
            (State::DataEnd, _) => return Err(ChunkError::Malformed("a chunk is too long")),
            (State::Trailer, []) => State::End,
            (State::Trailer, _) => {
                self.take_trailer(line)?;
                State::Trailer
            }
            (_, _) => match chunk_bytes(line)? {
                0 => State::Trailer,
                bytes => State::Data(bytes),
            },
        };
        Ok(())
    }

    fn take_trailer(&mut self, line: &[u8]) -> Result<(), ChunkError> {
        const WHY: ChunkError = ChunkError::Malformed("a line of the trailer is no header");
        self.trailer_bytes += line.len();
        if self.trailer_bytes > TRAILER_BYTES_MAX {
            return Err(ChunkError::Malformed("the trailer is too long"));
        }
        let colon = line.iter().position(|&byte| byte == b':').ok_or(WHY)?;
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        let (Ok(name), Ok(value)) = (name, value) else { return Err(WHY) };
        self.trailer.append(name, value);
        Ok(())
    }

    /// The trailer, once the body has ended where it may. Some clients leave out the last, empty
    /// line.
    fn end(&mut self) -> Result<HeaderMap, ChunkError> {
        if self.state == State::Trailer && !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_trailer(line.trim_ascii())?;
        }
        match self.state {
            State::Trailer | State::End => Ok(std::mem::take(&mut self.trailer)),
            _ => Err(ChunkError::Incomplete),
        }
    }
}

/// The size in a line such as `10000;chunk-signature=…`.
fn chunk_bytes(line: &[u8]) -> Result<u64, ChunkError> {
    const WHY: ChunkError = ChunkError::Malformed("the size of a chunk is no hexadecimal number");
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(WHY);
    }
    let digits = std::str::from_utf8(digits).map_err(|_not_text| WHY)?;
    u64::from_str_radix(digits, 16).map_err(|_too_long| WHY)
}

/// The body of a request without its framing. The trailer is left in the given place.
pub(crate) struct Decoded {
    framed: RequestBody,
    decoder: Decoder,
    input: Bytes,
    trailer: Trailer,
}

impl Decoded {
    pub(crate) fn new(framed: RequestBody, trailer: Trailer) -> Self {
        Self { framed, decoder: Decoder::new(), input: Bytes::new(), trailer }
    }
}

impl Body for Decoded {
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
                    return Poll::Ready(match this.decoder.end() {
                        Ok(trailer) => {
                            // Polled again after its end, the body finds it already set.
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
        Ok((data, decoder.end()?))
    }

    #[test]
    fn data_and_trailer_come_out_however_they_arrive() {
        let signed = "5;chunk-signature=ab\r\nhello\r\n1;chunk-signature=cd\r\n!\r\n\
                      0;chunk-signature=ef\r\n\r\n";
        let trailing = "6\r\nhello!\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\
                        x-amz-trailer-signature: ab\r\n\r\n";
        let cut_short = "6\r\nhello!\r\n0\r\nx-amz-checksum-crc32:AAAA";
        for (body, headers) in [(signed, 0), (trailing, 2), (cut_short, 1)] {
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
    fn a_body_that_ends_too_early_is_incomplete() {
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
