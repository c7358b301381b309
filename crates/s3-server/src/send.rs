//! Bodies of responses on their way out of the store.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use haul_file_store::Object;
use hyper::body::{Body, Frame, SizeHint};
use s3s::dto::StreamingBlob;
use s3s::{S3Result, StdError};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::errors::{chain, from_store};
use crate::memory::Reserved;
use crate::service::joined;

/// The bytes of a big object read at a time. One such chunk is read ahead of the one being sent.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// What of an object goes into memory at once when `bytes` of it are sent.
pub(crate) fn memory_bytes(bytes: u64, small_bytes_max: u64) -> u64 {
    if bytes <= small_bytes_max { bytes } else { 2 * CHUNK_BYTES as u64 }
}

/// A part of an object, sent as it is read. An error in the middle breaks the connection, so that
/// the client sees fewer bytes than declared.
struct Reader {
    /// `None` once everything was read: an open object can prevent the reuse of its volume's file.
    object: Option<Arc<Object>>,
    left: Range<u64>,
    reading: Option<JoinHandle<S3Result<Bytes>>>,
    ready: Option<Bytes>,
    _memory: Reserved,
}

/// Reads the first bytes of `range`, so that damage there is still told as an error, and returns
/// the body that sends all of it.
pub(crate) async fn body(
    object: Object,
    range: Range<u64>,
    memory: Reserved,
) -> S3Result<StreamingBlob> {
    let object = Arc::new(object);
    let first = if object.is_in_memory() {
        let bytes = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        object.read(range.start, bytes).map_err(from_store)?
    } else {
        match read(&object, &range) {
            Some(reading) => joined(reading.await)?,
            None => Bytes::new(),
        }
    };
    let left = range.start + first.len() as u64..range.end;
    let (object, ready) = (Some(object), Some(first));
    let mut reader = Reader { object, left, reading: None, ready, _memory: memory };
    reader.read_ahead();
    Ok(StreamingBlob::from(s3s::Body::http_body(reader)))
}

impl Reader {
    fn read_ahead(&mut self) {
        if self.left.is_empty() {
            self.object = None;
        }
        self.reading = self.object.as_ref().and_then(|object| read(object, &self.left));
    }
}

/// Starts to read the first chunk of what is left. Of an object in a volume, which the reservation
/// of memory counts as a whole, that is all: its volume's file is then not held while the client
/// reads slowly.
fn read(object: &Arc<Object>, left: &Range<u64>) -> Option<JoinHandle<S3Result<Bytes>>> {
    if left.is_empty() {
        return None;
    }
    let object = Arc::clone(object);
    let offset = left.start;
    let left = usize::try_from(left.end - left.start).unwrap_or(usize::MAX);
    let bytes_max = if object.is_in_volume() { left } else { left.min(CHUNK_BYTES) };
    Some(spawn_blocking(move || object.read(offset, bytes_max).map_err(from_store)))
}

impl Body for Reader {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let this = self.get_mut();
        if let Some(bytes) = this.ready.take().filter(|bytes| !bytes.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let Some(reading) = &mut this.reading else { return Poll::Ready(None) };
        let outcome = joined(ready!(Pin::new(reading).poll(context)));
        this.reading = None;
        Poll::Ready(Some(match outcome {
            Ok(bytes) if bytes.is_empty() => Err("the object ends before its length".into()),
            Ok(bytes) => {
                this.left.start += bytes.len() as u64;
                this.read_ahead();
                Ok(Frame::data(bytes))
            }
            Err(error) => {
                let (why, key) = (chain(&error), this.object.as_ref().map(|it| &*it.info.key));
                tracing::error!(key, error = why, "an object broke off");
                Err(error.into())
            }
        }))
    }

    fn size_hint(&self) -> SizeHint {
        let ready = self.ready.as_ref().map_or(0, Bytes::len) as u64;
        SizeHint::with_exact(ready + self.left.end - self.left.start)
    }
}
