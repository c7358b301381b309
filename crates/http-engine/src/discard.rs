//! Discards the body of a request that was answered without it.

use haul_http1::{Chunk, ChunkLimits, ChunkedDecoder, HttpError};

/// What is left of the body of the last request.
#[derive(Debug, Default)]
pub(crate) enum Discarding {
    /// Nothing.
    #[default]
    Done,
    /// This many bytes.
    Length(u64),
    /// A chunked body, whose chunks and framing may have this many more bytes.
    Chunked(Box<ChunkedDecoder>, u64),
}

impl Discarding {
    /// A body of a declared length.
    pub(crate) fn length(bytes: u64) -> Self {
        if bytes == 0 { Self::Done } else { Self::Length(bytes) }
    }

    /// A chunked body of at most `bytes_max` bytes, framing included.
    pub(crate) fn chunked(bytes_max: u64) -> Self {
        Self::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default())), bytes_max)
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// Discards the body at the start of `bytes`; returns the number of bytes discarded.
    ///
    /// # Errors
    /// The framing of a chunked body is invalid, or the body is too long: where it ends is unknown.
    pub(crate) fn discard(&mut self, bytes: &[u8]) -> Result<usize, HttpError> {
        match self {
            Self::Done => Ok(0),
            Self::Length(left) => {
                let discarded = (bytes.len() as u64).min(*left);
                *self = Self::length(*left - discarded);
                Ok(usize::try_from(discarded).unwrap_or(bytes.len()))
            }
            Self::Chunked(decoder, left) => {
                let (discarded, is_over) = discard_chunks(decoder, bytes)?;
                match left.checked_sub(discarded as u64) {
                    None => return Err(HttpError::new(413, "the body is too long")),
                    Some(_) if is_over => *self = Self::Done,
                    Some(rest) => *left = rest,
                }
                Ok(discarded)
            }
        }
    }
}

/// Returns the number of bytes that belong to the body, and whether it is over.
fn discard_chunks(decoder: &mut ChunkedDecoder, bytes: &[u8]) -> Result<(usize, bool), HttpError> {
    let mut at = 0;
    loop {
        let (framing, part) = decoder.scan(&bytes[at..])?;
        at += framing;
        match part {
            Chunk::End => return Ok((at, true)),
            Chunk::Incomplete => return Ok((at, false)),
            Chunk::Data(data_bytes) => {
                let here = data_bytes.min((bytes.len() - at) as u64);
                decoder.advance(here);
                at += usize::try_from(here).unwrap_or(0);
                if at == bytes.len() {
                    return Ok((at, false));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_discarded_in_pieces_of_any_length() {
        let chunked = b"5;a=b\r\nhello\r\n1\r\nx\r\n0\r\nt: v\r\n\r\n";
        for (new, body) in [
            ((|| Discarding::length(7)) as fn() -> Discarding, &b"content"[..]),
            (|| Discarding::chunked(64), &chunked[..]),
            (|| Discarding::chunked(64), b"0\r\n\r\n"),
        ] {
            let all = [body, b"GET"].concat();
            for step in 1..all.len() {
                let (mut discarding, mut at) = (new(), 0);
                while !discarding.is_done() {
                    let end = all.len().min(at + step);
                    at += discarding.discard(&all[at..end]).unwrap();
                }
                assert_eq!(at, body.len(), "{step}");
                assert_eq!(discarding.discard(b"GET"), Ok(0));
            }
        }
        assert!(Discarding::length(0).is_done());
    }

    #[test]
    fn body_without_an_end_is_an_error() {
        let mut invalid = Discarding::chunked(64);
        assert_eq!(invalid.discard(b"xyz\r\n").unwrap_err().status, 400);
        let mut long = Discarding::chunked(64);
        let chunk = [b"40\r\n", &[7; 64][..], b"\r\n"].concat();
        assert_eq!(long.discard(&chunk).unwrap_err().status, 413);
    }
}
