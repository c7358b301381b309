//! The background thread: takes full and aged buffers, writes each with one large write, and does
//! everything else that takes time, so that no caller does.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::MutexGuard;

use crate::buffers::{Shared, State};
use crate::error::Error;
use crate::files::Files;
use crate::options::{Options, SyncWhen};
use crate::stats::Event;

/// Whoever wants to know what happens.
pub(crate) type Watch = Box<dyn FnMut(&Event) + Send>;

/// What there is to do, in this order.
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
    pub(crate) watch: Watch,
    /// When the line that waits longest is to be written at the latest.
    late: Option<Instant>,
    /// When what was written is to be synced at the latest.
    sync_due: Option<Instant>,
}

/// Lets nobody wait for a thread that is gone, whatever ended it.
struct Over(Arc<Shared>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.begin_closing();
        self.0.state.lock().is_over = true;
        self.0.done.notify_all();
    }
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, files: Files, options: Options, watch: Watch) -> Self {
        Self { shared, files, options, watch, late: None, sync_due: None }
    }

    /// Works until the log is closed and everything is written, or cannot be.
    pub(crate) fn run(mut self) {
        let _over = Over(Arc::clone(&self.shared));
        self.tell();
        loop {
            let work = self.next_work();
            let is_last = work.is_last;
            if !self.carry_out(work) || is_last {
                return;
            }
        }
    }

    /// Does it, and says whether the log goes on.
    fn carry_out(&mut self, work: Work) -> bool {
        let mut goes_on = match work.buffer {
            Some(buffer) => self.write(buffer),
            None => self.until_it_works(Files::rotate_if_due),
        };
        if work.is_rotation && goes_on {
            goes_on = self.until_it_works(Files::rotate_when_asked);
            let mut state = self.shared.state.lock();
            if goes_on {
                state.rotations_done += 1;
                state.rotated_to = state.written;
            }
        }
        if work.is_sync {
            self.sync();
        }
        self.tell();
        self.shared.done.notify_all();
        goes_on
    }

    fn write(&mut self, buffer: Vec<u8>) -> bool {
        let (began, mut done) = (Instant::now(), 0);
        let goes_on = self.until_it_works(|files| files.write(&buffer, &mut done));
        if let SyncWhen::Every(every) = self.options.sync {
            self.sync_due.get_or_insert_with(|| Instant::now() + every);
        }
        let mut state = self.shared.state.lock();
        state.written += done as u64;
        state.stats.count_write(done as u64, began.elapsed());
        self.shared.give_back(&mut state, buffer);
        goes_on
    }

    /// Tries until it works, or until the log is closing and it failed once more. What waits in
    /// memory meanwhile is bounded by the buffers.
    fn until_it_works(
        &mut self,
        mut attempt: impl FnMut(&mut Files) -> haul_disk::Result<()>,
    ) -> bool {
        loop {
            // Read before the attempt: whoever closes during it is owed another.
            let is_closing = self.shared.state.lock().is_closing;
            let error = match attempt(&mut self.files) {
                Ok(()) => {
                    if self.shared.state.lock().stuck.take().is_some() {
                        (self.watch)(&Event::Unstuck);
                    }
                    return true;
                }
                Err(error) => Arc::new(error),
            };
            self.tell();
            let shared = Arc::clone(&self.shared);
            let mut state = shared.state.lock();
            let was_stuck = state.stuck.replace(Arc::clone(&error)).is_some();
            state.failures += 1;
            state.stats.write_failures += 1;
            state.last_error = Some(state.stuck_error(Arc::clone(&error)));
            shared.done.notify_all();
            if !was_stuck {
                MutexGuard::unlocked(&mut state, || (self.watch)(&Event::Stuck(error)));
            }
            if is_closing {
                return false;
            }
            let until = Instant::now() + self.options.retry_pause;
            while !state.is_poked && !state.is_closing {
                if shared.work.wait_until(&mut state, until).timed_out() {
                    break;
                }
            }
            state.is_poked = false;
        }
    }

    fn sync(&mut self) {
        self.sync_due = None;
        let written = self.shared.state.lock().written;
        self.files.sync();
        // A failure is known before anybody takes this for a success.
        self.tell();
        let mut state = self.shared.state.lock();
        state.synced = written;
        state.syncs_done += 1;
    }

    /// Passes on what happened to the files.
    fn tell(&mut self) {
        let syncs = std::mem::take(&mut self.files.syncs);
        let events = std::mem::take(&mut self.files.events);
        let mut state = self.shared.state.lock();
        state.stats.syncs += syncs;
        for event in &events {
            state.count(event);
        }
        drop(state);
        for event in &events {
            (self.watch)(event);
        }
    }

    /// Waits until there is something to do, and takes it.
    fn next_work(&mut self) -> Work {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state.lock();
        loop {
            state.is_poked = false;
            let work = match state.full.pop_front() {
                Some(buffer) => Some(self.with_full(&mut state, buffer)),
                None => self.asked_for(&mut state),
            };
            if let Some(work) = work {
                // What fills behind it began no earlier than now.
                self.late = None;
                return work;
            }
            let is_empty = state.filling.is_empty();
            if !is_empty && self.late.is_none() {
                self.late = Some(Instant::now() + self.options.late_max);
            }
            let until_due = self.files.until_due();
            let rotation = until_due.map(|time| Instant::now() + time);
            let wake = [self.late, self.sync_due, rotation].into_iter().flatten().min();
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

    /// A full buffer, and what was waiting for it to be written.
    fn with_full(&self, state: &mut State, buffer: Vec<u8>) -> Work {
        let end = state.written + buffer.len() as u64;
        let is_rotation = state.rotate_at.take_if(|at| *at <= end).is_some();
        let is_sync = state.sync_at.take_if(|at| *at <= end).is_some() || self.is_sync_due();
        Work { buffer: Some(buffer), is_rotation, is_sync, is_last: false }
    }

    /// What is to be done when no buffer is full: what somebody waits for, and what is late.
    fn asked_for(&self, state: &mut State) -> Option<Work> {
        let is_late = self.late.is_some_and(|late| late <= Instant::now());
        let is_wanted = state.want_written > state.written;
        let is_rotation = state.rotate_at.take().is_some();
        let is_closing = state.is_closing;
        let is_sync =
            state.sync_at.take().is_some() || self.is_sync_due() || is_closing && self.syncs();
        if !(is_wanted || is_late || is_sync || is_closing || is_rotation) {
            return None;
        }
        let buffer = state.take_filling(self.shared.buffer_bytes);
        Some(Work { buffer, is_rotation, is_sync, is_last: is_closing && !state.has_lost() })
    }

    fn syncs(&self) -> bool {
        self.options.sync != SyncWhen::Never
    }

    fn is_sync_due(&self) -> bool {
        self.sync_due.is_some_and(|due| due <= Instant::now())
    }
}

impl State {
    /// The error of whoever waits for what cannot be written.
    pub(crate) fn stuck_error(&self, source: Arc<haul_disk::Error>) -> Error {
        Error::Stuck { bytes: self.accepted - self.written, source }
    }

    fn count(&mut self, event: &Event) {
        match event {
            Event::Unsynced(error) => {
                self.stats.sync_failures += 1;
                self.sync_failures += 1;
                self.is_unsynced_untold = true;
                self.unsynced = Some(Arc::clone(error));
                self.last_error = Some(Error::Unsynced { source: Arc::clone(error) });
            }
            Event::Closed { .. } => self.stats.rotations += 1,
            Event::Removed { .. } => self.stats.removed += 1,
            Event::NotRemoved(error) => self.last_error = Some(Error::Disk(Arc::clone(error))),
            Event::Stuck(_) | Event::Unstuck => {}
        }
    }
}
