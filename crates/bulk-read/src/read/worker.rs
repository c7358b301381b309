//! One thread that reads: what is in memory at once, what is not with many requests under way.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::rc::Rc;

use haul_disk::{AlignedBuf, Op, PAGE_BYTES, resident};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::buffers::{BUFFER_BYTES_MAX, Buffers};
use super::engine::{DONTCACHE, Engine};
use super::open::Opener;
use super::plan::Item;
use super::stream::{OpenFile, Stream};
use super::team::{Manner, Run};
use super::{Cache, Consumer, Finished, Opened};
use crate::error::Error;
use crate::status::status;
use crate::tree::FileId;

/// As much as stays in the processor's cache while it is hashed.
pub(super) const PIECE_BYTES: usize = 128 << 10;

/// Less than this of a larger file is wanted for itself: what lies around is not read ahead.
const SHORT_BYTES: u64 = 128 << 10;

/// How much is read between two counts.
const COUNT_BYTES: u64 = 8 << 20;

/// What a worker did since it last told.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Count {
    pub(super) wants: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    pub(super) cold: u64,
}

pub(super) struct Worker<'a, C: Consumer> {
    pub(super) run: &'a Run<'a, C>,
    pub(super) manner: &'a Manner,
    pub(super) opener: Opener<'a>,
    /// The file that was opened last: the next want may be of the same.
    pub(super) last: Option<(FileId, OpenFile)>,
    pub(super) buffer: AlignedBuf,
    pub(super) buffers: Buffers,
    /// Made when the first file is not in memory.
    pub(super) engine: Option<Engine>,
    pub(super) streams: Vec<Option<Stream<C::State>>>,
    /// Streams with more to ask for, the oldest first.
    pub(super) asking: VecDeque<usize>,
    /// How a read says that it does not wait; `None` where that is not to be had.
    pub(super) no_wait: Option<ReadWriteFlags>,
    /// Whether single reads leave no trace in the page cache.
    pub(super) uncached: bool,
    /// In a sweep: enough is under way, and nothing is begun until half of it has come.
    is_sated: bool,
    pub(super) count: Count,
}

/// What came of reading what is in memory.
enum Now {
    Over(Result<Finished, Error>),
    Cold,
}

impl<'a, C: Consumer> Worker<'a, C> {
    pub(super) fn new(run: &'a Run<'a, C>, manner: &'a Manner) -> Self {
        let uncached = run.options.cache == Cache::Spare && !manner.in_memory;
        let plain = if uncached { DONTCACHE } else { ReadWriteFlags::empty() };
        Self {
            run,
            manner,
            opener: Opener::new(run.tree),
            last: None,
            buffer: AlignedBuf::zeroed(PIECE_BYTES),
            buffers: Buffers::new(manner.memory_bytes),
            engine: None,
            streams: Vec::new(),
            asking: VecDeque::new(),
            no_wait: (!manner.in_memory).then_some(plain | ReadWriteFlags::NOWAIT),
            uncached,
            is_sated: false,
            count: Count::default(),
        }
    }

    /// Reads all items that `take` gives, portion by portion.
    pub(super) fn run<'i>(mut self, take: impl Fn() -> Option<&'i [Item]>) {
        let mut portion = take().unwrap_or_default().iter();
        loop {
            self.ask();
            if self.has_room() {
                if let Some(item) = portion.next() {
                    self.start(*item);
                    continue;
                }
                self.tell();
                if let Some(next) = take() {
                    portion = next.iter();
                    continue;
                }
            }
            match self.engine.as_mut().map(Engine::wait) {
                None | Some(Ok(None)) => break,
                Some(Ok(Some(completion))) => self.arrived(completion, true),
                Some(Err(error)) => self.give_up(error),
            }
        }
        self.tell();
    }

    /// Whether another file may be begun. In a sweep, one is asked for whole before the next, and
    /// many are asked for in one go: the kernel makes one request of neighbours.
    fn has_room(&mut self) -> bool {
        let engine = self.engine.as_ref();
        let is_full = engine.is_some_and(Engine::is_full);
        if self.manner.in_sweep {
            let under_way = engine.map_or(0, Engine::in_flight);
            self.is_sated = is_full || self.is_sated && under_way > self.manner.depth / 2;
        }
        let in_order =
            !self.manner.in_sweep || !self.streams.iter().flatten().any(Stream::has_more);
        !is_full && !self.is_sated && self.asking.is_empty() && in_order
    }

    /// Begins a want, and ends it if all of it is in memory.
    fn start(&mut self, item: Item) {
        let want = item.want as usize;
        let wanted = self.run.wants[want];
        let file = wanted.file;
        if self.run.is_stopped() {
            let path = self.run.tree.path(file);
            return self.end(None, want, Err(Error::Stopped { path }));
        }
        let open = match self.open(file) {
            Ok(open) => open,
            Err(error) => return self.end(None, want, Err(error)),
        };
        let sift = self.manner.sift.as_ref();
        if sift.is_some_and(|sift| sift.takes(self.run.tree, self.run.wants, item, &open.fd)) {
            return;
        }
        let state = self.run.consumer.begin(want, &open.opened);
        let mut stream = Stream::new(want, wanted, open, self.manner.no_length, state);
        if self.goes_past_the_cache(&mut stream) {
            return self.begin_cold(stream);
        }
        advise(&stream);
        if self.manner.is_cold && !stream.is_over() {
            // To look again whether it is in memory would ask for it alone.
            stream.was_cold = true;
            return self.begin_cold(stream);
        }
        match self.read_warm(&mut stream) {
            Now::Over(outcome) => self.end(stream.state.take(), want, outcome),
            Now::Cold => self.begin_cold(stream),
        }
    }

    /// Opens a large file anew to read it past the page cache, where that is to be spared and does
    /// not have it. Read through the cache in parts, pages may be dropped before all was taken.
    fn goes_past_the_cache(&mut self, stream: &mut Stream<C::State>) -> bool {
        let wanted = stream.end - stream.start;
        if self.run.options.cache == Cache::Keep
            || self.manner.in_memory
            || self.manner.no_length
            || wanted <= BUFFER_BYTES_MAX as u64
            || !stream.start.is_multiple_of(PAGE_BYTES as u64)
        {
            return false;
        }
        let told = resident(&*stream.file.fd, stream.start, wanted);
        if told.is_ok_and(|told| told.resident_bytes >= wanted) {
            return false;
        }
        let opened = self.opener.open_direct(stream.id);
        let same = |opened: &Opened| {
            (opened.device, opened.inode) == (stream.file.opened.device, stream.file.opened.inode)
        };
        let Some((fd, _)) = opened.filter(|(_, opened)| same(opened)) else { return false };
        stream.file.fd = Rc::new(fd);
        stream.is_direct = true;
        true
    }

    fn open(&mut self, file: FileId) -> Result<OpenFile, Error> {
        if let Some((last, open)) = &self.last
            && *last == file
        {
            return Ok(open.clone());
        }
        let (fd, opened) = self.opener.open(file)?;
        let open = OpenFile::new(fd, opened);
        self.last = Some((file, open.clone()));
        Ok(open)
    }

    /// Reads as long as it need not wait for the device.
    fn read_warm(&mut self, stream: &mut Stream<C::State>) -> Now {
        while !stream.is_over() {
            let room = &mut self.buffer[..stream.step(stream.at, PIECE_BYTES)];
            // What is always in memory, or has no length, is simply read.
            let is_plain = self.manner.in_memory || self.manner.no_length;
            let flags = match self.no_wait {
                _ if is_plain => ReadWriteFlags::empty(),
                Some(flags) => flags,
                None => return Now::Cold,
            };
            match preadv2(&*stream.file.fd, &mut [IoSliceMut::new(room)], stream.at, flags) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !is_plain => {
                    stream.was_cold = stream.at == stream.start;
                    return Now::Cold;
                }
                Err(Errno::OPNOTSUPP) if flags.contains(DONTCACHE) => {
                    self.uncached = false;
                    self.no_wait = Some(ReadWriteFlags::NOWAIT);
                }
                Err(Errno::OPNOTSUPP) if !is_plain => self.no_wait = None,
                Err(errno) => return Now::Over(Err(self.failed(stream, errno.into()))),
                Ok(0) if self.manner.no_length => break,
                Ok(0) => return Now::Over(Err(self.shrunk(stream, stream.at))),
                Ok(read) => {
                    if let Some(outcome) = self.take_piece(stream, read) {
                        return Now::Over(outcome);
                    }
                }
            }
        }
        Now::Over(Ok(finished(stream)))
    }

    /// Passes on what is in the buffer; the outcome, if the want is over with it.
    fn take_piece(
        &mut self,
        stream: &mut Stream<C::State>,
        read: usize,
    ) -> Option<Result<Finished, Error>> {
        let piece = &self.buffer[..stream.came(read)];
        self.count.bytes += piece.len() as u64;
        let state = stream.state.as_mut()?;
        if self.run.consumer.piece(state, stream.want, piece).is_break() {
            return Some(Ok(finished(stream)));
        }
        self.tell_much();
        self.run.is_stopped().then(|| Err(self.stopped(stream)))
    }

    pub(super) fn end(
        &mut self,
        state: Option<C::State>,
        want: usize,
        outcome: Result<Finished, Error>,
    ) {
        match &outcome {
            Ok(_) => self.count.wants += 1,
            Err(_) => self.count.failed += 1,
        }
        self.run.consumer.end(state, want, outcome);
    }

    pub(super) fn tell_much(&mut self) {
        if self.count.bytes >= COUNT_BYTES {
            self.tell();
        }
    }

    fn tell(&mut self) {
        self.run.count(std::mem::take(&mut self.count), self.manner);
    }

    pub(super) fn failed(&self, stream: &Stream<C::State>, source: io::Error) -> Error {
        let path = self.run.tree.path(stream.id);
        haul_disk::Error::new(Op::Read, path, source).at(stream.at, BUFFER_BYTES_MAX).into()
    }

    pub(super) fn shrunk(&self, stream: &Stream<C::State>, end_bytes: u64) -> Error {
        let path = self.run.tree.path(stream.id);
        let now = status(&*stream.file.fd).map_or(end_bytes, |now| now.meta.bytes.min(end_bytes));
        Error::Shrunk { path, opened_bytes: stream.file.opened.bytes, end_bytes: now }
    }

    pub(super) fn stopped(&self, stream: &Stream<C::State>) -> Error {
        Error::Stopped { path: self.run.tree.path(stream.id) }
    }
}

/// Tells the kernel whether to read ahead of what is asked for.
fn advise<S>(stream: &Stream<S>) {
    let wanted = stream.end - stream.start;
    let is_short = wanted <= SHORT_BYTES && stream.file.opened.bytes > wanted.saturating_mul(2);
    if stream.file.is_random.replace(is_short) != is_short {
        let advice = if is_short { Advice::Random } else { Advice::Normal };
        // Advice that is not taken costs time alone.
        fadvise(&*stream.file.fd, 0, None, advice).ok();
    }
}

pub(super) fn finished<S>(stream: &Stream<S>) -> Finished {
    Finished { bytes: stream.at - stream.start, grew: stream.grew }
}
