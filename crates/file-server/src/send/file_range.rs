//! A range of a file on its way to a socket: selects the source of each window, and produces pieces.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_channel::oneshot::{Receiver, channel};
use haul_http_engine::{BoxError, Piece, Window};

use super::read::{ReadError, ReadWindow, read_window};
use super::request_count::LastCounted;
use crate::context::ThreadContext;
use crate::file::description::OpenFile;
use crate::file::residency::{page_span, resident_bytes};
use crate::file::tier::{self, Tier, WindowSource, WindowState, select, window_end};
use crate::send::version_check::VersionCheck;

/// The bytes of a window that are sent at once, before other connections have their turn.
const SENT_BYTES_MAX: u64 = 1 << 20;

/// The time for which bytes that were in the page cache are assumed to stay there.
const RESIDENT_FOR: Duration = Duration::from_millis(10);

/// A client that takes longer for a window gets the next one only when this one was sent: so a slow
/// client holds one buffer, not two.
const SLOW: Duration = Duration::from_secs(1);

/// A range of a file.
#[derive(Debug)]
pub(crate) struct FileRange {
    file: Arc<OpenFile>,
    /// The first byte that was not sent.
    at: u64,
    end: u64,
    /// The time at which the last window was read, until it is sent.
    window_since: Option<Instant>,
    is_slow: bool,
    /// The next window, which a disk thread reads.
    reading: Option<Receiver<Result<ReadWindow, ReadError>>>,
    /// The end of the bytes that were in the page cache, and the time of that check.
    resident: Option<(u64, Instant)>,
    /// The kernel cannot send the file by `sendfile`.
    is_unsendable: bool,
    /// The file system does not support direct reads, so that reads must drop their pages. Pages of
    /// the kernel's readahead are in the page cache, and do not count as resident.
    is_uncached: bool,
    check: VersionCheck,
    last_counted: Arc<LastCounted>,
    /// Reads that have not begun are dropped with this.
    interest: Arc<()>,
}

impl FileRange {
    pub(crate) fn new(
        file: Arc<OpenFile>,
        range: std::ops::Range<u64>,
        last_counted: Arc<LastCounted>,
    ) -> Self {
        Self {
            file,
            at: range.start,
            end: range.end,
            window_since: None,
            is_slow: false,
            reading: None,
            resident: None,
            is_unsendable: false,
            is_uncached: false,
            check: VersionCheck::default(),
            last_counted,
            interest: Arc::new(()),
        }
    }

    /// Returns `true` if all bytes were sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.at == self.end
    }

    /// Removes bytes that were sent from the front. After a part of a window, the version of the
    /// file is the one to compare with.
    pub(crate) fn on_sent(&mut self, bytes: u64, tier: Tier) {
        self.at += bytes;
        if tier == Tier::Resident && self.at < self.end {
            self.check.begin(&self.file);
        }
    }

    /// Continues without `sendfile`.
    pub(crate) fn on_unsendable(&mut self) {
        self.is_unsendable = true;
        self.resident = None;
    }

    /// Returns the next piece and its tier.
    pub(crate) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
        thread: &ThreadContext,
    ) -> Poll<Result<(Piece, Tier), BoxError>> {
        let now = Instant::now();
        if let Some(since) = self.window_since.take() {
            self.is_slow = now - since > SLOW;
        }
        if self.reading.is_none() {
            match self.source(self.at, thread, now) {
                WindowSource::PageCache => return Poll::Ready(self.window(now)),
                source => self.read(self.at, source, thread),
            }
        }
        let Some(reading) = &mut self.reading else { return Poll::Pending };
        let read = ready!(Pin::new(reading).poll(context));
        self.reading = None;
        // The job was dropped only if the server stops.
        let window = read.unwrap_or(Err(ReadError::Failed))?;
        self.check.check(&self.file, self.at + window.bytes >= self.end, now)?;
        self.is_uncached |= window.tier == Tier::Uncached;
        thread.counts.fallbacks.add(u64::from(window.is_fallback));
        if window.is_leased() {
            self.read_ahead(self.at + window.bytes, thread, now);
        }
        self.window_since = Some(now);
        let tier = window.tier;
        Poll::Ready(Ok((window.into_piece(), tier)))
    }

    /// Returns bytes of the page cache.
    fn window(&mut self, now: Instant) -> Result<(Piece, Tier), BoxError> {
        let bytes = (window_end(self.at, self.end) - self.at).min(SENT_BYTES_MAX);
        self.check.check(&self.file, self.at + bytes >= self.end, now)?;
        let file = Arc::clone(&self.file) as Arc<_>;
        Ok((Piece::Window(Window { file, offset: self.at, bytes }), Tier::Resident))
    }

    /// Starts to read the window at `from` while another one is sent, if it is not in memory.
    fn read_ahead(&mut self, from: u64, thread: &ThreadContext, now: Instant) {
        if from < self.end && !self.is_slow {
            let source = self.source(from, thread, now);
            if source != WindowSource::PageCache {
                self.read(from, source, thread);
            }
        }
    }

    fn read(&mut self, from: u64, source: WindowSource, thread: &ThreadContext) {
        thread.counts.disk_jobs.add(1);
        let buffer = thread.buffers.lease();
        let (file, end) = (Arc::clone(&self.file), window_end(from, self.end));
        let (sender, receiver) = channel();
        self.reading = Some(receiver);
        thread.shared.disk.submit_big(Arc::downgrade(&self.interest), move || {
            drop(sender.send(read_window(&file, source, from, end, buffer)));
        });
    }

    /// Selects the source of the window at `from`.
    fn source(&mut self, from: u64, thread: &ThreadContext, now: Instant) -> WindowSource {
        if self.is_uncached {
            return WindowSource::Direct;
        }
        let end = window_end(from, self.end);
        let is_known = |&(until, at): &(u64, Instant)| end <= until && now - at < RESIDENT_FOR;
        let now_ms = thread.shared.ms(now);
        let is_window_known = !self.is_unsendable && self.file.resident.contains(from, now_ms);
        if is_window_known || self.resident.as_ref().is_some_and(is_known) {
            return WindowSource::PageCache;
        }
        let seed = u64::from(now.saturating_duration_since(thread.shared.started).subsec_nanos());
        let resident_bytes =
            if self.is_unsendable { 0 } else { resident_bytes(&self.file.fd, from, end, seed) };
        let mut window = WindowState {
            file_bytes: self.file.meta.version.bytes,
            window_bytes: page_span(from, end),
            resident_bytes,
            requests: 0,
        };
        if resident_bytes < window.window_bytes {
            window.requests = self.count(from, thread);
        }
        let source = select(window, thread.shared.rules);
        if source == WindowSource::PageCache {
            self.resident = Some((end, now));
            let whole_end = window_end(from, self.file.meta.version.bytes);
            if from.is_multiple_of(tier::WINDOW_BYTES) && end == whole_end {
                self.file.resident.insert(from, now_ms);
            }
        }
        source
    }

    /// Returns the number of recent requests for the window.
    fn count(&self, from: u64, thread: &ThreadContext) -> u32 {
        let version = &self.file.meta.version;
        let window = (version.device, version.inode, from / tier::WINDOW_BYTES);
        self.last_counted.requests(window, || thread.shared.frequency.count(window))
    }
}
