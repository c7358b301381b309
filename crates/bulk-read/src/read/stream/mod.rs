//! Tracks a request being read: the ranges submitted, completed and delivered. No I/O.

mod hole;
mod piece;

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use haul_disk::AlignedBuf;

use super::buffers::BUFFER_BYTES_MAX;
use super::open::OpenFile;
use super::request::{FileStatus, ReadRequest, ReadSummary};
use crate::tree::FileId;
pub(super) use hole::HOLE_BYTES_MIN;
use hole::NextHole;
pub(super) use piece::{Part, Piece};

/// The number of submitted but undelivered bytes at which a request submits no further reads.
const WINDOW_BYTES: u64 = 4 << 20;

/// The length in bytes of the first read of a stream: a consumer that ends a request early, because
/// the first bytes of two files differ, gets them without a longer read.
const FIRST_BYTES: usize = 512 << 10;

/// A request being read.
#[derive(Debug)]
pub(super) struct Stream<S> {
    /// The index of the request.
    pub(super) request: usize,
    pub(super) id: FileId,
    file: OpenFile,
    /// The state of the consumer; `None` after the request has ended.
    state: Option<S>,
    /// The range requested, cut at the end of the file.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The offset of the next byte to deliver to the consumer.
    position: u64,
    /// The offset of the next read to submit.
    next: u64,
    /// Completed reads and passed holes not delivered yet, by offset.
    completed: BTreeMap<u64, Piece>,
    /// The first hole at or after the next byte to read.
    hole: NextHole,
    /// Ranges to submit again, as start and end: the missing ends of short reads, and reads that
    /// could not be submitted.
    retries: Vec<(u64, u64)>,
    in_flight: usize,
    grew: bool,
    /// `true` if the first read found no bytes in the page cache.
    was_cold: bool,
    /// `true` if the file is read with `O_DIRECT`.
    is_direct: bool,
}

impl<S> Stream<S> {
    /// Creates a stream; `no_length` ignores the length that the file system reports.
    pub(super) fn new(
        request: usize,
        range: ReadRequest,
        file: OpenFile,
        no_length: bool,
        state: S,
    ) -> Self {
        let length = if no_length { u64::MAX } else { file.status.bytes };
        let start = range.offset.min(length);
        let end = start.saturating_add(range.bytes).min(length);
        Self {
            request,
            id: range.file,
            hole: NextHole::of(&file.status, end - start),
            file,
            state: Some(state),
            start,
            end,
            position: start,
            next: start,
            completed: BTreeMap::new(),
            retries: Vec::new(),
            in_flight: 0,
            grew: false,
            was_cold: false,
            is_direct: false,
        }
    }

    /// Returns the open file.
    pub(super) fn fd(&self) -> &Rc<OwnedFd> {
        &self.file.fd
    }

    /// Returns the status of the file when it was opened.
    pub(super) fn status(&self) -> &FileStatus {
        &self.file.status
    }

    /// Returns the length of the requested range, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Returns the offset of the next byte to deliver to the consumer.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the result of the request so far.
    pub(super) fn summary(&self) -> ReadSummary {
        ReadSummary { bytes: self.position - self.start, grew: self.grew }
    }

    /// Returns the state of the consumer; `None` after the request has ended.
    pub(super) fn state_mut(&mut self) -> Option<&mut S> {
        self.state.as_mut()
    }

    /// Ends the request and returns the state of the consumer.
    pub(super) fn take_state(&mut self) -> Option<S> {
        self.state.take()
    }

    /// `true` if the request has ended; reads may still be in flight.
    pub(super) fn has_ended(&self) -> bool {
        self.state.is_none()
    }

    /// Records that the page cache did not contain the bytes of a read.
    pub(super) fn record_uncached(&mut self) {
        self.was_cold = self.position == self.start;
    }

    /// `true` if the first read found no bytes in the page cache.
    pub(super) fn was_cold(&self) -> bool {
        self.was_cold
    }

    /// Replaces the open file by `fd`, which was opened with `O_DIRECT`.
    pub(super) fn use_direct(&mut self, fd: OwnedFd) {
        self.file.fd = Rc::new(fd);
        self.is_direct = true;
    }

    /// `true` if the file is read with `O_DIRECT`.
    pub(super) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Records the readahead advice of the file. Returns `true` if it differs from the previous
    /// advice.
    pub(super) fn set_random(&self, is_random: bool) -> bool {
        self.file.set_random(is_random)
    }

    /// Counts a read as in flight.
    pub(super) fn read_submitted(&mut self) {
        self.in_flight += 1;
    }

    /// Counts a read in flight as completed.
    pub(super) fn read_completed(&mut self) {
        self.in_flight -= 1;
    }

    /// `true` if reads are in flight.
    pub(super) fn has_reads_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    pub(super) fn is_done(&self) -> bool {
        self.position >= self.end
    }

    /// `true` if the request extends to the end of the file. Such a request reads one extra byte
    /// after the end, to detect that the file grew.
    fn ends_at_eof(&self) -> bool {
        self.end == self.file.status.bytes
    }

    /// Returns the range in which to search the next hole; `None` if no search is necessary.
    pub(super) fn hole_search(&self) -> Option<Range<u64>> {
        // Before the first asynchronous read, `next` lags behind.
        let from = self.next.max(self.position);
        (self.hole.is_unknown() && from < self.end).then_some(from..self.end)
    }

    /// Records the result of a search for the next hole.
    pub(super) fn set_hole(&mut self, hole: Option<Range<u64>>) {
        self.hole = hole.map_or(NextHole::None, NextHole::At);
    }

    /// Records whether the file has grown, after a search found a hole up to the end of the range.
    pub(super) fn record_length(&mut self, bytes: u64) {
        self.grew |= self.ends_at_eof() && bytes > self.end;
    }

    /// If the next byte to deliver by a synchronous read is in a hole, passes the hole and returns
    /// its length.
    pub(super) fn pass_hole(&mut self) -> Option<u64> {
        let range = self.hole.take_at(self.position)?;
        self.position = range.end;
        Some(range.end - range.start)
    }

    /// If the next byte to submit is in a hole, queues the zeros of the hole for delivery.
    pub(super) fn queue_hole(&mut self) -> bool {
        let Some(range) = self.hole.take_at(self.next) else { return false };
        self.next = range.end;
        self.completed.insert(range.start, Piece::Zeros(range.end - range.start));
        true
    }

    /// Returns the length in bytes of the next read at `from`: the remaining bytes before the next
    /// hole, or the remaining bytes plus the extra byte, at most `bytes_max`. If only the extra
    /// byte would remain for the next read, this read is shortened.
    pub(super) fn read_len(&self, from: u64, bytes_max: usize) -> usize {
        if let Some(bytes) = self.hole.bytes_before(from) {
            return usize::try_from(bytes).unwrap_or(usize::MAX).min(bytes_max);
        }
        let left = (self.end - from).saturating_add(u64::from(self.ends_at_eof()));
        match usize::try_from(left).unwrap_or(usize::MAX) {
            left if left == bytes_max + 1 => bytes_max / 2,
            left => left.min(bytes_max),
        }
    }

    /// Switches from synchronous to asynchronous reads.
    pub(super) fn start_async(&mut self) {
        self.next = self.position;
    }

    /// `true` if the request has ranges that were not submitted yet.
    pub(super) fn has_unsubmitted(&self) -> bool {
        self.state.is_some() && (self.next < self.end || !self.retries.is_empty())
    }

    /// Returns the next range to submit; returns `None` if all are submitted or the window is full.
    pub(super) fn next_part(&mut self) -> Option<Part> {
        self.state.as_ref()?;
        if let Some((offset, end)) = self.retries.pop() {
            let bytes = end - offset;
            return Some(Part { offset, bytes: usize::try_from(bytes).unwrap_or(usize::MAX) });
        }
        if self.next >= self.end || self.next - self.position >= WINDOW_BYTES {
            return None;
        }
        let offset = self.next;
        let is_first = self.position == self.start && offset == self.start;
        let longest = if is_first { FIRST_BYTES } else { BUFFER_BYTES_MAX };
        let bytes = self.read_len(offset, longest);
        self.next = offset.saturating_add(bytes as u64).min(self.end);
        Some(Part { offset, bytes })
    }

    /// Queues a part again that could not be submitted.
    pub(super) fn put_back(&mut self, part: Part) {
        self.retries.push((part.offset, part.offset + part.bytes as u64));
    }

    /// Records a completed read of `part` that returned at least one byte.
    pub(super) fn complete(&mut self, part: Part, buffer: AlignedBuf, bytes: usize) {
        let read_end = part.offset + bytes as u64;
        let part_end = (part.offset + part.bytes as u64).min(self.end);
        if read_end < part_end {
            self.retries.push((read_end, part_end));
        }
        self.grew |= self.ends_at_eof() && read_end > self.end;
        self.completed.insert(part.offset, Piece::Data(buffer, bytes));
    }

    /// Returns the next bytes to deliver; returns `None` if their read is not completed.
    pub(super) fn next_piece(&mut self) -> Option<Piece> {
        let piece = self.completed.remove(&self.position)?;
        let piece = piece.cut(self.end - self.position);
        self.position += piece.bytes();
        Some(piece)
    }

    /// Advances by `bytes` bytes of a synchronous read and returns the number of bytes to deliver,
    /// which excludes the extra byte.
    pub(super) fn advance(&mut self, bytes: usize) -> usize {
        let room = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        self.grew |= self.ends_at_eof() && bytes > room;
        self.position += bytes.min(room) as u64;
        bytes.min(room)
    }

    /// Drops the remaining work and returns the buffers of completed reads not delivered.
    pub(super) fn abort(&mut self) -> impl Iterator<Item = AlignedBuf> {
        self.retries.clear();
        std::mem::take(&mut self.completed).into_values().filter_map(Piece::into_buffer)
    }
}

#[cfg(test)]
mod tests;
