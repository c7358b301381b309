//! Reads the content of an object in pieces.

use std::ops::Range;

use bytes::Bytes;
use haul_file_store::Object;

use crate::error::ReadError;

/// The maximum length of a piece, in bytes.
pub const PIECE_BYTES: usize = 1 << 20;

/// Returns an iterator over the bytes of the object in `range`, in order and in pieces of up to
/// [`PIECE_BYTES`]. The iterator ends after the first error, which is [`ReadError::Encoded`] for an
/// object whose content is encrypted.
pub fn pieces(
    object: &Object,
    range: Range<u64>,
) -> impl Iterator<Item = Result<Bytes, ReadError>> + '_ {
    let Range { start: mut at, end } = range;
    std::iter::from_fn(move || {
        let bytes_max = match end.checked_sub(at)? {
            0 => return None,
            left => usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES),
        };
        let piece = match object.read(at, bytes_max) {
            Ok(_) if object.info.etag.is_encoded() => Err(ReadError::Encoded),
            Ok(bytes) if bytes.is_empty() => Err(ReadError::UnexpectedEnd { at }),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(error.into()),
        };
        at = piece.as_ref().map_or(end, |bytes| at + bytes.len() as u64);
        Some(piece)
    })
}
