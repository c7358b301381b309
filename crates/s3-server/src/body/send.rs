//! Bodies of responses to GET.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use haul_file_store::{Object, PinnedRange};
use haul_http_engine::{BoxError, Piece, ResponseBody, Window};
use parking_lot::Mutex;
use s3s::S3Result;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::body::memory::Reserved;
use crate::errors::{chain, from_store};
use crate::service::joined;

/// The bytes of a big object read at a time. One such chunk is read ahead of the one being sent.
pub(crate) const CHUNK_BYTES: usize = 2 << 20;

/// What of an object goes into memory at once when `bytes` of it are sent.
pub(crate) fn memory_bytes(bytes: u64, small_bytes_max: u64) -> u64 {
    if bytes <= small_bytes_max { bytes } else { 2 * CHUNK_BYTES as u64 }
}

/// The place where an operation leaves the body of its response. It goes around the S3 service,
/// which knows no windows of files.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodySlot(Arc<Mutex<Option<ObjectBody>>>);

impl BodySlot {
    pub(crate) fn put(&self, body: ObjectBody) {
        *self.0.lock() = Some(body);
    }

    pub(crate) fn take(&self) -> Option<ObjectBody> {
        self.0.lock().take()
    }
}

/// A part of an object.
#[derive(Debug)]
pub(crate) enum ObjectBody {
    /// It is locked in the page cache, and is sent without a copy.
    Pinned(VecDeque<Window>),
    Read(Reader),
}

/// A part of an object, sent as it is read. An error in the middle breaks the connection, so that
/// the client sees fewer bytes than declared.
#[derive(Debug)]
pub(crate) struct Reader {
    /// `None` once everything was read: an open object can prevent the reuse of its volume's file.
    object: Option<Arc<Object>>,
    left: Range<u64>,
    reading: Option<JoinHandle<S3Result<Bytes>>>,
    ready: Option<Bytes>,
    _memory: Reserved,
}

/// Returns the body that sends `range` from locked memory, if all of it is there.
pub(crate) fn pinned(object: &Object, range: &Range<u64>) -> Option<ObjectBody> {
    let mut windows = VecDeque::new();
    let mut at = range.start;
    while at < range.end {
        let PinnedRange { file, offset, bytes } = object.pinned(at)?;
        let bytes = bytes.min(range.end - at);
        windows.push_back(Window { file, offset, bytes });
        at += bytes;
    }
    Some(ObjectBody::Pinned(windows))
}

/// Reads the first bytes of `range`, so that damage there is still told as an error, and returns
/// the body that sends all of it.
pub(crate) async fn read(
    object: Arc<Object>,
    range: Range<u64>,
    memory: Reserved,
) -> S3Result<ObjectBody> {
    let first = if object.is_in_memory() {
        let bytes = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        object.read(range.start, bytes).map_err(from_store)?
    } else {
        match start_read(&object, &range) {
            Some(reading) => joined(reading.await)?,
            None => Bytes::new(),
        }
    };
    let left = range.start + first.len() as u64..range.end;
    let (object, ready) = (Some(object), Some(first));
    let mut reader = Reader { object, left, reading: None, ready, _memory: memory };
    reader.read_ahead();
    Ok(ObjectBody::Read(reader))
}

impl Reader {
    fn read_ahead(&mut self) {
        if self.left.is_empty() {
            self.object = None;
        }
        self.reading = self.object.as_ref().and_then(|object| start_read(object, &self.left));
    }
}

/// Starts to read the first chunk of what is left. Of an object in a volume, which the reservation
/// of memory counts as a whole, that is all: its volume's file is then not held while the client
/// reads slowly.
fn start_read(object: &Arc<Object>, left: &Range<u64>) -> Option<JoinHandle<S3Result<Bytes>>> {
    if left.is_empty() {
        return None;
    }
    let object = Arc::clone(object);
    let offset = left.start;
    let left = usize::try_from(left.end - left.start).unwrap_or(usize::MAX);
    let bytes_max = if object.is_in_volume() { left } else { left.min(CHUNK_BYTES) };
    Some(spawn_blocking(move || object.read(offset, bytes_max).map_err(from_store)))
}

impl ResponseBody for ObjectBody {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, BoxError>>> {
        match self {
            Self::Pinned(windows) => {
                Poll::Ready(windows.pop_front().map(|it| Ok(Piece::Window(it))))
            }
            Self::Read(reader) => {
                reader.poll(context).map(|bytes| bytes.map(|bytes| bytes.map(Piece::Bytes)))
            }
        }
    }

    fn is_end(&self) -> bool {
        self.bytes_left() == Some(0)
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(match self {
            Self::Pinned(windows) => windows.iter().map(|window| window.bytes).sum(),
            Self::Read(reader) => {
                let ready = reader.ready.as_ref().map_or(0, Bytes::len) as u64;
                ready + reader.left.end - reader.left.start
            }
        })
    }
}

impl Reader {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if let Some(bytes) = self.ready.take().filter(|bytes| !bytes.is_empty()) {
            return Poll::Ready(Some(Ok(bytes)));
        }
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let outcome = joined(ready!(Pin::new(reading).poll(context)));
        self.reading = None;
        Poll::Ready(Some(match outcome {
            Ok(bytes) if bytes.is_empty() => Err("the object ends before its length".into()),
            Ok(bytes) => {
                self.left.start += bytes.len() as u64;
                self.read_ahead();
                Ok(bytes)
            }
            Err(error) => {
                let (why, key) = (chain(&error), self.object.as_ref().map(|it| &*it.info.key));
                tracing::error!(key, error = why, "an object broke off");
                Err(error.into())
            }
        }))
    }
}

/// Pins an object in the background if it is requested often.
pub(crate) fn pin_if_hot(object: &Arc<Object>) {
    if object.count_request() {
        let object = Arc::clone(object);
        spawn_blocking(move || {
            let key = &*object.info.key;
            match object.pin() {
                Ok(bytes) => tracing::debug!(key, bytes, "pinned an object"),
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(key, error, "cannot pin an object in memory");
                }
            }
        });
    }
}
