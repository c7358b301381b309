//! Holds the lines of a log in memory until they are written. Callers copy lines into the active
//! buffer, holding a lock only for the copy. The background thread takes buffers that are full or
//! whose lines have waited long enough, writes them, and returns them empty.
//!
//! An append costs a lock and a copy. It makes a system call only in three cases: to wake the
//! background thread for the first line in an empty buffer, to notify it of a full buffer, and to
//! wait for a free buffer.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::options::{Options, WhenFull};
use crate::stats::Stats;

/// The number of bytes allocated after each buffer for a note, the line that reports dropped lines.
const NOTE_BYTES: usize = 160;

/// The state that callers and the background thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    /// Notifies the background thread that it has work.
    pub(crate) work: Condvar,
    /// Notifies callers that a buffer is free or that the append of a long line has ended.
    pub(crate) room: Condvar,
    /// Notifies callers that a write, a sync or a rotation has succeeded or failed.
    pub(crate) done: Condvar,
    pub(crate) buffer_bytes: usize,
    when_full: WhenFull,
}

/// The number of dropped lines, and of their bytes, that no note in the log reports yet.
#[derive(Debug, Default)]
struct DropCount {
    lines: u64,
    bytes: u64,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) active: Vec<u8>,
    /// The length in bytes up to which [`Shared::append`] fills `active` without further checks; 0
    /// while every append must make these checks, for example for lines dropped before.
    limit: usize,
    pub(crate) full: VecDeque<Vec<u8>>,
    /// The free buffers, used as a stack, because the buffer released last is most likely still in
    /// the CPU cache.
    pub(crate) free: Vec<Vec<u8>>,
    dropped: DropCount,
    /// `true` while a thread appends a line longer than a buffer in several pieces.
    is_long_append_active: bool,
    /// `true` while the background thread sleeps and the active buffer is empty. The next append
    /// must wake it, so that it sets the time at which to write the line.
    pub(crate) is_idle: bool,
    pub(crate) is_closing: bool,
    /// The ends of the accepted, written and synced bytes, as positions in the stream of all bytes
    /// appended since the log was opened.
    pub(crate) accepted: u64,
    pub(crate) written: u64,
    pub(crate) synced: u64,
    /// Positions in the same stream that waiting callers have requested: the bytes before
    /// `write_target` must be written. Once the bytes before `sync_target` or `rotate_target` are
    /// written, a sync or a rotation must follow.
    pub(crate) write_target: u64,
    pub(crate) sync_target: Option<u64>,
    pub(crate) rotate_target: Option<u64>,
    /// The number of bytes written before the last requested rotation. They are in closed files or,
    /// if a line was incomplete, in a file that is closed when this line ends.
    pub(crate) rotated_to: u64,
    pub(crate) syncs_done: u64,
    pub(crate) rotations_done: u64,
    /// `true` if a failed write must be retried at once, because a caller waits for it.
    pub(crate) is_retry_requested: bool,
    /// The error of the last attempt to write; `None` if it succeeded.
    pub(crate) write_error: Option<Arc<haul_disk::Error>>,
    pub(crate) write_failures: u64,
    /// The error of the last failed sync. `is_sync_error_unreported` is `true` until a caller has
    /// received it.
    pub(crate) sync_error: Option<Arc<haul_disk::Error>>,
    pub(crate) sync_failures: u64,
    pub(crate) is_sync_error_unreported: bool,
    /// `true` while closed files wait for their compression.
    pub(crate) is_compressing: bool,
    /// `true` if the background thread must finish the compression of a file.
    pub(crate) has_outcome: bool,
    /// `true` if the background thread has ended.
    pub(crate) is_terminated: bool,
    pub(crate) last_error: Option<Error>,
    pub(crate) stats: Stats,
}

impl Shared {
    pub(crate) fn new(options: &Options) -> Self {
        let buffer_bytes = options.buffer_bytes as usize;
        // Each buffer is filled once, so that the kernel maps its pages now and no append causes
        // page faults.
        let buffer = || {
            let mut buffer = Vec::with_capacity(buffer_bytes + NOTE_BYTES);
            buffer.resize(buffer_bytes, b'\n');
            buffer.clear();
            buffer
        };
        let state = State {
            active: buffer(),
            limit: buffer_bytes,
            full: VecDeque::with_capacity(options.buffers as usize),
            free: (1..options.buffers).map(|_| buffer()).collect(),
            dropped: DropCount::default(),
            is_long_append_active: false,
            is_idle: false,
            is_closing: false,
            accepted: 0,
            written: 0,
            synced: 0,
            write_target: 0,
            sync_target: None,
            rotate_target: None,
            rotated_to: 0,
            syncs_done: 0,
            rotations_done: 0,
            is_retry_requested: false,
            write_error: None,
            write_failures: 0,
            sync_error: None,
            sync_failures: 0,
            is_sync_error_unreported: false,
            is_compressing: false,
            has_outcome: false,
            is_terminated: false,
            last_error: None,
            stats: Stats::default(),
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Condvar::new(),
            done: Condvar::new(),
            buffer_bytes,
            when_full: options.when_full,
        }
    }

    /// Appends lines. If they fit below `limit`, this takes only a lock, a comparison and a copy.
    pub(crate) fn append(&self, lines: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        if state.active.len() + lines.len() > state.limit {
            return self.append_contended(state, lines);
        }
        state.push(lines);
        state.stats.appends += 1;
        self.wake_if_idle(state);
        Ok(())
    }

    /// Wakes the background thread if it fell asleep while the active buffer was empty. This
    /// happens at most once for each buffer that is written.
    fn wake_if_idle(&self, mut state: MutexGuard<'_, State>) {
        if state.is_idle {
            state.is_idle = false;
            drop(state);
            self.work.notify_one();
        }
    }

    fn append_contended(&self, mut state: MutexGuard<'_, State>, lines: &[u8]) -> Result<()> {
        loop {
            if state.is_closing {
                return Err(Error::Closed);
            }
            if state.is_long_append_active {
                self.room.wait(&mut state);
                continue;
            }
            if lines.len() > self.buffer_bytes && (!state.free.is_empty() || !self.drops()) {
                return self.append_long(state, lines);
            }
            if state.has_room(lines.len(), self.buffer_bytes) {
                state.push_drop_note();
                state.push(lines);
                state.stats.appends += 1;
                state.set_limit(self.buffer_bytes);
                self.wake_if_idle(state);
                return Ok(());
            }
            if !self.switch_buffer(&mut state) {
                if self.drops() {
                    state.count_dropped(lines);
                    return Ok(());
                }
                state.stats.waits += 1;
                self.room.wait(&mut state);
            }
        }
    }

    fn drops(&self) -> bool {
        self.when_full == WhenFull::DropNewest
    }

    /// Marks the active buffer as full and replaces it by a free buffer. Returns `false` if no
    /// buffer is free.
    fn switch_buffer(&self, state: &mut State) -> bool {
        let Some(next) = state.free.pop() else { return false };
        let full = std::mem::replace(&mut state.active, next);
        state.full.push_back(full);
        state.is_idle = false;
        self.work.notify_one();
        true
    }

    /// Appends a line longer than a buffer, without interleaving other lines, and waits for free
    /// buffers. If [`WhenFull::DropNewest`] is set and writes fail, it does not wait: it truncates
    /// the line and counts the rest as dropped.
    fn append_long(&self, mut state: MutexGuard<'_, State>, lines: &[u8]) -> Result<()> {
        state.is_long_append_active = true;
        state.set_limit(self.buffer_bytes);
        let mut rest = lines;
        while !rest.is_empty() && !state.is_closing {
            state.push_drop_note();
            let room = self.buffer_bytes.saturating_sub(state.active.len());
            let (now, later) = rest.split_at(room.min(rest.len()));
            state.push(now);
            rest = later;
            if !rest.is_empty() && !self.switch_buffer(&mut state) {
                if self.drops() && state.write_error.is_some() {
                    // The newline fits into the `NOTE_BYTES` allocated after the buffer.
                    state.push(b"\n");
                    state.count_dropped(rest);
                    rest = &[];
                    break;
                }
                state.stats.waits += 1;
                self.room.wait(&mut state);
            }
        }
        state.is_long_append_active = false;
        state.set_limit(self.buffer_bytes);
        self.room.notify_all();
        if !rest.is_empty() {
            return Err(Error::Closed);
        }
        state.stats.appends += 1;
        self.wake_if_idle(state);
        Ok(())
    }

    /// Makes all further appends fail, and notifies all threads.
    pub(crate) fn begin_closing(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        state.set_limit(self.buffer_bytes);
        drop(state);
        self.work.notify_one();
        self.room.notify_all();
        self.done.notify_all();
    }

    /// Notifies the background thread that the compression of a file is done.
    pub(crate) fn notify_outcome(&self) {
        self.state.lock().has_outcome = true;
        self.work.notify_one();
    }

    /// Clears a written buffer and makes it available to appends.
    pub(crate) fn release_buffer(&self, state: &mut State, mut buffer: Vec<u8>) {
        buffer.clear();
        state.free.push(buffer);
        self.room.notify_all();
    }
}

impl State {
    fn push(&mut self, lines: &[u8]) {
        self.active.extend_from_slice(lines);
        self.accepted += lines.len() as u64;
    }

    /// `true` if `bytes` bytes and a pending note about dropped lines fit into the active buffer.
    /// If the buffer is empty, `bytes` may fill it to `buffer_bytes`: the note then fits into the
    /// `NOTE_BYTES` allocated in addition.
    fn has_room(&self, bytes: usize, buffer_bytes: usize) -> bool {
        let note_bytes = if self.has_unreported_drops() { NOTE_BYTES } else { 0 };
        let filled = self.active.len() + bytes;
        filled + note_bytes <= buffer_bytes || self.active.is_empty() && filled <= buffer_bytes
    }

    fn set_limit(&mut self, buffer_bytes: usize) {
        let is_fast =
            !self.is_closing && !self.is_long_append_active && !self.has_unreported_drops();
        self.limit = if is_fast { buffer_bytes } else { 0 };
    }

    fn count_dropped(&mut self, lines: &[u8]) {
        let count = count_lines(lines);
        self.dropped.lines += count;
        self.dropped.bytes += lines.len() as u64;
        self.stats.dropped_lines += count;
        self.stats.dropped_bytes += lines.len() as u64;
        self.limit = 0;
    }

    /// Appends a note with the number of dropped lines, if any were dropped and the note fits.
    fn push_drop_note(&mut self) {
        let room = self.active.capacity() - self.active.len();
        if !self.has_unreported_drops() || room < NOTE_BYTES {
            return;
        }
        let DropCount { lines, bytes } = std::mem::take(&mut self.dropped);
        let before = self.active.len();
        // The text is shorter than the space allocated for it, so writing it allocates no memory.
        let mut note = Note(&mut self.active);
        write!(note, "line-log: {lines} lines ({bytes} bytes) were dropped here: ").ok();
        writeln!(note, "the disk did not keep up").ok();
        self.accepted += (self.active.len() - before) as u64;
    }

    /// Adds the lines that are still in memory to the statistics, when the log is closed.
    pub(crate) fn count_unwritten(&mut self) {
        let buffers = self.full.iter().chain([&self.active]);
        self.stats.unwritten_lines += buffers.map(|buffer| count_lines(buffer)).sum::<u64>();
    }

    /// `true` if lines were dropped and no note in the log reports them yet.
    pub(crate) fn has_unreported_drops(&self) -> bool {
        self.dropped.lines > 0
    }

    /// Returns the active buffer and replaces it by a free one; returns `None` if it is empty.
    pub(crate) fn take_active(&mut self, buffer_bytes: usize) -> Option<Vec<u8>> {
        self.push_drop_note();
        self.set_limit(buffer_bytes);
        if self.active.is_empty() {
            return None;
        }
        // The background thread, which calls this function, holds no buffer, and no buffer is full.
        // Thus all buffers except the active one are free.
        let next = self.free.pop()?;
        Some(std::mem::replace(&mut self.active, next))
    }
}

/// Returns the number of lines in `bytes`; an incomplete last line counts as one.
pub(crate) fn count_lines(bytes: &[u8]) -> u64 {
    let ended = memchr::memchr_iter(b'\n', bytes).count() as u64;
    ended + u64::from(!bytes.is_empty() && !bytes.ends_with(b"\n"))
}

/// A target for `write!` that appends to a byte buffer.
struct Note<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Note<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
