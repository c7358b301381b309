//! Copies content within the server; decrypts and encrypts it if necessary.

use std::ops::Range;

use md5::{Digest as _, Md5};

use crate::body::checksum::{Algorithm, Checksum};
use crate::body::hasher::Hasher;
use crate::body::receive::Encoder;
use crate::body::send::CHUNK_BYTES;
use crate::encryption::content::Content;
use crate::errors::{S3ErrorCode, S3Result, refuse};

pub(crate) struct ContentHashes {
    pub(crate) md5: [u8; 16],
    pub(crate) checksum: Checksum,
}

/// Copies a range of an object to a writer, and computes the range's checksum with `algorithm`.
/// Blocks.
pub(crate) fn copy_bytes(
    content: &Content,
    range: Range<u64>,
    encoder: &mut Encoder,
    algorithm: Option<Algorithm>,
) -> S3Result<Option<Checksum>> {
    let mut hasher = algorithm.map(Hasher::new);
    for_each_piece(content, range, |bytes| {
        if let Some(hasher) = &mut hasher {
            hasher.update(bytes);
        }
        encoder.write(bytes)
    })?;
    Ok(hasher.map(Hasher::finish))
}

/// Reads an object, and returns its checksum. Blocks.
pub(crate) fn checksum_of(content: &Content, algorithm: Algorithm) -> S3Result<Checksum> {
    let mut hasher = Hasher::new(algorithm);
    for_each_piece(content, 0..content.bytes(), |bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    Ok(hasher.finish())
}

/// Reads an object, and returns its MD5 and its checksum. Blocks.
pub(crate) fn hashes_of(content: &Content, algorithm: Algorithm) -> S3Result<ContentHashes> {
    let (mut md5, mut hasher) = (Md5::new(), Hasher::new(algorithm));
    for_each_piece(content, 0..content.bytes(), |bytes| {
        md5.update(bytes);
        hasher.update(bytes);
        Ok(())
    })?;
    Ok(ContentHashes { md5: md5.finalize().into(), checksum: hasher.finish() })
}

/// Passes a range of an object to `take`, in pieces of at most [`CHUNK_BYTES`].
fn for_each_piece(
    content: &Content,
    mut left: Range<u64>,
    mut take: impl FnMut(&[u8]) -> S3Result<()>,
) -> S3Result<()> {
    while !left.is_empty() {
        let bytes_max = usize::try_from(left.end - left.start).unwrap_or(usize::MAX);
        let bytes = content.read(left.start, bytes_max.min(CHUNK_BYTES))?;
        if bytes.is_empty() {
            let message = "The object is shorter than its length";
            return Err(refuse(S3ErrorCode::InternalError, message));
        }
        left.start += bytes.len() as u64;
        take(&bytes)?;
    }
    Ok(())
}
