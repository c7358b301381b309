//! An answer on its way to a socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use haul_reactor::{IoStatus, MessageSender};
use haul_tls::Transport;

use crate::connection::Message;
use crate::listing::Listed;
use crate::meta::{HotFile, Meta, OpenFile};
use crate::shared::Desk;
use crate::stream::{Counted, Step, Stream};
use crate::tier::Tier;

/// Where the bytes of a file are.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// In memory; come there just now from the tier told.
    Hot(Arc<HotFile>, Tier),
    File(Arc<OpenFile>),
}

impl Source {
    pub(crate) fn meta(&self) -> &Meta {
        match self {
            Self::Hot(file, _) => &file.meta,
            Self::File(file) => &file.meta,
        }
    }

    fn body(&self, range: Range<u64>) -> Body {
        match self {
            Self::Hot(file, tier) => Body::Memory(InMemory::File(Arc::clone(file)), range, *tier),
            Self::File(file) => Body::File(Box::new(Stream::new(Arc::clone(file), range))),
        }
    }
}

/// What is sent after the head.
#[derive(Debug)]
enum Body {
    None,
    Memory(InMemory, Range<u64>, Tier),
    File(Box<Stream>),
}

/// Bytes that several clients may be sent at once.
#[derive(Debug)]
enum InMemory {
    File(Arc<HotFile>),
    Listing(Arc<Listed>),
}

/// A range of a file, with what stands before it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) before: Vec<u8>,
    /// Empty for what stands after the last one.
    pub(crate) range: Range<u64>,
}

/// An answer, as far as it was not sent yet.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) status: u16,
    /// Of the body, as far as the kernel took it.
    pub(crate) body_bytes: u64,
    /// The disk is what it waits for.
    pub(crate) is_reading: bool,
    /// What goes first: the head, and a body that is no file's.
    out: Vec<u8>,
    out_at: usize,
    /// Where in `out` the body begins.
    head_bytes: usize,
    body: Body,
    source: Option<Source>,
    parts: VecDeque<Part>,
    by_tier: [u64; Tier::ALL.len()],
}

/// How far it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// So many bytes more are with the kernel.
    Sent(u64),
    /// The client has to take some first.
    Full,
    /// The disk has to give some first.
    Reading,
    Done,
}

impl Sending {
    /// A head, and a body that stands behind it in the same bytes.
    pub(crate) fn new(status: u16, out: Vec<u8>, head_bytes: usize) -> Self {
        Self {
            status,
            body_bytes: 0,
            is_reading: false,
            out,
            out_at: 0,
            head_bytes,
            body: Body::None,
            source: None,
            parts: VecDeque::new(),
            by_tier: Default::default(),
        }
    }

    /// And then these bytes of a file.
    pub(crate) fn with_range(mut self, source: &Source, range: Range<u64>) -> Self {
        if !range.is_empty() {
            self.body = source.body(range);
        }
        self
    }

    /// And then this listing.
    pub(crate) fn with_listing(mut self, listed: Arc<Listed>) -> Self {
        let range = 0..listed.page.text.len() as u64;
        self.body = Body::Memory(InMemory::Listing(listed), range, Tier::None);
        self
    }

    /// And then these parts of a file.
    pub(crate) fn with_parts(mut self, source: &Source, parts: VecDeque<Part>) -> Self {
        self.source = Some(source.clone());
        self.parts = parts;
        self
    }

    /// What another thread has read for it.
    pub(crate) fn stream(&mut self) -> Option<&mut Stream> {
        match &mut self.body {
            Body::File(stream) => Some(stream),
            Body::None | Body::Memory(..) => None,
        }
    }

    /// The tier that most of its bytes came from.
    pub(crate) fn tier(&self) -> Tier {
        let rows = Tier::ALL.into_iter().zip(self.by_tier).filter(|(_, bytes)| *bytes > 0);
        rows.max_by_key(|(_, bytes)| *bytes).map_or(Tier::None, |(tier, _)| tier)
    }

    /// Sends once.
    ///
    /// # Errors
    /// The socket's, or that the file is not what it was: the connection is to be closed.
    pub(crate) fn step(
        &mut self,
        socket: &mut Transport,
        desk: &Desk,
        now: Instant,
        counted: &mut Counted,
        remote: impl Fn() -> MessageSender<Message>,
    ) -> io::Result<Progress> {
        if self.out_at < self.out.len() {
            return self.send_out(socket, desk);
        }
        match &mut self.body {
            Body::None => Ok(self.next_part()),
            Body::Memory(..) => self.send_out(socket, desk),
            Body::File(stream) => match stream.step(socket, desk, now, counted, remote)? {
                Step::Sent(bytes, tier) => {
                    self.sent(bytes, tier, desk);
                    Ok(Progress::Sent(bytes))
                }
                Step::Full => Ok(Progress::Full),
                Step::Reading => Ok(Progress::Reading),
                Step::Done => {
                    self.body = Body::None;
                    Ok(Progress::Sent(0))
                }
            },
        }
    }

    fn next_part(&mut self) -> Progress {
        let Some(part) = self.parts.pop_front() else { return Progress::Done };
        self.out = part.before;
        (self.out_at, self.head_bytes) = (0, 0);
        if let Some(source) = self.source.as_ref().filter(|_| !part.range.is_empty()) {
            self.body = source.body(part.range);
        }
        Progress::Sent(0)
    }

    /// What stands first, and bytes in memory with it.
    fn send_out(&mut self, socket: &mut Transport, desk: &Desk) -> io::Result<Progress> {
        let first = &self.out[self.out_at..];
        let (then, tier) = match &self.body {
            Body::Memory(held, range, tier) => (held.bytes(range), *tier),
            Body::None | Body::File(_) => (&[][..], Tier::None),
        };
        let more = matches!(self.body, Body::File(_)) || !self.parts.is_empty();
        let pieces = [IoSlice::new(first), IoSlice::new(then)];
        let IoStatus::Bytes(bytes) = socket.write(&pieces, more)? else {
            return Ok(Progress::Full);
        };
        let of_first = bytes.min(first.len());
        let of_body = (bytes - of_first) as u64;
        let head_left = self.head_bytes.saturating_sub(self.out_at);
        self.body_bytes += of_first.saturating_sub(head_left) as u64;
        self.out_at += of_first;
        if let Body::Memory(_, range, _) = &mut self.body {
            range.start += of_body;
            if range.is_empty() {
                self.body = Body::None;
            }
        }
        self.sent(of_body, tier, desk);
        Ok(Progress::Sent(bytes as u64))
    }

    fn sent(&mut self, bytes: u64, tier: Tier, desk: &Desk) {
        self.body_bytes += bytes;
        if let Some(row) = self.by_tier.get_mut(tier as usize) {
            *row += bytes;
        }
        desk.counts.sent(tier, bytes);
    }

    /// Of an answer whose head and body were offered to the kernel in one call, and of which it
    /// took `taken` bytes: what is left.
    pub(crate) fn rest_of(
        pieces: &[&[u8]],
        taken: usize,
        file: &Arc<HotFile>,
        desk: &Desk,
    ) -> Self {
        let head = pieces.concat();
        let of_body = taken.saturating_sub(head.len()) as u64;
        let head_bytes = head.len();
        let mut rest = Self::new(200, head, head_bytes);
        rest.out_at = taken.min(head_bytes);
        let range = of_body..file.body.len() as u64;
        let source = Source::Hot(Arc::clone(file), Tier::Memory);
        let mut rest = rest.with_range(&source, range);
        rest.sent(of_body, Tier::Memory, desk);
        rest
    }
}

impl InMemory {
    fn bytes(&self, range: &Range<u64>) -> &[u8] {
        let all = match self {
            Self::File(file) => &*file.body,
            Self::Listing(listed) => listed.page.text.as_bytes(),
        };
        // What is in memory is as long as memory can be.
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        all.get(at(range.start)..at(range.end)).unwrap_or_default()
    }
}
