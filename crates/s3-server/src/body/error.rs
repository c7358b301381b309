//! Errors in bodies.

use crate::errors::S3Error;

/// The minimum length of a chunk that another one may follow, in bytes, as in S3.
pub(crate) const CHUNK_BYTES_MIN: u64 = 8 * 1024;

/// An error in the framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChunkError {
    #[error("the aws-chunked body is malformed: {0}")]
    Malformed(&'static str),
    #[error("the aws-chunked body ends too early")]
    Incomplete,
    #[error("only the last chunk may have less than {CHUNK_BYTES_MIN} bytes")]
    Short,
    #[error("the trailer of the aws-chunked body is malformed: {0}")]
    Trailer(&'static str),
    #[error("the signature of a chunk, or of the trailer, does not match")]
    Signature,
}

/// An error in a body that is being received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The client ended the body before its declared end.
    #[error("the body ends before its declared end")]
    Cut,
    #[error(transparent)]
    Chunks(#[from] ChunkError),
    /// The form, or the file in it, is rejected.
    #[error(transparent)]
    Refused(S3Error),
}
