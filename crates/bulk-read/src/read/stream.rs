//! One want that is being read: what was asked for, what has come, and what goes to the consumer
//! next. No I/O.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use haul_disk::AlignedBuf;

use super::buffers::BUFFER_BYTES_MAX;
use super::{Opened, Want};
use crate::tree::FileId;

/// How much of one want is under way at a time.
const WINDOW_BYTES: u64 = 4 << 20;

/// An open file.
#[derive(Debug, Clone)]
pub(super) struct OpenFile {
    pub(super) fd: Rc<OwnedFd>,
    pub(super) opened: Opened,
    /// The kernel was told to read nothing ahead.
    pub(super) is_random: Rc<Cell<bool>>,
}

impl OpenFile {
    pub(super) fn new(fd: OwnedFd, opened: Opened) -> Self {
        Self { fd: Rc::new(fd), opened, is_random: Rc::default() }
    }
}

/// One want on its way.
#[derive(Debug)]
pub(super) struct Stream<S> {
    /// Its number.
    pub(super) want: usize,
    pub(super) id: FileId,
    pub(super) file: OpenFile,
    /// The consumer's part, until the want is over.
    pub(super) state: Option<S>,
    /// Where the bytes begin and end that are wanted.
    pub(super) start: u64,
    pub(super) end: u64,
    /// What goes to the consumer next.
    pub(super) at: u64,
    /// What is asked for next.
    next: u64,
    /// What came before its turn.
    early: BTreeMap<u64, (AlignedBuf, usize)>,
    /// Parts of answers that fell short.
    again: Vec<(u64, u64)>,
    pub(super) in_flight: usize,
    pub(super) grew: bool,
    /// Nothing of it was in memory at first.
    pub(super) was_cold: bool,
    /// It is read past the page cache.
    pub(super) is_direct: bool,
}

/// A part of a file to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) bytes: usize,
}

impl<S> Stream<S> {
    /// A want from an open file; `no_length`: what the file says of its length means nothing.
    pub(super) fn new(
        want: usize,
        wanted: Want,
        file: OpenFile,
        no_length: bool,
        state: S,
    ) -> Self {
        let length = if no_length { u64::MAX } else { file.opened.bytes };
        let start = wanted.offset.min(length);
        let end = start.saturating_add(wanted.bytes).min(length);
        Self {
            want,
            id: wanted.file,
            file,
            state: Some(state),
            start,
            end,
            at: start,
            next: start,
            early: BTreeMap::new(),
            again: Vec::new(),
            in_flight: 0,
            grew: false,
            was_cold: false,
            is_direct: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.at >= self.end
    }

    /// Whether the file should end where the want does. Then a byte more is asked for, to see
    /// whether it has grown.
    fn is_to_end(&self) -> bool {
        self.end == self.file.opened.bytes
    }

    /// How much to read next, from there on: what is left, and the byte more, where `bytes_max`
    /// has room for both. The byte is never asked for alone.
    pub(super) fn step(&self, from: u64, bytes_max: usize) -> usize {
        let left = (self.end - from).saturating_add(u64::from(self.is_to_end()));
        match usize::try_from(left).unwrap_or(usize::MAX) {
            left if left == bytes_max + 1 => bytes_max / 2,
            left => left.min(bytes_max),
        }
    }

    /// From here on it is read by requests.
    pub(super) fn go_on_by_requests(&mut self) {
        self.next = self.at;
    }

    /// Whether there is more to ask for, now or later.
    pub(super) fn has_more(&self) -> bool {
        self.state.is_some() && (self.next < self.end || !self.again.is_empty())
    }

    /// What to ask for next; `None` when all is asked for, or enough is under way.
    pub(super) fn part(&mut self) -> Option<Part> {
        self.state.as_ref()?;
        if let Some((offset, end)) = self.again.pop() {
            let bytes = end - offset;
            return Some(Part { offset, bytes: usize::try_from(bytes).unwrap_or(usize::MAX) });
        }
        if self.next >= self.end || self.next - self.at >= WINDOW_BYTES {
            return None;
        }
        let offset = self.next;
        let bytes = self.step(offset, BUFFER_BYTES_MAX);
        self.next = offset.saturating_add(bytes as u64).min(self.end);
        Some(Part { offset, bytes })
    }

    /// The part could not be asked for now: it comes again.
    pub(super) fn put_back(&mut self, part: Part) {
        self.again.push((part.offset, part.offset + part.bytes as u64));
    }

    /// Takes what came for `part`, more than nothing.
    pub(super) fn arrived(&mut self, part: Part, buffer: AlignedBuf, bytes: usize) {
        let (came, asked) =
            (part.offset + bytes as u64, (part.offset + part.bytes as u64).min(self.end));
        if came < asked {
            self.again.push((came, asked));
        }
        self.grew |= self.is_to_end() && came > self.end;
        self.early.insert(part.offset, (buffer, bytes));
    }

    /// The next bytes for the consumer, if they have come: how many of the buffer.
    pub(super) fn piece(&mut self) -> Option<(AlignedBuf, usize)> {
        let (buffer, bytes) = self.early.remove(&self.at)?;
        let bytes = usize::try_from(self.end - self.at).map_or(bytes, |room| bytes.min(room));
        self.at += bytes as u64;
        Some((buffer, bytes))
    }

    /// Goes on behind what was read at once: how much of it is for the consumer.
    pub(super) fn came(&mut self, bytes: usize) -> usize {
        let room = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        self.grew |= self.is_to_end() && bytes > room;
        self.at += bytes.min(room) as u64;
        bytes.min(room)
    }

    /// What came and is not wanted any more.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = AlignedBuf> {
        self.again.clear();
        std::mem::take(&mut self.early).into_values().map(|(buffer, _)| buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1 << 10;
    const MAX: u64 = BUFFER_BYTES_MAX as u64;

    fn stream(file_bytes: u64, offset: u64, asked: u64) -> Stream<()> {
        let fd = tempfile::tempfile().unwrap().into();
        let opened = Opened { bytes: file_bytes, ..Opened::default() };
        let wanted = Want { file: FileId(0), offset, bytes: asked };
        Stream::new(0, wanted, OpenFile::new(fd, opened), false, ())
    }

    /// All that can be asked for now.
    fn parts(stream: &mut Stream<()>) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| stream.part()).map(|part| (part.offset, part.bytes)).collect()
    }

    fn buffer() -> AlignedBuf {
        AlignedBuf::zeroed(BUFFER_BYTES_MAX)
    }

    #[test]
    fn a_byte_more_is_asked_for_at_the_end_of_the_file_alone() {
        assert_eq!(parts(&mut stream(5000, 0, u64::MAX)), [(0, 5001)]);
        assert_eq!(parts(&mut stream(5000, 0, 4999)), [(0, 4999)]);
        assert_eq!(parts(&mut stream(5000, 4000, 4000)), [(4000, 1001)]);
        assert_eq!(parts(&mut stream(5000, 9000, 4000)), []);
        let two = [(0, 524_288), (MAX, 262_144), (MAX + MAX / 2, 262_145)];
        assert_eq!(parts(&mut stream(2 * MAX, 0, u64::MAX)), two);
    }

    #[test]
    fn a_window_is_under_way_and_no_more() {
        let mut stream = stream(100 << 20, 0, u64::MAX);
        let window = parts(&mut stream);
        assert_eq!(window.len() as u64 * MAX, WINDOW_BYTES);
        stream.arrived(Part { offset: MAX, bytes: BUFFER_BYTES_MAX }, buffer(), BUFFER_BYTES_MAX);
        assert!(stream.piece().is_none(), "the first has not come");
        assert_eq!(parts(&mut stream), []);
        stream.arrived(Part { offset: 0, bytes: BUFFER_BYTES_MAX }, buffer(), BUFFER_BYTES_MAX);
        assert!(stream.piece().is_some() && stream.piece().is_some() && stream.piece().is_none());
        assert_eq!(stream.at, 2 * MAX);
        assert_eq!(parts(&mut stream), [(WINDOW_BYTES, 524_288), (WINDOW_BYTES + MAX, 524_288)]);
    }

    #[test]
    fn what_falls_short_is_asked_for_again() {
        let mut stream = stream(300 * K, 0, u64::MAX);
        let all = stream.part().unwrap();
        assert_eq!(all, Part { offset: 0, bytes: 300 * 1024 + 1 });
        stream.arrived(all, buffer(), 100 * 1024);
        assert_eq!(stream.piece().map(|(_, bytes)| bytes), Some(100 * 1024));
        let rest = stream.part().unwrap();
        assert_eq!(rest, Part { offset: 100 * K, bytes: 200 * 1024 });
        stream.arrived(rest, buffer(), 200 * 1024);
        assert_eq!(stream.piece().map(|(_, bytes)| bytes), Some(200 * 1024));
        assert!(stream.is_over() && !stream.grew && stream.part().is_none());
    }

    #[test]
    fn a_byte_more_than_there_was_means_it_grew_and_is_not_passed_on() {
        let mut stream = stream(5000, 0, u64::MAX);
        let part = stream.part().unwrap();
        stream.arrived(part, buffer(), 5001);
        assert!(stream.grew);
        assert_eq!(stream.piece().map(|(_, bytes)| bytes), Some(5000));
    }

    #[test]
    fn what_has_no_room_comes_again_and_what_is_given_up_does_not() {
        let mut stream = stream(5000, 0, u64::MAX);
        let part = stream.part().unwrap();
        assert!(stream.part().is_none());
        stream.put_back(part);
        assert_eq!(stream.part(), Some(part));
        stream.put_back(part);
        assert_eq!(stream.give_up().count(), 0);
        stream.state = None;
        assert!(stream.part().is_none());
    }
}
