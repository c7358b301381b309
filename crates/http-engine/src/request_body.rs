//! The body of a request, on its way from the connection to the future that reads it.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use crate::task::Task;

/// Received bytes that wait for the reader, beyond which the connection reads no more.
const QUEUED_BYTES_MAX: usize = 256 << 10;

/// Like [`QUEUED_BYTES_MAX`], before the first read: the reader may wait for memory for the body, and
/// many of them at once.
const UNREAD_BYTES_MAX: usize = 16 << 10;

/// The body of a request. Its bytes arrive while it is read; an error means that the client did not
/// send all of it.
#[derive(Debug)]
pub struct RequestBody {
    shared: Arc<Shared>,
}

/// The end of the body that the connection fills.
pub(crate) struct BodySender {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// The connection, which is paused while the queue is full.
    task: Option<Arc<Task>>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Bytes>,
    queued_bytes: usize,
    /// The bytes that were not read yet; `None` in the chunked transfer coding.
    left_bytes: Option<u64>,
    end: Option<End>,
    ended: Option<Instant>,
    reader: Option<Waker>,
    is_paused: bool,
    /// The client waits for `100 Continue`.
    expects_continue: bool,
    is_read: bool,
    is_dropped: bool,
}

/// The end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    Cut,
}

/// The error of a body that ended before its declared end, or whose framing is malformed.
#[derive(Debug)]
pub struct IncompleteBody;

impl fmt::Display for IncompleteBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client did not send the whole body")
    }
}

impl Error for IncompleteBody {}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Shared")
            .field("queued_bytes", &state.queued_bytes)
            .field("end", &state.end)
            .finish_non_exhaustive()
    }
}

/// Returns both ends of a body of `bytes`, or of an unknown length.
pub(crate) fn channel(
    bytes: Option<u64>,
    expects_continue: bool,
    task: &Arc<Task>,
) -> (BodySender, RequestBody) {
    let state = State { left_bytes: bytes, expects_continue, ..State::default() };
    let shared = Arc::new(Shared { state: Mutex::new(state), task: Some(Arc::clone(task)) });
    (BodySender { shared: Arc::clone(&shared) }, RequestBody { shared })
}

impl RequestBody {
    /// Returns the body of a request that has none.
    pub(crate) fn empty() -> Self {
        let (end, ended) = (Some(End::Complete), Some(Instant::now()));
        let state = State { left_bytes: Some(0), end, ended, ..State::default() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), task: None }) }
    }

    /// Returns an observer of the body, which can be used when the body is gone.
    pub fn arrival(&self) -> Arrival {
        Arrival { shared: Arc::clone(&self.shared) }
    }
}

/// Shows whether and when the body of a request arrived.
#[derive(Debug, Clone)]
pub struct Arrival {
    shared: Arc<Shared>,
}

impl Arrival {
    /// Returns `true` if the client ended the body before its declared end.
    pub fn is_cut(&self) -> bool {
        self.shared.state.lock().end == Some(End::Cut)
    }

    /// Returns the time at which the last byte arrived, or the client ended the body; `None` while
    /// the body is still expected.
    pub fn ended(&self) -> Option<Instant> {
        self.shared.state.lock().ended
    }
}

impl BodySender {
    /// Returns `true` if more bytes may be pushed. Otherwise the connection is woken when they may.
    pub(crate) fn has_room(&self) -> bool {
        let mut state = self.shared.state.lock();
        let most = if state.is_read { QUEUED_BYTES_MAX } else { UNREAD_BYTES_MAX };
        state.is_paused = !state.is_dropped && state.queued_bytes >= most;
        !state.is_paused
    }

    /// Returns `true` once, when the reader waits for the first bytes and the client for
    /// `100 Continue`.
    pub(crate) fn take_continue(&self) -> bool {
        let mut state = self.shared.state.lock();
        let is_due = state.is_read && !state.is_dropped && state.expects_continue;
        state.expects_continue &= !is_due;
        is_due
    }

    /// Returns `true` if the client still waits for `100 Continue`, so that it sends no body.
    pub(crate) fn is_withheld(&self) -> bool {
        self.shared.state.lock().expects_continue
    }

    /// Adds bytes; drops them if nothing reads the body any more.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut state = self.shared.state.lock();
        state.expects_continue = false;
        if !state.is_dropped {
            state.queue.push_back(Bytes::copy_from_slice(bytes));
            state.queued_bytes += bytes.len();
            wake(state.reader.take(), state);
        }
    }

    /// Ends the body.
    pub(crate) fn complete(&self) {
        self.end(End::Complete);
    }

    /// Ends the body before its declared end.
    pub(crate) fn cut(&self) {
        self.end(End::Cut);
    }

    fn end(&self, end: End) {
        let mut state = self.shared.state.lock();
        state.end = Some(end);
        state.ended = Some(Instant::now());
        wake(state.reader.take(), state);
    }
}

/// Wakes the reader after the lock was released.
fn wake(reader: Option<Waker>, state: parking_lot::MutexGuard<'_, State>) {
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_dropped = true;
        state.queued_bytes = 0;
        let queue = std::mem::take(&mut state.queue);
        let is_paused = std::mem::take(&mut state.is_paused);
        drop((state, queue));
        if is_paused {
            self.shared.wake_connection();
        }
    }
}

impl Shared {
    fn wake_connection(&self) {
        if let Some(task) = &self.task {
            std::task::Wake::wake_by_ref(task);
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = IncompleteBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncompleteBody>>> {
        let mut state = self.shared.state.lock();
        if let Some(bytes) = state.queue.pop_front() {
            state.queued_bytes -= bytes.len();
            state.is_read = true;
            state.left_bytes = state.left_bytes.map(|left| left.saturating_sub(bytes.len() as u64));
            let is_resumed = state.is_paused && state.queued_bytes < QUEUED_BYTES_MAX / 2;
            if is_resumed {
                state.is_paused = false;
                drop(state);
                self.shared.wake_connection();
            }
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match state.end {
            Some(End::Complete) => Poll::Ready(None),
            Some(End::Cut) => Poll::Ready(Some(Err(IncompleteBody))),
            None => {
                state.reader = Some(context.waker().clone());
                state.is_read = true;
                let is_continued = state.expects_continue;
                drop(state);
                if is_continued {
                    self.shared.wake_connection();
                }
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = self.shared.state.lock();
        state.queue.is_empty() && state.end == Some(End::Complete)
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.shared.state.lock();
        state.left_bytes.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn little_is_received_before_the_first_read() {
        let shared = Arc::new(Shared { state: Mutex::default(), task: None });
        let sender = BodySender { shared: Arc::clone(&shared) };
        let mut body = RequestBody { shared };
        let mut context = Context::from_waker(Waker::noop());
        let mut read = |body: &mut RequestBody| {
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            matches!(std::pin::pin!(frame).poll(&mut context), Poll::Ready(Some(Ok(_))))
        };
        sender.push(&[0; UNREAD_BYTES_MAX - 1]);
        assert!(sender.has_room());
        sender.push(&[0]);
        assert!(!sender.has_room());
        assert!(read(&mut body) && sender.has_room());
        sender.push(&[0; QUEUED_BYTES_MAX - 2]);
        assert!(sender.has_room());
        sender.push(&[0]);
        assert!(!sender.has_room());
        assert!(read(&mut body) && read(&mut body) && read(&mut body) && !read(&mut body));
        assert!(sender.has_room());
    }
}
