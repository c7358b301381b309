//! Receives request bodies for the store.
//!
//! A small body is collected and stored with one call. A big one is split into batches: while one
//! is hashed and written on a blocking thread, the next is received. Between batches no thread is
//! occupied, so a slow client costs memory only, within a limit. A body that is dropped before its
//! end leaves nothing behind.

use std::convert::Infallible;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use haul_file_store::{ObjectWriter, Usage, WrittenContent};
use haul_store_pool::Pool;
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::auth::payload::EMPTY_SHA256;
use crate::body::Body;
use crate::body::checksum::Checksum;
use crate::body::digests::{Claims, Digests};
use crate::body::error::{BodyError, ChunkError};
use crate::encryption::lengths::stored_bytes;
use crate::encryption::new_content::Encryption;
use crate::errors::{S3Error, S3ErrorCode, S3Result, from_store, incomplete, joined, refuse};
use crate::memory::{PeerMemory, Reserved};
use crate::request::name::ObjectName;
use crate::request::operation::Operation;
use crate::service::Haul;
use crate::service::request::Request;

/// The number of bytes that are received before they are hashed and written together.
const BATCH_BYTES: usize = 1 << 20;

/// The maximum length, in bytes, of a document for an operation that needs only a short one.
const SHORT_DOCUMENT_BYTES_MAX: u64 = 128 << 10;

/// The memory for a big body, in bytes: the batch being written, the batch being received, and the
/// last received piece.
const STREAM_BYTES: u64 = 3 * BATCH_BYTES as u64;

/// The header with a body's length without chunk framing.
const DECODED_LENGTH: &str = "x-amz-decoded-content-length";

/// A body to be received.
pub(crate) struct Receiver {
    body: Body,
    claims: Claims,
    declared: Option<u64>,
    received: u64,
    bytes_max: u64,
    small_bytes_max: u64,
    stall_time_max: Duration,
    peer: Option<PeerMemory>,
}

/// A function that opens a store's writer for content in a bucket. The content's length may be
/// declared.
type Open = fn(&Pool, &str, &str, Option<u64>) -> haul_file_store::Result<ObjectWriter>;

impl Receiver {
    /// Creates the receiver for a request that stores an object or a part.
    ///
    /// # Errors
    /// If the length is missing, exceeds the limit or a quota, or if the claims about the body are
    /// invalid. A client that waits for `100 Continue` has not sent the body then.
    pub(crate) fn new(haul: &Haul, request: &Request, body: Body) -> S3Result<Self> {
        let fields = &request.head.fields;
        let number = |name| fields.text(name)?.trim().parse().ok();
        let declared = match &body {
            Body::Chunks(_) => {
                let missing = || {
                    let message = format!("A body of chunks needs {DECODED_LENGTH}");
                    refuse(S3ErrorCode::MissingContentLength, message)
                };
                Some(number(DECODED_LENGTH).ok_or_else(missing)?)
            }
            Body::Plain(_) if !fields.has("content-length") && !fields.has("transfer-encoding") => {
                // As in S3: HTTP gives such a request an empty body, which may not be intended.
                let message = "The request needs a Content-Length, which may be 0";
                return Err(refuse(S3ErrorCode::MissingContentLength, message));
            }
            Body::Plain(_) => number("content-length"),
            Body::Form(_) => None,
        };
        let limits = haul.limits();
        if declared.is_some_and(|bytes| bytes > limits.object_bytes_max) {
            return Err(too_large(limits.object_bytes_max));
        }
        check_quota(&haul.store(), request, declared)?;
        Ok(Self {
            body,
            claims: Claims::for_object(request)?,
            declared,
            received: 0,
            bytes_max: limits.object_bytes_max,
            small_bytes_max: limits.small_body_bytes_max,
            stall_time_max: limits.stall_time_max,
            peer: request.memory.clone(),
        })
    }

    /// Creates the receiver for content that the server itself stores.
    pub(crate) fn from_bytes(haul: &Haul, content: Bytes) -> Self {
        let declared = Some(content.len() as u64);
        let body = Full::new(content).map_err(|never: Infallible| match never {});
        let limits = haul.limits();
        Self {
            body: Body::Form(Box::pin(body)),
            claims: Claims::default(),
            declared,
            received: 0,
            bytes_max: limits.object_bytes_max,
            small_bytes_max: limits.small_body_bytes_max,
            stall_time_max: limits.stall_time_max,
            peer: None,
        }
    }

    /// Receives the document in a request body and verifies it; empty if there is none.
    ///
    /// # Errors
    /// If it is too long or in chunks, or does not match the client's claims about it.
    pub(crate) async fn document(
        haul: &Haul,
        request: &Request,
        body: Body,
        claims: Claims,
    ) -> S3Result<Bytes> {
        if matches!(body, Body::Chunks(_)) {
            let message = "The content of a document is sent as it is, not in chunks";
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        let limits = haul.limits();
        let length = request.head.fields.text("content-length");
        let declared = length.and_then(|length| length.trim().parse().ok());
        let bytes_max = match request.operation {
            operation if is_short(operation) => SHORT_DOCUMENT_BYTES_MAX,
            _ => limits.xml_bytes_max as u64,
        };
        if declared.is_some_and(|bytes| bytes > bytes_max) {
            return Err(too_long_for_a_document(bytes_max));
        }
        let receiver = Self {
            body,
            claims,
            declared,
            received: 0,
            bytes_max,
            small_bytes_max: bytes_max,
            stall_time_max: limits.stall_time_max,
            peer: request.memory.clone(),
        };
        let collected = receiver.collect_document(haul).await?;
        collected.verify()?;
        request.check_bucket(&haul.store())?;
        // The memory stays reserved as long as the document exists.
        Ok(collected.memory.guard(collected.bytes))
    }

    /// Returns an empty body for an operation that reads none, after comparing the request's body
    /// with its signed hash.
    ///
    /// # Errors
    /// `XAmzContentSHA256Mismatch` if the body has another hash than the signed one.
    pub(crate) async fn unread(haul: &Haul, request: &Request, body: Body) -> S3Result<Body> {
        let is_empty =
            request.sha256.is_none_or(|hash| hash == EMPTY_SHA256) && body.is_end_stream();
        if request.sha256.is_some() && !is_empty {
            Self::document(haul, request, body, Claims::hash_only(request)).await?;
            return Ok(Body::empty());
        }
        Ok(body)
    }

    /// Returns the client's claims about the body.
    pub(crate) fn claims(&mut self) -> &mut Claims {
        &mut self.claims
    }

    /// Returns `true` if the declared length is short enough for [`Self::collect`].
    pub(crate) fn is_small(&self) -> bool {
        self.declared.is_some_and(|bytes| bytes <= self.small_bytes_max)
    }

    /// Receives a document, whose length may not be declared.
    async fn collect_document(mut self, haul: &Haul) -> S3Result<Collected> {
        let reserved = self.declared.unwrap_or(self.bytes_max);
        let memory = haul.reserve(self.peer.as_ref(), reserved).await?;
        let mut bytes = BytesMut::new();
        loop {
            match self.chunk().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(_) if self.received > self.bytes_max => {
                    return Err(too_long_for_a_document(self.bytes_max));
                }
                Err(error) => return Err(error),
            }
        }
        self.end().await?;
        haul.metrics().received(self.received);
        Ok(Collected { bytes: bytes.freeze(), claims: self.claims, memory })
    }

    /// Receives a whole small body.
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
                // Memory is reserved for the declared length only.
                if self.received > declared {
                    return Err(incomplete());
                }
                bytes.extend_from_slice(&chunk);
            }
            bytes.freeze()
        };
        self.end().await?;
        haul.metrics().received(self.received);
        Ok(Collected { bytes, claims: self.claims, memory })
    }

    /// Receives a body of any length into the writer that `open` creates. Encrypts it with
    /// `encryption`, if any.
    pub(crate) async fn stream(
        mut self,
        haul: &Haul,
        name: &ObjectName,
        open: Open,
        encryption: Option<Encryption>,
    ) -> S3Result<Streamed> {
        let memory = haul.reserve(self.peer.as_ref(), STREAM_BYTES).await?;
        let stored = match &encryption {
            Some(_) => self.declared.map(stored_bytes),
            None => self.declared,
        };
        let ObjectName { bucket, key } = name.clone();
        let open = move |store: &Pool| open(store, &bucket, &key, stored).map_err(from_store);
        let writer = haul.blocking(open).await?;
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

    /// Returns the next pieces: at least a batch in total, unless the body ends.
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
            let chunk = frame.map_err(broken)?.into_data().unwrap_or_default();
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
    memory: Reserved,
}

impl Collected {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns a copy of the bytes, because the buffer that received them may be longer.
    pub(crate) fn copied(&self) -> Bytes {
        Bytes::copy_from_slice(&self.bytes)
    }

    /// Verifies the client's claims about the bytes. Computes hashes, so it takes time in
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
    /// Completes the content and verifies the client's claims about it. Blocks.
    pub(crate) fn finish(self) -> S3Result<(WrittenContent, Option<Checksum>)> {
        let (written, md5) = self.sink.encoder.finish()?;
        let checksum = self.claims.verify(self.sink.digests, Some(md5))?;
        Ok((written, checksum))
    }

    /// Returns the length of the received body, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the CRC64NVME computed in addition to the client's checksum, if it was requested.
    pub(crate) fn take_crc64nvme(&mut self) -> Option<Checksum> {
        self.sink.digests.take_crc64nvme()
    }
}

/// Hashes and writes batches.
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

/// Writes content to the store, encrypted if necessary.
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

    /// Completes the content. Returns it with the MD5 of the content as clients see it, before
    /// encryption. Blocks.
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

/// Fails if the quotas currently have no space for a body. The store makes the final decision when
/// it stores the object, and counts the stored length, which is greater if the object is encrypted.
fn check_quota(store: &Pool, request: &Request, declared: Option<u64>) -> S3Result<()> {
    let objects = if request.operation == Operation::UploadPart { 0 } else { 1 };
    // A body of unknown length is rarely empty, so that it is rejected if there is no room at all.
    let added = Usage { bytes: declared.unwrap_or(1), objects };
    store.check_quota(&request.name().bucket, added).map_err(from_store)
}

fn too_large(bytes_max: u64) -> S3Error {
    let message = format!("A request has at most {bytes_max} bytes; upload in parts");
    refuse(S3ErrorCode::EntityTooLarge, message)
}

/// Returns `true` for an operation whose document has few elements. The client's rights may depend
/// on the document.
fn is_short(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::PutObjectTagging
            | Operation::PutObjectRetention
            | Operation::PutObjectLegalHold
            | Operation::PutObjectAcl
            | Operation::PutBucketWebsite
    )
}

fn too_long_for_a_document(bytes_max: u64) -> S3Error {
    let message = format!("A document has at most {bytes_max} bytes");
    refuse(S3ErrorCode::MaxMessageLengthExceeded, message)
}

/// Returns the error for a body that could not be read to its end.
fn broken(error: BodyError) -> S3Error {
    let message = error.to_string();
    match error {
        BodyError::Refused(error) => error,
        BodyError::Cut | BodyError::Chunks(ChunkError::Incomplete) => incomplete(),
        BodyError::Chunks(ChunkError::Malformed(_)) => refuse(S3ErrorCode::IncompleteBody, message),
        BodyError::Chunks(ChunkError::Short) => refuse(S3ErrorCode::InvalidChunkSizeError, message),
        BodyError::Chunks(ChunkError::Trailer(_)) => {
            refuse(S3ErrorCode::MalformedTrailerError, message)
        }
        BodyError::Chunks(ChunkError::Signature) => {
            refuse(S3ErrorCode::SignatureDoesNotMatch, message)
        }
    }
}
