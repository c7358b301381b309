//! Runs a reader thread, which reads cached data synchronously and other data asynchronously.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};

use haul_disk::{AlignedBuf, Op, PAGE_BYTES, resident};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::buffers::{BUFFER_BYTES_MAX, Buffers};
use super::consumer::Consumer;
use super::engine::{DONTCACHE, Engine};
use super::open::{OpenFile, Opener};
use super::options::CacheMode;
use super::plan::Item;
use super::request::{FileStatus, ReadSummary};
use super::run::{Count, Pass, Run};
use super::stream::Stream;
use super::window::Window;
use crate::error::Error;
use crate::status::status;
use crate::tree::FileId;

/// The maximum length of a piece, in bytes: a piece stays in the CPU cache while the consumer
/// hashes it.
pub(super) const PIECE_BYTES: usize = 128 << 10;

/// The maximum length in bytes of a request for which readahead is disabled, if it covers less than
/// half of the file.
const SHORT_BYTES: u64 = 128 << 10;

/// The number of bytes read after which a worker reports progress again.
const REPORT_BYTES: u64 = 8 << 20;

pub(super) struct Worker<'a, C: Consumer> {
    pub(super) run: &'a Run<'a, C>,
    pub(super) pass: &'a Pass,
    pub(super) opener: Opener<'a>,
    /// The file opened last, kept open because the next request may be for the same file.
    pub(super) last: Option<(FileId, OpenFile)>,
    pub(super) buffer: AlignedBuf,
    pub(super) buffers: Buffers,
    /// The queue of asynchronous reads, created for the first uncached file.
    pub(super) engine: Option<Engine>,
    pub(super) streams: Vec<Option<Stream<C::State>>>,
    /// Streams with reads to submit, the oldest first.
    pub(super) submittable: VecDeque<usize>,
    /// The flags of a non-blocking read; `None` if the file system does not support non-blocking
    /// reads.
    pub(super) no_wait: Option<ReadWriteFlags>,
    /// `true` to read with `RWF_DONTCACHE`.
    pub(super) uncached: bool,
    /// The window in which a sweep starts new files.
    window: Window,
    pub(super) count: Count,
}

/// The outcome of the synchronous reads of a request.
enum SyncRead {
    Done(Result<ReadSummary, Error>),
    Cold,
}

impl<'a, C: Consumer> Worker<'a, C> {
    pub(super) fn new(run: &'a Run<'a, C>, pass: &'a Pass) -> Self {
        let uncached = run.options.cache == CacheMode::Preserve && !pass.in_memory;
        let plain = if uncached { DONTCACHE } else { ReadWriteFlags::empty() };
        Self {
            run,
            pass,
            opener: Opener::new(run.tree),
            last: None,
            buffer: AlignedBuf::zeroed(PIECE_BYTES),
            buffers: Buffers::new(pass.memory_bytes),
            engine: None,
            streams: Vec::new(),
            submittable: VecDeque::new(),
            no_wait: (!pass.in_memory).then_some(plain | ReadWriteFlags::NOWAIT),
            uncached,
            window: Window::new(pass.depth),
            count: Count::default(),
        }
    }

    /// Reads all batches returned by `next_batch`.
    pub(super) fn run<'i>(mut self, next_batch: impl Fn() -> Option<&'i [Item]>) {
        let mut batch = next_batch().unwrap_or_default().iter();
        loop {
            self.submit();
            if self.has_room() {
                if let Some(item) = batch.next() {
                    self.start(*item);
                    continue;
                }
                self.report();
                if let Some(next) = next_batch() {
                    batch = next.iter();
                    continue;
                }
            }
            match self.engine.as_mut().map(Engine::wait) {
                None | Some(Ok(None)) => break,
                Some(Ok(Some(completion))) => self.complete(completion, true),
                Some(Err(error)) => self.abort(error),
            }
        }
        self.report();
    }

    /// `true` if another file may be started. A sweep submits each file completely before the next
    /// file, and submits many reads at once, so that the kernel merges adjacent ones.
    fn has_room(&mut self) -> bool {
        let engine = self.engine.as_ref();
        let is_full = engine.is_some_and(Engine::is_full);
        let in_flight = engine.map_or(0, Engine::in_flight);
        let is_closed = self.pass.in_sweep && !self.window.is_open(in_flight);
        let in_order =
            !self.pass.in_sweep || !self.streams.iter().flatten().any(Stream::has_unsubmitted);
        !is_full && !is_closed && self.submittable.is_empty() && in_order
    }

    /// Starts a request. Completes the request if its bytes are cached; otherwise defers it or
    /// continues with asynchronous reads.
    fn start(&mut self, item: Item) {
        let request = item.request as usize;
        let range = self.run.requests[request];
        let file = range.file;
        if self.run.is_stopped() {
            let path = self.run.tree.path(file);
            return self.end(None, request, Err(Error::Stopped { path }));
        }
        let open = match self.open(file) {
            Ok(open) => open,
            Err(error) => return self.end(None, request, Err(error)),
        };
        let deferral = self.pass.deferral.as_ref();
        if deferral.is_some_and(|deferral| {
            deferral.defer(self.run.tree, self.run.requests, item, &open.fd)
        }) {
            return;
        }
        let state = self.run.consumer.begin(request, &open.status);
        let mut stream = Stream::new(request, range, open, self.pass.no_length, state);
        if self.switch_to_direct(&mut stream) {
            return self.start_async(stream);
        }
        advise(&stream);
        if self.pass.is_cold && !stream.is_done() {
            // A synchronous attempt would start readahead for this file alone, out of order.
            stream.record_uncached();
            return self.start_async(stream);
        }
        match self.read_cached(&mut stream) {
            SyncRead::Done(outcome) => self.end(stream.take_state(), request, outcome),
            SyncRead::Cold => self.start_async(stream),
        }
    }

    /// Reopens a large uncached file with `O_DIRECT` if the page cache has to be preserved:
    /// buffered reads in parts might drop pages before they are delivered. Returns `true` on
    /// success.
    fn switch_to_direct(&mut self, stream: &mut Stream<C::State>) -> bool {
        let bytes = stream.bytes();
        if self.run.options.cache == CacheMode::Normal
            || self.pass.in_memory
            || self.pass.no_length
            || bytes <= BUFFER_BYTES_MAX as u64
            || !stream.start.is_multiple_of(PAGE_BYTES as u64)
        {
            return false;
        }
        let residency = resident(&**stream.fd(), stream.start, bytes);
        if residency.is_ok_and(|residency| residency.resident_bytes >= bytes) {
            return false;
        }
        let opened = self.opener.open_direct(stream.id);
        let expected = (stream.status().device, stream.status().inode);
        let is_same = |status: &FileStatus| (status.device, status.inode) == expected;
        let Some((fd, _)) = opened.filter(|(_, status)| is_same(status)) else { return false };
        stream.use_direct(fd);
        true
    }

    fn open(&mut self, file: FileId) -> Result<OpenFile, Error> {
        if let Some((last, open)) = &self.last
            && *last == file
        {
            return Ok(open.clone());
        }
        let (fd, status) = self.opener.open(file)?;
        let open = OpenFile::new(fd, status);
        self.last = Some((file, open.clone()));
        Ok(open)
    }

    /// Reads synchronously until a read would wait for the device.
    fn read_cached(&mut self, stream: &mut Stream<C::State>) -> SyncRead {
        while !stream.is_done() {
            if let Err(error) = self.locate_hole(stream) {
                return SyncRead::Done(Err(error));
            }
            if let Some(bytes) = stream.pass_hole() {
                if let Some(outcome) = self.deliver_zeros(stream, bytes) {
                    return SyncRead::Done(outcome);
                }
                continue;
            }
            let room = &mut self.buffer[..stream.read_len(stream.position(), PIECE_BYTES)];
            // Files of in-memory file systems, and files without a reported length, are read with
            // plain calls.
            let is_plain = self.pass.in_memory || self.pass.no_length;
            let flags = match self.no_wait {
                _ if is_plain => ReadWriteFlags::empty(),
                Some(flags) => flags,
                None => return SyncRead::Cold,
            };
            match preadv2(&**stream.fd(), &mut [IoSliceMut::new(room)], stream.position(), flags) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !is_plain => {
                    stream.record_uncached();
                    return SyncRead::Cold;
                }
                Err(Errno::OPNOTSUPP) if flags.contains(DONTCACHE) => {
                    self.uncached = false;
                    self.no_wait = Some(ReadWriteFlags::NOWAIT);
                }
                Err(Errno::OPNOTSUPP) if !is_plain => self.no_wait = None,
                Err(errno) => return SyncRead::Done(Err(self.failed(stream, errno.into()))),
                Ok(0) if self.pass.no_length => break,
                Ok(0) => return SyncRead::Done(Err(self.shrunk(stream, stream.position()))),
                Ok(read) => {
                    if let Some(outcome) = self.deliver_piece(stream, read) {
                        return SyncRead::Done(outcome);
                    }
                }
            }
        }
        SyncRead::Done(Ok(stream.summary()))
    }

    /// Delivers the first `read` bytes of the buffer; returns the outcome if the request thereby
    /// ends.
    fn deliver_piece(
        &mut self,
        stream: &mut Stream<C::State>,
        read: usize,
    ) -> Option<Result<ReadSummary, Error>> {
        let piece = &self.buffer[..stream.advance(read)];
        self.count.bytes += piece.len() as u64;
        let request = stream.request;
        let state = stream.state_mut()?;
        if self.run.consumer.piece(state, request, piece).is_break() {
            return Some(Ok(stream.summary()));
        }
        self.report_if_due();
        self.run.is_stopped().then(|| Err(self.stopped(stream)))
    }

    pub(super) fn end(
        &mut self,
        state: Option<C::State>,
        request: usize,
        outcome: Result<ReadSummary, Error>,
    ) {
        match &outcome {
            Ok(_) => self.count.requests += 1,
            Err(_) => self.count.failed += 1,
        }
        self.run.consumer.end(state, request, outcome);
    }

    pub(super) fn report_if_due(&mut self) {
        if self.count.bytes >= REPORT_BYTES {
            self.report();
        }
    }

    fn report(&mut self) {
        self.run.add_counts(std::mem::take(&mut self.count), self.pass);
    }

    pub(super) fn failed(&self, stream: &Stream<C::State>, source: io::Error) -> Error {
        let path = self.run.tree.path(stream.id);
        haul_disk::Error::new(Op::Read, path, source).at(stream.position(), BUFFER_BYTES_MAX).into()
    }

    pub(super) fn shrunk(&self, stream: &Stream<C::State>, end_bytes: u64) -> Error {
        let path = self.run.tree.path(stream.id);
        let end_bytes =
            status(&**stream.fd()).map_or(end_bytes, |status| status.meta.bytes.min(end_bytes));
        Error::Shrunk { path, opened_bytes: stream.status().bytes, end_bytes }
    }

    pub(super) fn stopped(&self, stream: &Stream<C::State>) -> Error {
        Error::Stopped { path: self.run.tree.path(stream.id) }
    }
}

/// Disables readahead for a request for a short part of a larger file, and enables it otherwise.
fn advise<S>(stream: &Stream<S>) {
    let bytes = stream.bytes();
    let is_short = bytes <= SHORT_BYTES && stream.status().bytes > bytes.saturating_mul(2);
    if stream.set_random(is_short) {
        let advice = if is_short { Advice::Random } else { Advice::Normal };
        // An error is ignored: without the advice the read is only slower.
        fadvise(&**stream.fd(), 0, None, advice).ok();
    }
}
