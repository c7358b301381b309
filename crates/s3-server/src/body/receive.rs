//! Receives the bodies of requests for the store.
//!
//! A small body is collected and stored with one call. A big one is split into batches: while one
//! is hashed and written on a blocking thread, the next is received. Between batches no thread is
//! occupied, so a slow client costs memory only, within a limit. A body that is dropped before its
//! end leaves nothing behind.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use haul_file_store::{ObjectWriter, Store, WrittenContent};
use http_body_util::BodyExt;
use hyper::body::Body as HttpBody;
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use s3s::dto::StreamingBlob;
use s3s::{Body, S3Error, S3ErrorCode, S3Request, S3Result, StdError};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::body::aws_chunked::ChunkError;
use crate::body::checksum::Checksum;
use crate::body::digests::{Claims, Digests};
use crate::body::memory::{PeerMemory, Reserved};
use crate::encryption::lengths::stored_bytes;
use crate::encryption::new_content::Encryption;
use crate::errors::{from_store, incomplete, refuse, sha256_mismatch};
use crate::service::{Haul, joined};

/// The bytes received before they are hashed and written together.
const BATCH_BYTES: usize = 1 << 20;

/// The memory for a big body: the batch that is written, the one that is received, and the piece
/// that arrived last.
const STREAM_BYTES: u64 = 3 * BATCH_BYTES as u64;

/// A body to be received.
pub(crate) struct Receiver<B = Body> {
    body: B,
    claims: Claims,
    declared: Option<u64>,
    received: u64,
    bytes_max: u64,
    small_bytes_max: u64,
    stall_time_max: Duration,
    peer: Option<PeerMemory>,
}

impl Receiver {
    /// Creates the receiver of the body of `request`.
    ///
    /// # Errors
    /// If the declared length is above the limit, or the claims are invalid.
    pub(crate) fn of<T>(
        haul: &Haul,
        request: &S3Request<T>,
        body: Option<StreamingBlob>,
    ) -> S3Result<Self> {
        let has_field = |name| request.headers.contains_key(name);
        if !has_field(CONTENT_LENGTH) && !has_field(TRANSFER_ENCODING) {
            // As in S3. In HTTP such a request has an empty body, which may not be intended.
            let message = "The request needs a Content-Length, which may be 0";
            return Err(refuse(S3ErrorCode::MissingContentLength, message));
        }
        let header = |name| request.headers.get(name)?.to_str().ok()?.parse().ok();
        let declared = header("x-amz-decoded-content-length").or_else(|| header("content-length"));
        let bytes_max = haul.limits().object_bytes_max;
        if declared.is_some_and(|bytes| bytes > bytes_max) {
            return Err(too_large(bytes_max));
        }
        let body = body.map(Body::from).unwrap_or_default();
        // A request without these headers can still be known to have no body.
        let declared = declared.or_else(|| body.size_hint().exact());
        let peer = request.extensions.get().cloned();
        Ok(Self::new(haul, body, Claims::of(request)?, declared, peer))
    }
}

impl<B> Receiver<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<StdError>,
{
    /// Creates the receiver of a body of this length, if it is known, of a request of this peer.
    pub(crate) fn new(
        haul: &Haul,
        body: B,
        claims: Claims,
        declared: Option<u64>,
        peer: Option<PeerMemory>,
    ) -> Self {
        let limits = haul.limits();
        Self {
            body,
            claims,
            declared,
            received: 0,
            bytes_max: limits.object_bytes_max,
            small_bytes_max: limits.small_body_bytes_max,
            stall_time_max: limits.stall_time_max,
            peer,
        }
    }

    /// Returns the claims of the client about the body.
    pub(crate) fn claims(&mut self) -> &mut Claims {
        &mut self.claims
    }

    /// Returns `true` if the declared length is short enough for [`Self::collect`].
    pub(crate) fn is_small(&self) -> bool {
        self.declared.is_some_and(|bytes| bytes <= self.small_bytes_max)
    }

    /// Receives all of a small body.
    pub(crate) async fn collect(mut self, haul: &Haul) -> S3Result<Collected> {
        let declared = self.declared.unwrap_or(self.small_bytes_max);
        let memory = haul.reserve(self.peer.as_ref(), declared).await?;
        let first = self.chunk().await?.unwrap_or_default();
        if self.received > declared {
            return Err(incomplete());
        }
        let bytes = if first.len() as u64 == declared {
            first
        } else {
            let mut bytes = BytesMut::from(first.as_ref());
            bytes.reserve(usize::try_from(declared).unwrap_or(0).saturating_sub(first.len()));
            while let Some(chunk) = self.chunk().await? {
                // No memory is reserved for more.
                if self.received > declared {
                    return Err(incomplete());
                }
                bytes.extend_from_slice(&chunk);
            }
            bytes.freeze()
        };
        self.end().await?;
        haul.metrics().received(self.received);
        Ok(Collected { bytes, claims: self.claims, _memory: memory })
    }

    /// Receives a body of any length into the writer that `open` creates, encrypted or as it is.
    pub(crate) async fn stream(
        mut self,
        haul: &Haul,
        open: fn(&Store, Option<u64>) -> haul_file_store::Result<ObjectWriter>,
        encryption: Option<Encryption>,
    ) -> S3Result<Streamed> {
        let memory = haul.reserve(self.peer.as_ref(), STREAM_BYTES).await?;
        let stored = match &encryption {
            Some(_) => self.declared.map(stored_bytes),
            None => self.declared,
        };
        let writer = haul.blocking(move |store| open(store, stored).map_err(from_store)).await?;
        let digests = self.claims.digests(false);
        let mut sink = Sink { encoder: Encoder { writer, encryption }, digests };
        let mut batch = self.batch().await?;
        while !batch.is_empty() {
            let writing: JoinHandle<_> = spawn_blocking(move || sink.write(&batch));
            let next = self.batch().await;
            // The outcome of the last batch comes first: its error explains more.
            sink = joined(writing.await)?;
            batch = next?;
        }
        self.end().await?;
        haul.metrics().received(self.received);
        Ok(Streamed { sink, claims: self.claims, bytes: self.received, _memory: memory })
    }

    /// Returns the next pieces, together at least a batch unless the body ends.
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

    /// Returns the next piece that is not empty, or `None` at the end.
    async fn chunk(&mut self) -> S3Result<Option<Bytes>> {
        loop {
            let mut next = pin!(self.body.frame());
            // A piece that was received already needs no timer.
            let ready = std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context)));
            let frame = match ready.await {
                Poll::Ready(frame) => Ok(frame),
                Poll::Pending => tokio::time::timeout(self.stall_time_max, next).await,
            };
            let Ok(frame) = frame else {
                let message = format!("No byte was received for {:?}", self.stall_time_max);
                return Err(refuse(S3ErrorCode::RequestTimeout, message));
            };
            let Some(frame) = frame else { return Ok(None) };
            let chunk =
                frame.map_err(|error| broken(&error.into()))?.into_data().unwrap_or_default();
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

    /// Verifies that the body ends, and that it has the declared length.
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

    /// Verifies the claims of the client about the bytes. Computes hashes, which takes time in
    /// proportion to the length.
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
    bytes: u64,
    _memory: Reserved,
}

impl Streamed {
    /// Completes the content and verifies the claims of the client about it. Blocks.
    pub(crate) fn finish(self) -> S3Result<(WrittenContent, Option<Checksum>)> {
        let (written, md5) = self.sink.encoder.finish()?;
        let checksum = self.claims.verify(self.sink.digests, Some(md5))?;
        Ok((written, checksum))
    }

    /// Returns the length of the body as it was received.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The writer of batches.
struct Sink {
    encoder: Encoder,
    digests: Digests,
}

impl Sink {
    fn write(mut self, batch: &[Bytes]) -> S3Result<Self> {
        for bytes in batch {
            self.digests.update(bytes);
            self.encoder.write(bytes)?;
        }
        Ok(self)
    }
}

/// A writer of the store that encrypts, or writes content as it is.
pub(crate) struct Encoder {
    pub(crate) writer: ObjectWriter,
    pub(crate) encryption: Option<Encryption>,
}

impl Encoder {
    /// Writes the next bytes of the content. Blocks.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> S3Result<()> {
        let Self { writer, encryption } = self;
        let mut write = |bytes: &[u8]| writer.write(bytes).map_err(from_store);
        match encryption {
            Some(encryption) => encryption.write(bytes, write),
            None => write(bytes),
        }
    }

    /// Completes the content. Returns it with its MD5, for encrypted content the MD5 of the content
    /// as clients see it. Blocks.
    pub(crate) fn finish(self) -> S3Result<(WrittenContent, [u8; 16])> {
        let Self { mut writer, encryption } = self;
        let Some(encryption) = encryption else {
            let written = writer.finish().map_err(from_store)?;
            let md5 = written.md5();
            return Ok((written, md5));
        };
        let hashes = encryption.finish(|bytes| writer.write(bytes).map_err(from_store))?;
        let written = writer.finish().map_err(from_store)?;
        Ok((written.encoded(hashes.etag), hashes.md5))
    }
}

fn too_large(bytes_max: u64) -> S3Error {
    let message = format!("A request has at most {bytes_max} bytes; upload in parts");
    refuse(S3ErrorCode::EntityTooLarge, message)
}

/// Returns the error for a body that could not be read to its end. The errors of the streams of
/// `s3s` that verify signatures differ in their text only.
fn broken(error: &StdError) -> S3Error {
    let text = error.to_string();
    let is_malformed = matches!(error.downcast_ref(), Some(ChunkError::Malformed(_)));
    if text.ends_with("Sha256Mismatch") {
        return sha256_mismatch();
    }
    if text.ends_with("SignatureMismatch") {
        let message = "The signature of a chunk does not match";
        return refuse(S3ErrorCode::SignatureDoesNotMatch, message);
    }
    if is_malformed || text.ends_with("FormatError") {
        return refuse(S3ErrorCode::InvalidRequest, "The aws-chunked body is malformed");
    }
    incomplete()
}
