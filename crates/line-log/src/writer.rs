//! Runs the background thread of a log. The thread writes buffers that are full or whose lines have
//! waited long enough, each with one large write, and syncs, rotates and removes files.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::MutexGuard;

use crate::buffers::{Shared, State, count_lines};
use crate::error::Error;
use crate::files::Files;
use crate::options::{Options, SyncMode};
use crate::stats::Event;

/// The function called for each event.
pub(crate) type EventListener = Box<dyn FnMut(&Event) + Send>;

/// The next steps of the background thread, executed in the order of the fields.
#[derive(Debug, Default)]
struct Work {
    buffer: Option<Vec<u8>>,
    is_rotation: bool,
    is_sync: bool,
    is_last: bool,
}

pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) files: Files,
    pub(crate) options: Options,
    pub(crate) on_event: EventListener,
    /// The time at which the active buffer must be written, even if it is not full.
    write_due: Option<Instant>,
    /// The time at which written lines must be synced.
    sync_due: Option<Instant>,
}

/// A guard that wakes all waiting callers when the thread ends, also if it panics.
struct TerminationGuard(Arc<Shared>);

impl Drop for TerminationGuard {
    fn drop(&mut self) {
        self.0.begin_closing();
        let mut state = self.0.state.lock();
        state.is_terminated = true;
        state.count_unwritten();
        drop(state);
        self.0.done.notify_all();
    }
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        files: Files,
        options: Options,
        on_event: EventListener,
    ) -> Self {
        Self { shared, files, options, on_event, write_due: None, sync_due: None }
    }

    /// Runs the background thread until the log is closed and all lines are written, or until a
    /// write fails after the log was closed.
    pub(crate) fn run(mut self) {
        let _guard = TerminationGuard(Arc::clone(&self.shared));
        self.publish_events();
        loop {
            let work = self.next_work();
            let is_last = work.is_last;
            if !self.execute(work) || is_last {
                break;
            }
        }
        self.files.stop_compression();
        self.publish_events();
    }

    /// Executes `work`. Returns `false` if an operation failed while the log was closing.
    fn execute(&mut self, work: Work) -> bool {
        let mut is_ok = match work.buffer {
            Some(buffer) => self.write(buffer),
            None => self.retry_until_done(Files::rotate_if_due),
        };
        if work.is_rotation && is_ok {
            is_ok = self.retry_until_done(Files::request_rotation);
            let mut state = self.shared.state.lock();
            state.is_compressing = self.files.is_compressing();
            if is_ok {
                state.rotations_done += 1;
                state.rotated_to = state.written;
            }
        }
        if work.is_sync {
            self.sync();
        }
        self.publish_events();
        self.shared.state.lock().is_compressing = self.files.is_compressing();
        self.shared.done.notify_all();
        is_ok
    }

    fn write(&mut self, buffer: Vec<u8>) -> bool {
        let (began, mut done) = (Instant::now(), 0);
        let is_ok = self.retry_until_done(|files| files.write(&buffer, &mut done));
        if let SyncMode::Every(every) = self.options.sync {
            self.sync_due.get_or_insert_with(|| Instant::now() + every);
        }
        let mut state = self.shared.state.lock();
        state.written += done as u64;
        state.is_compressing = self.files.is_compressing();
        state.stats.count_write(done as u64, began.elapsed());
        state.stats.unwritten_lines += count_lines(&buffer[done..]);
        self.shared.release_buffer(&mut state, buffer);
        is_ok
    }

    /// Retries `attempt` until it succeeds, or until it fails while the log is closing.
    fn retry_until_done(
        &mut self,
        mut attempt: impl FnMut(&mut Files) -> haul_disk::Result<()>,
    ) -> bool {
        loop {
            // The flag is read before the attempt: if the log is closed during an attempt, one more
            // attempt must follow.
            let is_closing = self.shared.state.lock().is_closing;
            // On a full disk, this frees space.
            self.files.finish_compressed();
            let error = match attempt(&mut self.files) {
                Ok(()) => {
                    if self.shared.state.lock().write_error.take().is_some() {
                        (self.on_event)(&Event::WriteRecovered);
                    }
                    return true;
                }
                Err(error) if error.is_full() && self.files.make_space(is_closing) => {
                    self.publish_events();
                    continue;
                }
                Err(error) => Arc::new(error),
            };
            self.publish_events();
            let shared = Arc::clone(&self.shared);
            let mut state = shared.state.lock();
            let was_failing = state.write_error.replace(Arc::clone(&error)).is_some();
            state.is_compressing = self.files.is_compressing();
            state.write_failures += 1;
            state.stats.write_failures += 1;
            state.last_error = Some(state.write_failed(Arc::clone(&error)));
            shared.done.notify_all();
            // A long append that waits for a buffer must check `write_error`: with
            // [`WhenFull::DropNewest`] it truncates its line now.
            shared.room.notify_all();
            if !was_failing {
                MutexGuard::unlocked(&mut state, || (self.on_event)(&Event::WriteFailed(error)));
            }
            if is_closing {
                return false;
            }
            let until = Instant::now() + self.options.retry_pause;
            while !state.is_retry_requested && !state.is_closing {
                if shared.work.wait_until(&mut state, until).timed_out() {
                    break;
                }
            }
            state.is_retry_requested = false;
        }
    }

    fn sync(&mut self) {
        self.sync_due = None;
        let written = self.shared.state.lock().written;
        self.files.sync();
        // A failure must be published before waiting callers see the sync as done.
        self.publish_events();
        let mut state = self.shared.state.lock();
        state.synced = written;
        state.syncs_done += 1;
    }

    /// Adds the events of the files to the statistics and passes them to the listener.
    fn publish_events(&mut self) {
        let syncs = std::mem::take(&mut self.files.syncs);
        let events = std::mem::take(&mut self.files.events);
        let mut state = self.shared.state.lock();
        state.stats.syncs += syncs;
        for event in &events {
            state.count(event);
        }
        drop(state);
        for event in &events {
            (self.on_event)(event);
        }
    }

    /// Waits until there is work, and returns it.
    fn next_work(&mut self) -> Work {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state.lock();
        loop {
            state.is_retry_requested = false;
            let work = match state.full.pop_front() {
                Some(buffer) => Some(self.full_buffer_work(&mut state, buffer)),
                None => self.requested_work(&mut state),
            };
            if std::mem::take(&mut state.has_outcome) && work.is_none() {
                return Work::default();
            }
            if let Some(work) = work {
                // The deadline applied to the lines of this buffer. A new deadline is set for the
                // next buffer.
                self.write_due = None;
                return work;
            }
            let is_empty = state.active.is_empty();
            if !is_empty && self.write_due.is_none() {
                self.write_due = Some(Instant::now() + self.options.write_delay_max);
            }
            let until_due = self.files.until_due();
            let rotation = until_due.map(|time| Instant::now() + time);
            let wake = [self.write_due, self.sync_due, rotation].into_iter().flatten().min();
            state.is_idle = is_empty;
            match wake {
                Some(wake) if wake <= Instant::now() => {}
                Some(wake) => drop(shared.work.wait_until(&mut state, wake)),
                None => shared.work.wait(&mut state),
            }
            state.is_idle = false;
            if until_due.is_some() && rotation.is_some_and(|rotation| rotation <= Instant::now()) {
                return Work::default();
            }
        }
    }

    /// Returns the work for a full buffer: writing it, and the sync and rotation that wait for its
    /// lines.
    fn full_buffer_work(&self, state: &mut State, buffer: Vec<u8>) -> Work {
        let end = state.written + buffer.len() as u64;
        let is_rotation = state.rotate_target.take_if(|at| *at <= end).is_some();
        let is_sync = state.sync_target.take_if(|at| *at <= end).is_some() || self.is_sync_due();
        Work { buffer: Some(buffer), is_rotation, is_sync, is_last: false }
    }

    /// Returns the work requested by callers or by expired deadlines, when no buffer is full;
    /// `None` if there is none.
    fn requested_work(&self, state: &mut State) -> Option<Work> {
        let is_write_due = self.write_due.is_some_and(|due| due <= Instant::now());
        let is_write_requested = state.write_target > state.written;
        let is_rotation = state.rotate_target.take().is_some();
        let is_closing = state.is_closing;
        let is_sync =
            state.sync_target.take().is_some() || self.is_sync_due() || is_closing && self.syncs();
        if !(is_write_requested || is_write_due || is_sync || is_closing || is_rotation) {
            return None;
        }
        let buffer = state.take_active(self.shared.buffer_bytes);
        Some(Work {
            buffer,
            is_rotation,
            is_sync,
            is_last: is_closing && !state.has_unreported_drops(),
        })
    }

    fn syncs(&self) -> bool {
        self.options.sync != SyncMode::Never
    }

    fn is_sync_due(&self) -> bool {
        self.sync_due.is_some_and(|due| due <= Instant::now())
    }
}

impl State {
    /// Returns the error for callers that wait for lines that cannot be written.
    pub(crate) fn write_failed(&self, source: Arc<haul_disk::Error>) -> Error {
        Error::WriteFailed { bytes: self.accepted - self.written, source }
    }

    fn count(&mut self, event: &Event) {
        match event {
            Event::SyncFailed(error) => {
                self.stats.sync_failures += 1;
                self.sync_failures += 1;
                self.is_sync_error_unreported = true;
                self.sync_error = Some(Arc::clone(error));
                self.last_error = Some(Error::SyncFailed { source: Arc::clone(error) });
            }
            Event::Closed { .. } => self.stats.rotations += 1,
            Event::Removed { .. } => self.stats.removed += 1,
            Event::Compressed { from_bytes, to_bytes, .. } => {
                self.stats.compressed += 1;
                self.stats.compressed_from_bytes += from_bytes;
                self.stats.compressed_to_bytes += to_bytes;
            }
            Event::CompressFailed(error) => {
                self.stats.compress_failures += 1;
                self.last_error = Some(Error::Disk(Arc::clone(error)));
            }
            Event::RemovedForSpace { .. } => {
                self.stats.removed += 1;
                self.stats.removed_for_space += 1;
            }
            Event::RemoveFailed(error) => self.last_error = Some(Error::Disk(Arc::clone(error))),
            Event::WriteFailed(_) | Event::WriteRecovered => {}
        }
    }
}
