//! Decodes `aws-chunked` framing: chunk sizes, data and trailer. Verifies the signatures of chunks
//! and trailer, if the body has them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame};

use crate::auth::chunks::ChunkVerifier;
use crate::body::error::{BodyError, CHUNK_BYTES_MIN, ChunkError};
use crate::request::fields::Fields;
use crate::request::trailer::Trailer;
use haul_http_engine::RequestBody;

/// The maximum length of a chunk-size line or a trailer line, in bytes.
const SIZE_LINE_BYTES_MAX: usize = 1024;

/// The maximum length of the trailer, in bytes.
const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// The trailer field with the trailer's signature.
const SIGNATURE: &str = "x-amz-trailer-signature";

/// The length of a signature, in hexadecimal digits.
const SIGNATURE_BYTES: usize = 64;

#[derive(Debug)]
pub(crate) enum Signatures {
    /// No signatures, or signatures that a server without keys ignores.
    Unverified,
    /// Each chunk has a signature, and possibly the trailer.
    Of { verifier: Box<ChunkVerifier>, with_trailer: bool },
}

/// The decoder's position in the framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Data(u64),
    DataEnd,
    Trailer,
    /// An empty line may follow: minio-go ends an unsigned trailer with two.
    End,
    AfterEnd,
}

/// An incremental decoder. Pure.
#[derive(Debug)]
struct Decoder {
    state: State,
    line: Vec<u8>,
    signatures: Signatures,
    /// The signature that the present chunk declares.
    signature: Vec<u8>,
    /// `true` after a chunk that is too short to be followed by another one.
    is_last: bool,
    trailer: Fields,
    trailer_bytes: usize,
    /// The trailer fields, as they are signed.
    signed: String,
}

impl Decoder {
    fn new(signatures: Signatures) -> Self {
        Self {
            state: State::Size,
            line: Vec::new(),
            signatures,
            signature: Vec::new(),
            is_last: false,
            trailer: Fields::default(),
            trailer_bytes: 0,
            signed: String::new(),
        }
    }

    /// Consumes input and returns the next data; `None` if the rest of the input has no data.
    fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, ChunkError> {
        while !input.is_empty() {
            match self.state {
                State::Data(0) => self.state = State::DataEnd,
                State::Data(left) => {
                    let here = usize::try_from(left).map_or(input.len(), |n| n.min(input.len()));
                    self.state = State::Data(left - here as u64);
                    let data = input.split_to(here);
                    if let Signatures::Of { verifier, .. } = &mut self.signatures {
                        verifier.update(&data);
                    }
                    return Ok(Some(data));
                }
                State::AfterEnd => {
                    return Err(ChunkError::Malformed("bytes follow the end of the body"));
                }
                State::Size | State::DataEnd | State::Trailer | State::End => {
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
            (State::DataEnd, []) => {
                self.end_chunk()?;
                State::Size
            }
            (State::DataEnd, _) => return Err(ChunkError::Malformed("a chunk exceeds its size")),
            // A signed trailer may have an empty line before the signature.
            (State::Trailer, []) if self.awaits_signature() => State::Trailer,
            (State::Trailer, []) => {
                self.end_trailer()?;
                State::End
            }
            (State::Trailer, _) => {
                self.apply_trailer_line(line)?;
                State::Trailer
            }
            (State::End, []) => State::AfterEnd,
            (State::End, _) => {
                return Err(ChunkError::Malformed("bytes follow the end of the body"));
            }
            (_, _) => self.begin_chunk(line)?,
        };
        Ok(())
    }

    /// Begins a chunk with a line such as `10000;chunk-signature=…`.
    fn begin_chunk(&mut self, line: &[u8]) -> Result<State, ChunkError> {
        const ERROR: ChunkError = ChunkError::Malformed("a chunk size is not a hexadecimal number");
        let text = str::from_utf8(line).map_err(|_not_text| ERROR)?;
        let (digits, extension) = text.split_once(';').unwrap_or((text, ""));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ERROR);
        }
        let bytes = u64::from_str_radix(digits, 16).map_err(|_too_long| ERROR)?;
        if matches!(self.signatures, Signatures::Of { .. }) {
            let signature = extension.strip_prefix("chunk-signature=");
            let signature = signature.filter(|signature| signature.len() == SIGNATURE_BYTES);
            let signature = signature.ok_or(ChunkError::Malformed("a chunk has no signature"))?;
            self.signature = signature.into();
        }
        if bytes == 0 {
            self.end_chunk()?;
            return Ok(State::Trailer);
        }
        if self.is_last {
            return Err(ChunkError::Short);
        }
        self.is_last = bytes < CHUNK_BYTES_MIN;
        Ok(State::Data(bytes))
    }

    /// Verifies the signature of the chunk that has ended.
    fn end_chunk(&mut self) -> Result<(), ChunkError> {
        let is_right = match &mut self.signatures {
            Signatures::Of { verifier, .. } => verifier.ends_chunk(&self.signature),
            Signatures::Unverified => true,
        };
        if is_right { Ok(()) } else { Err(ChunkError::Signature) }
    }

    fn apply_trailer_line(&mut self, line: &[u8]) -> Result<(), ChunkError> {
        const ERROR: ChunkError = ChunkError::Trailer("a line is not a field");
        self.trailer_bytes += line.len();
        if self.trailer_bytes > TRAILER_BYTES_MAX {
            return Err(ChunkError::Malformed("the trailer is too long"));
        }
        if matches!(self.signatures, Signatures::Of { with_trailer: false, .. }) {
            return Err(ChunkError::Malformed("a trailer follows, whose signature is missing"));
        }
        let line = str::from_utf8(line).map_err(|_not_text| ERROR)?;
        let (name, value) = line.split_once(':').ok_or(ERROR)?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        if name.is_empty() || self.trailer.has(SIGNATURE) || self.trailer.has(&name) {
            return Err(ERROR);
        }
        if name != SIGNATURE {
            self.signed += &format!("{name}:{value}\n");
        }
        self.trailer.push(name.as_bytes(), value.as_bytes());
        Ok(())
    }

    /// Returns `true` if the trailer's signature must follow.
    fn awaits_signature(&self) -> bool {
        let is_signed = matches!(self.signatures, Signatures::Of { with_trailer: true, .. });
        is_signed && !self.signed.is_empty() && !self.trailer.has(SIGNATURE)
    }

    /// Verifies the trailer's signature.
    fn end_trailer(&mut self) -> Result<(), ChunkError> {
        let Signatures::Of { verifier, with_trailer: true } = &mut self.signatures else {
            return Ok(());
        };
        let signature = match self.trailer.first(SIGNATURE) {
            Some(signature) if signature.len() == SIGNATURE_BYTES => signature,
            None if self.signed.is_empty() => return Err(ChunkError::Trailer("it has no field")),
            _ => return Err(ChunkError::Malformed("the trailer has no signature")),
        };
        match verifier.ends_trailer(&self.signed, signature) {
            true => Ok(()),
            false => Err(ChunkError::Signature),
        }
    }

    /// Returns the trailer at the end of the input, or an error if the body is incomplete.
    fn finish(&mut self) -> Result<Fields, ChunkError> {
        match self.state {
            State::End | State::AfterEnd if self.line.is_empty() => {
                Ok(std::mem::take(&mut self.trailer))
            }
            _ => Err(ChunkError::Incomplete),
        }
    }
}

/// A request body without its framing. At the body's end, it stores the trailer in `trailer`.
#[derive(Debug)]
pub(crate) struct DecodedBody {
    framed: RequestBody,
    decoder: Decoder,
    input: Bytes,
    trailer: Trailer,
}

impl DecodedBody {
    pub(crate) fn new(framed: RequestBody, signatures: Signatures, trailer: Trailer) -> Self {
        Self { framed, decoder: Decoder::new(signatures), input: Bytes::new(), trailer }
    }
}

impl Body for DecodedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        loop {
            match this.decoder.next(&mut this.input) {
                Ok(Some(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
            match ready!(Pin::new(&mut this.framed).poll_frame(context)) {
                Some(Ok(frame)) => this.input = frame.into_data().unwrap_or_default(),
                Some(Err(_cut)) => return Poll::Ready(Some(Err(BodyError::Cut))),
                None if this.trailer.is_set() => return Poll::Ready(None),
                None => {
                    return Poll::Ready(match this.decoder.finish() {
                        Ok(trailer) => {
                            // A body may be polled again after its end.
                            this.trailer.set(trailer);
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

    /// Decodes `body` in pieces of `step` bytes.
    fn decode(body: &str, step: usize) -> Result<(Vec<u8>, Fields), ChunkError> {
        let mut decoder = Decoder::new(Signatures::Unverified);
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
        let signed = "6;chunk-signature=ab\r\nhello!\r\n0;chunk-signature=ef\r\n\r\n";
        let trailing = "6\r\nhello!\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\
                        x-amz-trailer-signature: ab\r\n\r\n";
        let minio_go = "6\r\nhello!\r\n0\r\nx-amz-checksum-crc32:AAAA\n\r\n\r\n";
        for (body, fields) in [(signed, 0), (trailing, 2), (minio_go, 1)] {
            for step in [1, 2, 3, 7, body.len()] {
                let (data, trailer) = decode(body, step).unwrap();
                assert_eq!(data, b"hello!", "{step}");
                assert_eq!(trailer.iter().count(), fields);
                assert_eq!(trailer.text("x-amz-checksum-crc32"), (fields > 0).then_some("AAAA"));
            }
        }
    }

    #[test]
    fn truncated_body_is_incomplete() {
        for body in [
            "",
            "5",
            "5\r\n",
            "5\r\nhell",
            "5\r\nhello",
            "5\r\nhello\r\n",
            "5\r\nhello\r\n0\r\n",
            "5\r\nhello\r\n0\r\na: b\r\n",
            "5\r\nhello\r\n0\r\n\r\n\r",
        ] {
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
            "0\r\n\r\nmore\r\n",
            "0\r\n\r\n\r\nmore",
            "0\r\n\r\n\r\n\r\n",
            "11111111111111111\r\n",
            &long_line,
            &long_trailer,
        ] {
            let error = decode(body, 5).unwrap_err();
            assert!(matches!(error, ChunkError::Malformed(_)), "{body:.40}");
        }
        for body in ["0\r\nno field\r\n", "0\r\n:a\r\n", "0\r\na:b\r\na:c\r\n"] {
            let error = decode(body, 5).unwrap_err();
            assert!(matches!(error, ChunkError::Trailer(_)), "{body}");
        }
    }

    #[test]
    fn only_the_last_chunk_may_be_short() {
        let chunk = |bytes: usize| format!("{bytes:x}\r\n{}\r\n", "a".repeat(bytes));
        for (chunks, is_valid) in [
            (&[8192, 8192, 100][..], true),
            (&[100], true),
            (&[10_000, 8192], true),
            (&[8191, 1], false),
            (&[8192, 10, 8192], false),
        ] {
            let body: String = chunks.iter().map(|bytes| chunk(*bytes)).collect();
            let outcome = decode(&(body + "0\r\n\r\n"), 1000);
            match is_valid {
                true => assert_eq!(outcome.unwrap().0.len(), chunks.iter().sum::<usize>()),
                false => assert_eq!(outcome.unwrap_err(), ChunkError::Short, "{chunks:?}"),
            }
        }
    }
}
