//! Decoders of chunked bodies: the one of `haul-http1`, fed in pieces, and a simple one that has
//! the whole body.

use haul_http1::{Chunk, ChunkLimits, ChunkedDecoder, HttpError, LAST_CHUNK, write_chunk_size};

/// The data of a body, and the number of bytes that it takes.
pub(crate) type Decoded = (Vec<u8>, usize);

/// Decodes a body that arrives in pieces of `piece_bytes` bytes; `None` if it is incomplete.
///
/// # Errors
/// Fails as the decoder does.
///
/// # Panics
/// If the decoder returns an impossible result.
pub(crate) fn decode(
    body: &[u8],
    piece_bytes: usize,
    limits: ChunkLimits,
) -> Result<Option<Decoded>, HttpError> {
    let mut chunks = ChunkedDecoder::new(limits);
    let (mut data, mut at) = (Vec::new(), 0);
    loop {
        let piece = &body[at..body.len().min(at + piece_bytes)];
        let (frame_bytes, chunk) = chunks.scan(piece)?;
        at += frame_bytes;
        match chunk {
            Chunk::End => return Ok(Some((data, at))),
            Chunk::Data(left_bytes) => {
                assert!(left_bytes > 0, "an empty chunk");
                let left = usize::try_from(left_bytes).unwrap_or(usize::MAX).min(piece_bytes);
                let some = &body[at..body.len().min(at.saturating_add(left))];
                if some.is_empty() {
                    return Ok(None);
                }
                data.extend_from_slice(some);
                at += some.len();
                chunks.advance(some.len() as u64);
            }
            Chunk::Incomplete => {
                assert_eq!(frame_bytes, piece.len(), "incomplete framing is consumed");
                if at == body.len() {
                    return Ok(None);
                }
            }
        }
    }
}

/// Decodes a whole body that is known to be valid.
#[must_use]
pub(crate) fn decode_simply(body: &[u8]) -> Option<Decoded> {
    let (mut data, mut at) = (Vec::new(), 0);
    loop {
        let line = line(&body[at..])?;
        at += line.len() + 2;
        let digits = line.split(|byte| *byte == b';').next()?;
        let size = usize::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        if size == 0 {
            break;
        }
        data.extend_from_slice(body.get(at..at.checked_add(size)?)?);
        at += size + 2;
    }
    // Trailer lines, and an empty line.
    loop {
        let line = line(&body[at..])?;
        at += line.len() + 2;
        if line.is_empty() {
            return Some((data, at));
        }
    }
}

fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some(&bytes[..end])
}

/// Encodes data in chunks of at most `chunk_bytes` bytes.
#[must_use]
pub(crate) fn encode(data: &[u8], chunk_bytes: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for chunk in data.chunks(chunk_bytes) {
        write_chunk_size(&mut body, chunk.len() as u64);
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(LAST_CHUNK);
    body
}

/// Decodes a body in chunks of the S3 API (`aws-chunked`); `None` if a chunk is malformed. The
/// bytes after the last chunk are not checked.
#[must_use]
pub(crate) fn decode_aws(body: &[u8]) -> Option<Vec<u8>> {
    let (mut data, mut rest) = (Vec::new(), body);
    loop {
        let size_line = line(rest)?;
        rest = &rest[size_line.len() + 2..];
        let digits = size_line.split(|byte| *byte == b';').next()?;
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
        let digits = str::from_utf8(digits).ok().filter(|_| is_number)?;
        let size = usize::from_str_radix(digits, 16).ok()?;
        if size == 0 {
            return Some(data);
        }
        let (chunk, after) = rest.split_at_checked(size)?;
        data.extend_from_slice(chunk);
        rest = after.strip_prefix(b"\r\n")?;
    }
}
