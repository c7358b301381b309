//! Receives the body of a request.

use haul_http1::{Chunk, ChunkLimits, ChunkedDecoder, Framing, HttpError};

use crate::request_body::BodySender;

/// The body of a request that was not received to its end.
pub(crate) struct Receiving {
    sender: BodySender,
    left: Remaining,
}

/// The part of a body that was not received.
enum Remaining {
    Bytes(u64),
    Chunked(ChunkedDecoder),
    /// The end of the body is unknown: it is malformed or cut.
    Broken,
}

impl Receiving {
    pub(crate) fn new(framing: Framing, sender: BodySender) -> Self {
        let left = match framing {
            Framing::Length(bytes) => Remaining::Bytes(bytes),
            Framing::Chunked => Remaining::Chunked(ChunkedDecoder::new(ChunkLimits::default())),
            Framing::UntilClose => Remaining::Broken,
        };
        Self { sender, left }
    }

    /// Returns `true` if it takes more bytes now.
    pub(crate) fn has_room(&self) -> bool {
        !matches!(self.left, Remaining::Broken) && self.sender.has_room()
    }

    /// Returns `true` once, when `100 Continue` is to be sent.
    pub(crate) fn take_continue(&self) -> bool {
        self.sender.take_continue()
    }

    /// Returns `true` if the client waits for `100 Continue` before it sends the body.
    pub(crate) fn is_withheld(&self) -> bool {
        self.sender.is_withheld()
    }

    /// Takes the bytes of the body that `bytes` begins with. Returns their number, and `true` if
    /// the body is complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        let outcome = match &mut self.left {
            Remaining::Bytes(left) => Ok(take_length(&self.sender, left, bytes)),
            Remaining::Chunked(decoder) => take_chunked(&self.sender, decoder, bytes),
            Remaining::Broken => return (bytes.len(), false),
        };
        match outcome {
            Ok((taken, is_complete)) => {
                if is_complete {
                    self.sender.complete();
                }
                (taken, is_complete)
            }
            Err(_malformed) => {
                self.cut();
                (bytes.len(), false)
            }
        }
    }

    /// Ends a body that the client does not send to its end.
    pub(crate) fn cut(&mut self) {
        self.left = Remaining::Broken;
        self.sender.cut();
    }
}

fn take_length(sender: &BodySender, left: &mut u64, bytes: &[u8]) -> (usize, bool) {
    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    if taken > 0 {
        sender.push(&bytes[..taken]);
    }
    *left -= taken as u64;
    (taken, *left == 0)
}

fn take_chunked(
    sender: &BodySender,
    decoder: &mut ChunkedDecoder,
    bytes: &[u8],
) -> Result<(usize, bool), HttpError> {
    let mut taken = 0;
    loop {
        let (scanned, chunk) = decoder.scan(&bytes[taken..])?;
        taken += scanned;
        match chunk {
            Chunk::End => return Ok((taken, true)),
            Chunk::Incomplete => return Ok((taken, false)),
            Chunk::Data(data_bytes) => {
                let rest = &bytes[taken..];
                let data = usize::try_from(data_bytes).unwrap_or(usize::MAX).min(rest.len());
                if data == 0 {
                    return Ok((taken, false));
                }
                sender.push(&rest[..data]);
                decoder.advance(data as u64);
                taken += data;
            }
        }
    }
}
