//! Copies of content within the server, which decrypts and encrypts it if necessary.

use std::ops::Range;

use s3s::{S3ErrorCode, S3Result};

use crate::body::checksum::{Algorithm, Checksum, Hasher};
use crate::body::receive::Encoder;
use crate::body::send::CHUNK_BYTES;
use crate::encryption::content::Content;
use crate::errors::refuse;

/// Copies bytes of an object to a writer, and computes their checksum with `algorithm`. Blocks.
pub(crate) fn copy_bytes(
    content: &Content,
    mut left: Range<u64>,
    encoder: &mut Encoder,
    algorithm: Option<Algorithm>,
) -> S3Result<Option<Checksum>> {
    let mut hasher = algorithm.map(Algorithm::hasher);
    while !left.is_empty() {
        let bytes_max = usize::try_from(left.end - left.start).unwrap_or(usize::MAX);
        let bytes = content.read(left.start, bytes_max.min(CHUNK_BYTES))?;
        if bytes.is_empty() {
            return Err(refuse(
                S3ErrorCode::InternalError,
                "The object is shorter than its length",
            ));
        }
        left.start += bytes.len() as u64;
        if let Some(hasher) = &mut hasher {
            hasher.update(&bytes);
        }
        encoder.write(&bytes)?;
    }
    Ok(hasher.map(Hasher::finish))
}
