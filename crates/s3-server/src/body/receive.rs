//! Bodies of requests on their way into the store.
//!
//! A small one is collected and handed over in one piece. A big one is cut into batches: while one
//! is hashed and written on a thread that may block, the next is received. Between batches no
//! thread is held, so slow clients cost memory only, and that within a limit. Whatever is dropped
//! on the way leaves nothing behind.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use haul_file_store::{ObjectWriter, Store, WrittenContent};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use hyper::http::Extensions;
use s3s::dto::StreamingBlob;
use s3s::{Body, S3Error, S3ErrorCode, S3Request, S3Result, StdError};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::body::aws_chunked::ChunkError;
use crate::body::checksum::Checksum;
use crate::body::digests::{Claims, Digests};
use crate::body::memory::Reserved;
use crate::errors::{from_store, incomplete, refuse, sha256_mismatch};
use crate::service::{Haul, joined};

/// The bytes received before they are hashed and written together.
const BATCH_BYTES: usize = 1 << 20;

/// A big body is held as the batch being written, the one being received, and the piece of it that
/// came last.
const STREAM_BYTES: u64 = 3 * BATCH_BYTES as u64;

/// A body to be received.
pub(crate) struct Receiver {
    body: Body,
    claims: Claims,
    declared: Option<u64>,
    received: u64,
    bytes_max: u64,
    small_bytes_max: u64,
    stall_time_max: Duration,
    extensions: Extensions,
}

impl Receiver {
    /// The body of `request`. Refuses at once what is declared to be too long.
    pub(crate) fn of<T>(
        haul: &Haul,
        request: &S3Request<T>,
        body: Option<StreamingBlob>,
    ) -> S3Result<Self> {
        let limits = haul.limits();
        let header = |name| request.headers.get(name)?.to_str().ok()?.parse().ok();
        let declared = header("x-amz-decoded-content-length").or_else(|| header("content-length"));
        if declared.is_some_and(|bytes| bytes > limits.object_bytes_max) {
            return Err(too_large(limits.object_bytes_max));
        }
        let body = body.map(Body::from).unwrap_or_default();
        Ok(Self {
            claims: Claims::of(request)?,
            // Without a header for it, a request may still be known to have no body.
            declared: declared.or_else(|| body.size_hint().exact()),
            body,
            received: 0,
            bytes_max: limits.object_bytes_max,
            small_bytes_max: limits.small_body_bytes_max,
            stall_time_max: limits.stall_time_max,
            extensions: request.extensions.clone(),
        })
    }

    /// What the client says of the body.
    pub(crate) fn claims(&mut self) -> &mut Claims {
        &mut self.claims
    }

    /// Whether the body is declared to be short enough to be collected.
    pub(crate) fn is_small(&self) -> bool {
        self.declared.is_some_and(|bytes| bytes <= self.small_bytes_max)
    }

    /// Receives all of a small body.
    pub(crate) async fn collect(mut self, haul: &Haul) -> S3Result<Collected> {
        let declared = self.declared.unwrap_or(self.small_bytes_max);
        let memory = haul.reserve(&self.extensions, declared).await?;
        let first = self.chunk().await?.unwrap_or_default();
        let bytes = if first.len() as u64 == declared {
            first
        } else {
            let mut bytes = BytesMut::from(first.as_ref());
            bytes.reserve(usize::try_from(declared).unwrap_or(0).saturating_sub(first.len()));
            while let Some(chunk) = self.chunk().await? {
                bytes.extend_from_slice(&chunk);
            }
            bytes.freeze()
        };
        self.end().await?;
        haul.metrics().received(self.received);
        Ok(Collected { bytes, claims: self.claims, _memory: memory })
    }

    /// Receives a body of any length into the writer that `open` makes.
    pub(crate) async fn stream(
        mut self,
        haul: &Haul,
        open: fn(&Store, Option<u64>) -> haul_file_store::Result<ObjectWriter>,
    ) -> S3Result<Streamed> {
        let memory = haul.reserve(&self.extensions, STREAM_BYTES).await?;
        let declared = self.declared;
        let writer = haul.blocking(move |store| open(store, declared).map_err(from_store)).await?;
        let mut sink = Sink { writer, digests: self.claims.digests(false) };
        let mut batch = self.batch().await?;
        while !batch.is_empty() {
            let writing: JoinHandle<_> = spawn_blocking(move || sink.take(&batch));
            let next = self.batch().await;
            // The batch before is waited for in any case: its failure explains more.
            sink = joined(writing.await)?;
            batch = next?;
        }
        self.end().await?;
        haul.metrics().received(self.received);
        Ok(Streamed { sink, claims: self.claims, _memory: memory })
    }

    /// The next pieces, together at least a batch unless the body ends.
    async fn batch(&mut self) -> S3Result<Vec<Bytes>> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH_BYTES {
            let Some(chunk) = self.chunk().await? else { break };
            bytes += chunk.len();
            batch.push(chunk);
        }
        Ok(batch)
    }

    /// The next piece that is not empty, or `None` at the end.
    async fn chunk(&mut self) -> S3Result<Option<Bytes>> {
        loop {
            let frame = tokio::time::timeout(self.stall_time_max, self.body.frame());
            let Ok(frame) = frame.await else {
                let message = format!("Nothing came for {:?}", self.stall_time_max);
                return Err(refuse(S3ErrorCode::RequestTimeout, message));
            };
            let Some(frame) = frame else { return Ok(None) };
            let chunk = frame.map_err(|error| broken(&error))?.into_data().unwrap_or_default();
            if chunk.is_empty() {
                continue;
            }
            self.received += chunk.len() as u64;
            if self.received > self.bytes_max {
                return Err(too_large(self.bytes_max));
            }
            return Ok(Some(chunk));
        }
    }

    /// Verifies that the body ends here, and where it was declared to end.
    async fn end(&mut self) -> S3Result<()> {
        while self.chunk().await?.is_some() {}
        match self.declared {
            Some(declared) if declared != self.received => Err(incomplete()),
            _ => Ok(()),
        }
    }
}

/// A small body, not verified yet.
pub(crate) struct Collected {
    bytes: Bytes,
    claims: Claims,
    _memory: Reserved,
}

impl Collected {
    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Compares the bytes with what was said of them. Computes hashes: call it where that may take
    /// time.
    pub(crate) fn verify(&self) -> S3Result<(&[u8], Option<Checksum>)> {
        let mut digests = self.claims.digests(true);
        digests.update(&self.bytes);
        Ok((&self.bytes, self.claims.verify(digests, None)?))
    }
}

/// A body in the writer, not verified yet.
pub(crate) struct Streamed {
    sink: Sink,
    claims: Claims,
    _memory: Reserved,
}

impl Streamed {
    /// Completes the content and compares it with what was said of it. Blocks.
    pub(crate) fn finish(self) -> S3Result<(WrittenContent, Option<Checksum>)> {
        let written = self.sink.writer.finish().map_err(from_store)?;
        let checksum = self.claims.verify(self.sink.digests, Some(written.md5()))?;
        Ok((written, checksum))
    }
}

/// Where batches go.
struct Sink {
    writer: ObjectWriter,
    digests: Digests,
}

impl Sink {
    fn take(mut self, batch: &[Bytes]) -> S3Result<Self> {
        for bytes in batch {
            self.digests.update(bytes);
            self.writer.write(bytes).map_err(from_store)?;
        }
        Ok(self)
    }
}

fn too_large(bytes_max: u64) -> S3Error {
    let message = format!("At most {bytes_max} bytes go into one request; upload in parts");
    refuse(S3ErrorCode::EntityTooLarge, message)
}

/// Why a body could not be read to its end. The streams of `s3s` that verify signatures have
/// errors that cannot be told apart but by their words.
fn broken(error: &StdError) -> S3Error {
    if let Some(ChunkError::Malformed(_)) = error.downcast_ref() {
        return refuse(S3ErrorCode::InvalidRequest, error.to_string());
    }
    let words = error.to_string();
    if words.ends_with("Sha256Mismatch") {
        return sha256_mismatch();
    }
    if words.ends_with("SignatureMismatch") {
        let message = "The signature of a chunk does not fit";
        return refuse(S3ErrorCode::SignatureDoesNotMatch, message);
    }
    if words.ends_with("FormatError") {
        return refuse(S3ErrorCode::InvalidRequest, "The aws-chunked body is malformed");
    }
    incomplete()
}
