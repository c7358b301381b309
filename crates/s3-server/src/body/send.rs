//! Response bodies for GET.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use haul_file_store::{LockedObject, Object, PinnedRange};
use haul_http_engine::{BoxError, Piece, ResponseBody, Window};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::encryption::content::Content;
use crate::errors::{S3Result, chain, joined};
use crate::memory::Reserved;

/// The chunk size for reads of a big object, in bytes. One chunk is read ahead of the chunk being
/// sent.
pub(crate) const CHUNK_BYTES: usize = 2 << 20;

/// Returns the memory for sending an object, in bytes. Encrypted bytes are in memory twice while
/// they are decrypted.
pub(crate) fn memory_bytes(content: &Content, small_bytes_max: u64) -> u64 {
    let bytes = content.object.info.bytes;
    let bytes = if bytes <= small_bytes_max { bytes } else { 2 * CHUNK_BYTES as u64 };
    if content.opened.is_some() { 2 * bytes } else { bytes }
}

/// The body that sends a part of an object.
#[derive(Debug)]
pub(crate) enum ObjectBody {
    /// Ranges of files in memory, which are sent without a copy.
    Windows(VecDeque<Window>),
    Read(Reader),
}

/// A part of an object, sent as it is read. An error in the middle closes the connection, so that
/// the client receives fewer bytes than declared.
#[derive(Debug)]
pub(crate) struct Reader {
    /// `None` once all bytes are read, because an open object can prevent the reuse of its volume's
    /// file.
    content: Option<Arc<Content>>,
    left: Range<u64>,
    reading: Option<JoinHandle<S3Result<Bytes>>>,
    ready: Option<Bytes>,
    _memory: Reserved,
}

/// Returns the window for a range of an object that is locked in the page cache.
pub(crate) fn window(locked: &Arc<LockedObject>, range: &Range<u64>) -> Window {
    let (offset, bytes) = (locked.offset() + range.start, range.end - range.start);
    debug_assert!(range.end <= locked.bytes(), "the range lies within the object");
    Window { file: Arc::clone(locked) as _, offset, bytes }
}

/// Returns the body that sends `range` from locked memory, if the whole range is locked and the
/// object is not encrypted.
pub(crate) fn pinned(content: &Content, range: &Range<u64>) -> Option<ObjectBody> {
    let Content { object, opened: None } = content else { return None };
    if let Some(locked) = object.locked().filter(|_| !range.is_empty()) {
        return Some(ObjectBody::Windows(VecDeque::from([window(locked, range)])));
    }
    let mut windows = VecDeque::new();
    let mut at = range.start;
    while at < range.end {
        let PinnedRange { file, offset, bytes } = object.pinned(at)?;
        let bytes = bytes.min(range.end - at);
        windows.push_back(Window { file, offset, bytes });
        at += bytes;
    }
    Some(ObjectBody::Windows(windows))
}

/// Reads the first bytes of `range`, so that corruption in them is still reported by an error
/// response, and returns the body that sends the whole range.
pub(crate) async fn read(
    content: Arc<Content>,
    range: Range<u64>,
    memory: Reserved,
) -> S3Result<ObjectBody> {
    let first = if content.is_in_memory() {
        let bytes = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        content.read(range.start, bytes)?
    } else {
        match start_read(&content, &range) {
            Some(reading) => joined(reading.await)?,
            None => Bytes::new(),
        }
    };
    let left = range.start + first.len() as u64..range.end;
    let (content, ready) = (Some(content), Some(first));
    let mut reader = Reader { content, left, reading: None, ready, _memory: memory };
    reader.read_ahead();
    Ok(ObjectBody::Read(reader))
}

impl Reader {
    fn read_ahead(&mut self) {
        if self.left.is_empty() {
            self.content = None;
        }
        self.reading = self.content.as_ref().and_then(|content| start_read(content, &self.left));
    }
}

/// Starts to read the next chunk. For an object in a volume, the chunk is the whole rest: memory
/// for it is reserved, and a slow client then does not keep the volume's file open.
fn start_read(content: &Arc<Content>, left: &Range<u64>) -> Option<JoinHandle<S3Result<Bytes>>> {
    if left.is_empty() {
        return None;
    }
    let content = Arc::clone(content);
    let offset = left.start;
    let left = usize::try_from(left.end - left.start).unwrap_or(usize::MAX);
    let bytes_max = if content.object.is_in_volume() { left } else { left.min(CHUNK_BYTES) };
    Some(spawn_blocking(move || content.read(offset, bytes_max)))
}

impl ResponseBody for ObjectBody {
    type Source = ();

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, BoxError>>> {
        match self {
            Self::Windows(windows) => {
                Poll::Ready(windows.front().map(|it| Ok(Piece::Window(it.clone()))))
            }
            Self::Read(reader) => {
                reader.poll(context).map(|bytes| bytes.map(|bytes| bytes.map(Piece::Bytes)))
            }
        }
    }

    fn on_sent(&mut self, bytes: u64) {
        if let Self::Windows(windows) = self
            && let Some(window) = windows.front_mut()
        {
            window.advance(bytes);
            windows.pop_front_if(|window| window.bytes == 0);
        }
    }

    fn is_end(&self) -> bool {
        self.bytes_left() == Some(0)
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(match self {
            Self::Windows(windows) => windows.iter().map(|window| window.bytes).sum(),
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
                let key = self.content.as_ref().map(|content| &*content.object.info.key);
                let why = chain(&error);
                tracing::error!(key, error = why, "cannot read the rest of an object");
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
