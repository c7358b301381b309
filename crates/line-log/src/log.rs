//! Implements the public interface of the log: opening, appending, waiting and closing.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use haul_disk::{Disk, Locked, OsDisk};
use parking_lot::{Mutex, MutexGuard};

use crate::buffers::{Shared, State};
use crate::calendar::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::files::Files;
use crate::options::{Options, SyncMode};
use crate::stats::Stats;
use crate::writer::{EventListener, Writer};

/// The objects that a log uses besides its directory.
pub struct Environment {
    /// The clock and the time zone for file names and rotations. Default: those of the system.
    pub clock: Arc<dyn Clock>,
    /// The function that the background thread calls for each event. The function must not call a
    /// method that waits for the log, because the background thread writes nothing until the
    /// function returns. Default: a function that ignores events.
    pub on_event: EventListener,
}

impl Default for Environment {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), on_event: Box::new(|_| {}) }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// A log of text lines, stored as files in one directory.
///
/// All methods may be called from several threads at once.
#[derive(Debug)]
pub struct LineLog {
    shared: Arc<Shared>,
    can_sync: bool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LineLog {
    /// Opens the log in the directory `dir` and continues at the end of the current file. Creates
    /// the directory if it does not exist.
    ///
    /// # Errors
    /// Returns [`Error::InUse`] if the log is already open, [`Error::Invalid`] if an option is
    /// invalid, and [`Error::Disk`] if the directory cannot be used.
    ///
    /// # Durability
    /// The names of the directory and of the current file survive a power cut, unless
    /// [`SyncMode::Never`] is set.
    pub fn open(dir: impl AsRef<Path>, options: Options, environment: Environment) -> Result<Self> {
        options.check()?;
        Self::open_on(Arc::new(OsDisk::open_or_create(&dir)?), options, environment)
    }

    /// Opens the log in the root directory of `disk` and continues at the end of the current file.
    ///
    /// # Errors
    /// Returns the errors of [`LineLog::open`].
    ///
    /// # Durability
    /// Gives the guarantee of [`LineLog::open`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        options: Options,
        environment: Environment,
    ) -> Result<Self> {
        options.check()?;
        let lock = match disk.lock("", &options.holder)? {
            Locked::Acquired(lock) => lock,
            Locked::HeldBy(holder) => {
                return Err(Error::InUse { dir: disk.root().to_path_buf(), holder });
            }
        };
        let mut files = Files::open(Arc::clone(&disk), environment.clock, &options)?;
        let shared = Arc::new(Shared::new(&options));
        let failed = |source| haul_disk::Error::new(haul_disk::Op::Open, disk.root(), source);
        let waiting = Arc::clone(&shared);
        files.start_compression(move || waiting.notify_outcome()).map_err(failed)?;
        shared.state.lock().is_compressing = files.is_compressing();
        let can_sync = options.sync != SyncMode::Never;
        let writer = Writer::new(Arc::clone(&shared), files, options, environment.on_event);
        let thread = thread::Builder::new()
            .name("line-log".to_owned())
            .spawn(move || {
                writer.run();
                // The lock is released when the thread ends, because only this thread accesses the
                // files.
                drop(lock);
            })
            .map_err(failed)?;
        Ok(Self { shared, can_sync, thread: Mutex::new(Some(thread)) })
    }

    /// Appends one or more lines, each with its newline, to the buffer in memory.
    ///
    /// The bytes of one call stay contiguous, and each line is completely in one file unless it is
    /// longer than a file. No newline is added: if the last line is incomplete, the next append
    /// continues it.
    ///
    /// # Errors
    /// Returns [`Error::Closed`] if the log was closed.
    ///
    /// # Durability
    /// None: lines that are not written yet are lost if the process ends. The background thread
    /// writes them, usually within [`Options::write_delay_max`]. Call [`LineLog::write_out`] or
    /// [`LineLog::sync`] to wait until they are written or durable.
    pub fn append(&self, lines: &[u8]) -> Result<()> {
        self.shared.append(lines)
    }

    /// Waits until all lines appended before this call are written to the kernel.
    ///
    /// # Errors
    /// Returns [`Error::WriteFailed`] if an attempt to write fails during the call, and
    /// [`Error::Closed`] if the log was closed with lines that it could not write.
    ///
    /// # Durability
    /// The lines survive a crash of the process, but not a crash of the system or a power cut.
    pub fn write_out(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        let target = state.accepted;
        state.write_target = state.write_target.max(target);
        self.wait(&mut state, |state| state.written >= target, |_| {})
    }

    /// Waits until all lines appended before this call are durable.
    ///
    /// # Errors
    /// Returns the errors of [`LineLog::write_out`]; [`Error::SyncFailed`] if a sync fails during
    /// the call, or failed earlier and was not yet returned to any caller; and [`Error::Invalid`]
    /// with [`SyncMode::Never`].
    ///
    /// # Durability
    /// When this returns `Ok`, the lines and the names of their files survive a power cut.
    pub fn sync(&self) -> Result<()> {
        if !self.can_sync {
            return Err(Error::Invalid("cannot sync a log opened with SyncMode::Never"));
        }
        let mut state = self.shared.state.lock();
        let (target, before) = (state.accepted, state.syncs_done);
        let failures = state.sync_failures;
        let is_synced = |state: &State| state.synced >= target && state.syncs_done > before;
        let request = |state: &mut State| {
            state.sync_target = Some(state.sync_target.map_or(target, |at| at.min(target)));
        };
        self.wait(&mut state, is_synced, request)?;
        check_sync_error(&mut state, failures)
    }

    /// Closes the current file, unless it is empty, and creates the next one. Lines appended before
    /// this call are in the closed file. If the last line is incomplete, the call returns without
    /// waiting for the rest of the line, and the file is closed when the line ends.
    ///
    /// # Errors
    /// Returns the errors of [`LineLog::write_out`].
    ///
    /// # Durability
    /// The closed file survives a power cut, unless [`SyncMode::Never`] is set or [`LineLog::sync`]
    /// returns [`Error::SyncFailed`].
    pub fn rotate(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        let (target, before) = (state.accepted, state.rotations_done);
        let mut is_requested = false;
        let request = |state: &mut State| {
            if !std::mem::replace(&mut is_requested, true) {
                state.rotate_target = Some(state.rotate_target.map_or(target, |at| at.max(target)));
            }
        };
        let is_done = |state: &State| state.rotations_done > before && state.rotated_to >= target;
        self.wait(&mut state, is_done, request)
    }

    /// Waits until each closed file is compressed, was found to be incompressible, or failed to be
    /// compressed. Returns at once without [`Options::compress`]; another thread can end the wait
    /// by closing the log.
    pub fn wait_for_compression(&self) {
        let mut state = self.shared.state.lock();
        while state.is_compressing && !state.is_closing && !state.is_terminated {
            self.shared.done.wait(&mut state);
        }
    }

    /// Registers `request` with the background thread, and waits until `is_done` or an attempt to
    /// write fails.
    fn wait(
        &self,
        state: &mut MutexGuard<'_, State>,
        is_done: impl Fn(&State) -> bool,
        mut request: impl FnMut(&mut State),
    ) -> Result<()> {
        let failures = state.write_failures;
        while !is_done(state) {
            let has_failed = state.is_terminated || state.write_failures > failures;
            if let Some(source) = state.write_error.clone().filter(|_| has_failed) {
                return Err(state.write_failed(source));
            }
            if state.is_terminated {
                return Err(Error::Closed);
            }
            request(state);
            state.is_retry_requested = true;
            self.shared.work.notify_one();
            self.shared.done.wait(state);
        }
        Ok(())
    }

    /// Returns the counters since the log was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let state = self.shared.state.lock();
        Stats {
            bytes: state.accepted,
            memory_bytes: state.accepted - state.written,
            is_failing: state.write_error.is_some(),
            ..state.stats
        }
    }

    /// Returns the last error of the log, even if later operations succeeded.
    #[must_use]
    pub fn last_error(&self) -> Option<Error> {
        self.shared.state.lock().last_error.clone()
    }

    /// Rejects further appends, and waits until all appended lines are written and synced. Lines
    /// that cannot be written now are lost. Closed files that are not compressed yet stay so until
    /// the log is opened again; see [`LineLog::wait_for_compression`]. Dropping the log closes it, too, and ignores errors. A
    /// log in a `static` is never dropped, so it must be closed.
    ///
    /// # Errors
    /// Returns [`Error::WriteFailed`] with the number of lost bytes if lines cannot be written,
    /// also when called again; [`Error::SyncFailed`] if a sync failed that was not yet returned to
    /// any caller; and [`Error::Closed`] if the background thread panicked before it had written
    /// all lines.
    ///
    /// # Durability
    /// All lines survive a power cut, unless [`SyncMode::Never`] is set.
    pub fn close(&self) -> Result<()> {
        let failures = self.shared.state.lock().sync_failures;
        let mut thread = self.thread.lock();
        self.shared.begin_closing();
        if let Some(thread) = thread.take() {
            // If the thread has panicked, the check for unwritten bytes below reports it.
            drop(thread.join());
        }
        let mut state = self.shared.state.lock();
        match state.write_error.clone() {
            Some(source) => Err(state.write_failed(source)),
            None if state.written < state.accepted => Err(Error::Closed),
            None => check_sync_error(&mut state, failures),
        }
    }
}

/// Returns the error of the last failed sync if more than `failures` syncs have failed, or if no
/// caller has received it yet.
fn check_sync_error(state: &mut State, failures: u64) -> Result<()> {
    let is_unreported = std::mem::take(&mut state.is_sync_error_unreported);
    match &state.sync_error {
        Some(source) if is_unreported || state.sync_failures > failures => {
            Err(Error::SyncFailed { source: Arc::clone(source) })
        }
        _ => Ok(()),
    }
}

impl Drop for LineLog {
    fn drop(&mut self) {
        drop(self.close());
    }
}
