//! The body of a response that is not in memory as a whole.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use haul_http_engine::{BoxError, Piece, ResponseBody};

use super::file_range::FileRange;
use super::request_count::LastCounted;
use crate::context::ThreadContext;
use crate::file::source::FileSource;
use crate::file::tier::{ResponseSource, Tier};

/// A range of a file, and the bytes that precede it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) before: Bytes,
    /// Empty for the bytes after the last part.
    pub(crate) range: Range<u64>,
}

/// The body of a response.
#[derive(Debug)]
pub(crate) struct FileBody {
    thread: Arc<ThreadContext>,
    current: Option<Content>,
    /// The parts after the current one.
    parts: VecDeque<Part>,
    /// The file of the parts; `None` for a body from memory.
    source: Option<(FileSource, Arc<LastCounted>)>,
    left_bytes: u64,
    /// The tier of the last piece.
    piece_tier: Tier,
    by_tier: [u64; Tier::ALL.len()],
}

/// The part that is being sent.
#[derive(Debug)]
enum Content {
    Memory(Bytes, Tier),
    File(Box<FileRange>),
}

impl FileBody {
    /// Creates a body from memory.
    pub(crate) fn memory(thread: &Arc<ThreadContext>, bytes: Bytes, tier: Tier) -> Self {
        let left_bytes = bytes.len() as u64;
        let mut body = Self::new(thread, VecDeque::new(), None, left_bytes);
        body.current = Some(Content::Memory(bytes, tier));
        body
    }

    /// Creates a body of parts of a file.
    pub(crate) fn parts(
        thread: &Arc<ThreadContext>,
        source: FileSource,
        parts: VecDeque<Part>,
        last_counted: Arc<LastCounted>,
    ) -> Self {
        let length = |part: &Part| part.before.len() as u64 + part.range.end - part.range.start;
        let left_bytes = parts.iter().map(length).sum();
        Self::new(thread, parts, Some((source, last_counted)), left_bytes)
    }

    fn new(
        thread: &Arc<ThreadContext>,
        parts: VecDeque<Part>,
        source: Option<(FileSource, Arc<LastCounted>)>,
        left_bytes: u64,
    ) -> Self {
        Self {
            thread: Arc::clone(thread),
            current: None,
            parts,
            source,
            left_bytes,
            piece_tier: Tier::None,
            by_tier: Default::default(),
        }
    }

    /// Returns the bytes before the next part, and makes its range the current content.
    fn next_part(&mut self) -> Option<Bytes> {
        let part = self.parts.pop_front()?;
        self.current = match &self.source {
            Some((source, last_counted)) if !part.range.is_empty() => {
                Some(content(source, part.range, last_counted))
            }
            _ => None,
        };
        Some(part.before)
    }
}

fn content(source: &FileSource, range: Range<u64>, last_counted: &Arc<LastCounted>) -> Content {
    match source {
        FileSource::Memory(file, tier) => {
            let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = file.body.slice(at(range.start)..at(range.end));
            Content::Memory(bytes, *tier)
        }
        FileSource::Open(file) => {
            let last_counted = Arc::clone(last_counted);
            Content::File(Box::new(FileRange::new(Arc::clone(file), range, last_counted)))
        }
    }
}

impl ResponseBody for FileBody {
    type Source = ResponseSource;

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, BoxError>>> {
        loop {
            match &mut self.current {
                Some(Content::File(range)) if !range.is_sent() => {
                    let polled = ready!(range.poll_piece(context, &self.thread));
                    return Poll::Ready(Some(polled.map(|(piece, tier)| {
                        self.piece_tier = tier;
                        piece
                    })));
                }
                Some(Content::Memory(bytes, tier)) if !bytes.is_empty() => {
                    self.piece_tier = *tier;
                    return Poll::Ready(Some(Ok(Piece::Bytes(std::mem::take(bytes)))));
                }
                Some(_) | None => {}
            }
            self.piece_tier = Tier::None;
            match self.next_part() {
                Some(before) if !before.is_empty() => {
                    return Poll::Ready(Some(Ok(Piece::Bytes(before))));
                }
                Some(_) => {}
                None => return Poll::Ready(None),
            }
        }
    }

    fn is_end(&self) -> bool {
        self.left_bytes == 0
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(self.left_bytes)
    }

    fn on_sent(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        self.thread.counts.sent(self.piece_tier, bytes);
        if let Some(sent) = self.by_tier.get_mut(self.piece_tier as usize) {
            *sent += bytes;
        }
        if self.piece_tier != Tier::None
            && let Some(Content::File(range)) = &mut self.current
        {
            range.on_sent(bytes, self.piece_tier);
        }
    }

    fn on_unsendable(&mut self) -> bool {
        match &mut self.current {
            Some(Content::File(range)) => {
                range.on_unsendable();
                true
            }
            Some(Content::Memory(..)) | None => false,
        }
    }

    fn source(&self) -> ResponseSource {
        let rows = Tier::ALL.into_iter().zip(self.by_tier).filter(|(_, bytes)| *bytes > 0);
        let tier = rows.max_by_key(|(_, bytes)| *bytes).map_or(Tier::None, |(tier, _)| tier);
        ResponseSource { tier, is_counted: true }
    }
}
