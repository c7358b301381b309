//! Where lines go: into the filling buffer, under a short lock. One thread takes full and aged
//! buffers away, and brings them back empty.
//!
//! What a caller pays is the lock and the copy. It makes a system call only when it begins an
//! empty buffer and the thread sleeps (then it wakes it), when it fills one, and when it must wait.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::options::{Options, WhenFull};
use crate::stats::Stats;

/// Room behind each buffer for the line that says how many are missing.
const NOTE_BYTES: usize = 160;

/// What the threads of a log share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    /// There is something for the background thread to do.
    pub(crate) work: Condvar,
    /// A buffer became free, or a line longer than a buffer is in.
    pub(crate) room: Condvar,
    /// More was written or synced, or an attempt failed.
    pub(crate) done: Condvar,
    pub(crate) buffer_bytes: usize,
    when_full: WhenFull,
}

/// Lines that were dropped and not told yet.
#[derive(Debug, Default)]
struct Lost {
    lines: u64,
    bytes: u64,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) filling: Vec<u8>,
    /// What `filling` may hold; 0 while something is in the way of the short path.
    limit: usize,
    pub(crate) full: VecDeque<Vec<u8>>,
    /// The last one back is the first one out: it is still in the processor's cache.
    pub(crate) free: Vec<Vec<u8>>,
    lost: Lost,
    /// Somebody brings a line longer than a buffer, bit by bit.
    is_long_under_way: bool,
    /// The thread sleeps without a timer, and must be told of a line.
    pub(crate) is_idle: bool,
    pub(crate) is_closing: bool,
    /// Bytes taken in since the beginning; of these written; of these synced.
    pub(crate) accepted: u64,
    pub(crate) written: u64,
    pub(crate) synced: u64,
    /// What somebody waits for: up to where it is to be written; and when so much is written, a
    /// sync and a rotation.
    pub(crate) want_written: u64,
    pub(crate) sync_at: Option<u64>,
    pub(crate) rotate_at: Option<u64>,
    /// Everything before this is in closed files.
    pub(crate) rotated_to: u64,
    /// How many of them there were.
    pub(crate) syncs_done: u64,
    pub(crate) rotations_done: u64,
    /// Somebody wants to know how an attempt goes, now.
    pub(crate) is_poked: bool,
    /// Attempts to write that failed.
    pub(crate) stuck: Option<Arc<haul_disk::Error>>,
    pub(crate) failures: u64,
    /// Syncs that failed, and whether the last one was told to nobody yet.
    pub(crate) unsynced: Option<Arc<haul_disk::Error>>,
    pub(crate) sync_failures: u64,
    pub(crate) is_unsynced_untold: bool,
    /// Nothing is done any more.
    pub(crate) is_over: bool,
    pub(crate) last_error: Option<Error>,
    pub(crate) stats: Stats,
}

impl Shared {
    pub(crate) fn new(options: &Options) -> Self {
        let buffer_bytes = options.buffer_bytes as usize;
        // Written to once, so that no line pays for the kernel's first touch of a page.
        let buffer = || {
            let mut buffer = Vec::with_capacity(buffer_bytes + NOTE_BYTES);
            buffer.resize(buffer_bytes, b'\n');
            buffer.clear();
            buffer
        };
        let state = State {
            filling: buffer(),
            limit: buffer_bytes,
            full: VecDeque::with_capacity(options.buffers as usize),
            free: (1..options.buffers).map(|_| buffer()).collect(),
            lost: Lost::default(),
            is_long_under_way: false,
            is_idle: false,
            is_closing: false,
            accepted: 0,
            written: 0,
            synced: 0,
            want_written: 0,
            sync_at: None,
            rotate_at: None,
            rotated_to: 0,
            syncs_done: 0,
            rotations_done: 0,
            is_poked: false,
            stuck: None,
            failures: 0,
            unsynced: None,
            sync_failures: 0,
            is_unsynced_untold: false,
            is_over: false,
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

    /// Takes lines in. The short path: a lock, a comparison, a copy.
    pub(crate) fn append(&self, lines: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        if state.filling.len() + lines.len() > state.limit {
            return self.append_slowly(state, lines);
        }
        state.put(lines);
        state.stats.appends += 1;
        self.wake_if_idle(state);
        Ok(())
    }

    /// Lets the thread know of the first line in an empty buffer, if it sleeps: once a buffer, so
    /// at most once in the time a line may be late.
    fn wake_if_idle(&self, mut state: MutexGuard<'_, State>) {
        if state.is_idle {
            state.is_idle = false;
            drop(state);
            self.work.notify_one();
        }
    }

    fn append_slowly(&self, mut state: MutexGuard<'_, State>, lines: &[u8]) -> Result<()> {
        loop {
            if state.is_closing {
                return Err(Error::Closed);
            }
            if state.is_long_under_way {
                self.room.wait(&mut state);
                continue;
            }
            if lines.len() > self.buffer_bytes && (!state.free.is_empty() || !self.drops()) {
                return self.append_long(state, lines);
            }
            if state.has_room(lines.len(), self.buffer_bytes) {
                state.tell_lost();
                state.put(lines);
                state.stats.appends += 1;
                state.set_limit(self.buffer_bytes);
                self.wake_if_idle(state);
                return Ok(());
            }
            if !self.turn(&mut state) {
                if self.drops() {
                    state.lose(lines);
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

    /// Goes on to an empty buffer, if there is one.
    fn turn(&self, state: &mut State) -> bool {
        let Some(next) = state.free.pop() else { return false };
        let full = std::mem::replace(&mut state.filling, next);
        state.full.push_back(full);
        state.is_idle = false;
        self.work.notify_one();
        true
    }

    /// A line longer than a buffer: nobody else gets in between, and once begun it is brought to
    /// its end, waiting where it must.
    fn append_long(&self, mut state: MutexGuard<'_, State>, lines: &[u8]) -> Result<()> {
        state.is_long_under_way = true;
        state.set_limit(self.buffer_bytes);
        let mut rest = lines;
        while !rest.is_empty() && !state.is_closing {
            state.tell_lost();
            let room = self.buffer_bytes.saturating_sub(state.filling.len());
            let (now, later) = rest.split_at(room.min(rest.len()));
            state.put(now);
            rest = later;
            if !rest.is_empty() && !self.turn(&mut state) {
                state.stats.waits += 1;
                self.room.wait(&mut state);
            }
        }
        state.is_long_under_way = false;
        state.set_limit(self.buffer_bytes);
        self.room.notify_all();
        if !rest.is_empty() {
            return Err(Error::Closed);
        }
        state.stats.appends += 1;
        self.wake_if_idle(state);
        Ok(())
    }

    /// Takes nothing more in.
    pub(crate) fn begin_closing(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        state.set_limit(self.buffer_bytes);
        drop(state);
        self.work.notify_one();
        self.room.notify_all();
    }

    /// Takes an empty buffer back.
    pub(crate) fn give_back(&self, state: &mut State, mut buffer: Vec<u8>) {
        buffer.clear();
        state.free.push(buffer);
        self.room.notify_all();
    }
}

impl State {
    fn put(&mut self, lines: &[u8]) {
        self.filling.extend_from_slice(lines);
        self.accepted += lines.len() as u64;
    }

    /// Whether a line fits, with what is to be said before it. An empty buffer takes both.
    fn has_room(&self, bytes: usize, buffer_bytes: usize) -> bool {
        let note_bytes = if self.has_lost() { NOTE_BYTES } else { 0 };
        let filled = self.filling.len() + bytes;
        filled + note_bytes <= buffer_bytes || self.filling.is_empty() && filled <= buffer_bytes
    }

    fn set_limit(&mut self, buffer_bytes: usize) {
        let is_free = !self.is_closing && !self.is_long_under_way && !self.has_lost();
        self.limit = if is_free { buffer_bytes } else { 0 };
    }

    fn lose(&mut self, lines: &[u8]) {
        // What ends without a newline counts as a line, too.
        let count = memchr::memchr_iter(b'\n', lines).count() as u64;
        let count = count + u64::from(!lines.ends_with(b"\n"));
        self.lost.lines += count;
        self.lost.bytes += lines.len() as u64;
        self.stats.dropped_lines += count;
        self.stats.dropped_bytes += lines.len() as u64;
        self.limit = 0;
    }

    /// Writes down how many lines are missing here, where that still fits.
    fn tell_lost(&mut self) {
        let room = self.filling.capacity() - self.filling.len();
        if !self.has_lost() || room < NOTE_BYTES {
            return;
        }
        let Lost { lines, bytes } = std::mem::take(&mut self.lost);
        let before = self.filling.len();
        // The text is shorter than the room for it, so nothing is allocated; a vector takes all.
        let mut note = Note(&mut self.filling);
        write!(note, "line-log: {lines} lines ({bytes} bytes) were dropped here: ").ok();
        writeln!(note, "they came faster than the disk took them").ok();
        self.accepted += (self.filling.len() - before) as u64;
    }

    /// Whether the log still has to say that lines are missing.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.lines > 0
    }

    /// Takes the filling buffer away, if there is anything in it.
    pub(crate) fn take_filling(&mut self, buffer_bytes: usize) -> Option<Vec<u8>> {
        self.tell_lost();
        self.set_limit(buffer_bytes);
        if self.filling.is_empty() {
            return None;
        }
        // The thread takes it only when it holds none itself, so another one is free.
        let next = self.free.pop()?;
        Some(std::mem::replace(&mut self.filling, next))
    }
}

/// Formats into bytes.
struct Note<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Note<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
