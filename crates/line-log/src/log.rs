//! The log itself: opening, waiting, closing.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use haul_disk::{DirLock, Disk, Locked, OsDisk};
use parking_lot::{Mutex, MutexGuard};

use crate::buffers::{Shared, State};
use crate::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::files::Files;
use crate::options::{Options, SyncWhen};
use crate::stats::Stats;
use crate::writer::{Watch, Writer};

/// What a log has to do with besides its directory.
pub struct Outside {
    /// The time; the machine's.
    pub clock: Arc<dyn Clock>,
    /// Is told what happens in the background, by the background thread: it must not wait for the
    /// log. Nobody.
    pub watch: Watch,
}

impl Default for Outside {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), watch: Box::new(|_| {}) }
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// A log of lines in a directory of its own.
///
/// All calls may be made from several threads at once.
#[derive(Debug)]
pub struct LineLog {
    shared: Arc<Shared>,
    can_sync: bool,
    thread: Mutex<Option<JoinHandle<()>>>,
    _lock: Option<DirLock>,
}

impl LineLog {
    /// Opens the log in the directory `dir`, which is made where it is not there, and goes on at
    /// the end of what an earlier run left.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::Invalid`], and [`Error::Disk`] when the directory cannot be used.
    ///
    /// # Durability
    /// The names of directory and file are on the medium, unless it is [`SyncWhen::Never`].
    pub fn open(dir: impl AsRef<Path>, options: Options, outside: Outside) -> Result<Self> {
        options.check()?;
        let disk = OsDisk::open_or_create(&dir)?;
        let lock = match DirLock::take(dir.as_ref(), &options.holder)? {
            Locked::Ours(lock) => lock,
            Locked::HeldBy(holder) => {
                return Err(Error::InUse { dir: dir.as_ref().to_path_buf(), holder });
            }
        };
        let mut log = Self::open_on(Arc::new(disk), options, outside)?;
        log._lock = Some(lock);
        Ok(log)
    }

    /// Opens the log in the root of `disk`, which nobody else may use meanwhile.
    ///
    /// # Errors
    /// [`Error::Invalid`], and [`Error::Disk`] when the files cannot be used.
    ///
    /// # Durability
    /// As [`LineLog::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: Options, outside: Outside) -> Result<Self> {
        options.check()?;
        let files = Files::open(Arc::clone(&disk), outside.clock, &options)?;
        let shared = Arc::new(Shared::new(&options));
        let can_sync = options.sync != SyncWhen::Never;
        let writer = Writer::new(Arc::clone(&shared), files, options, outside.watch);
        let thread = thread::Builder::new()
            .name("line-log".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| haul_disk::Error::new(haul_disk::Op::Open, disk.root(), source))?;
        Ok(Self { shared, can_sync, thread: Mutex::new(Some(thread)), _lock: None })
    }

    /// Takes in a line, or several, with their newlines: in memory when this returns.
    ///
    /// What one call brings stays together, whatever other threads bring; each of its lines is
    /// whole in one file, if it is not longer than a file. A line without its newline is taken as
    /// it is, and the next call's bytes follow it.
    ///
    /// # Errors
    /// [`Error::Closed`].
    ///
    /// # Durability
    /// None: the end of the process loses it. The background thread writes it, usually within
    /// [`Options::late_max`]; [`LineLog::write_out`] and [`LineLog::sync`] wait for more.
    pub fn append(&self, lines: &[u8]) -> Result<()> {
        self.shared.append(lines)
    }

    /// Waits until everything taken in before was handed to the kernel.
    ///
    /// # Errors
    /// [`Error::Stuck`] when an attempt to write failed meanwhile, or [`Error::Closed`] when the
    /// log was closed with lines it could not write.
    ///
    /// # Durability
    /// The lines survive the end of the process, not that of the machine.
    pub fn write_out(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        let target = state.accepted;
        state.want_written = state.want_written.max(target);
        self.wait(&mut state, |state| state.written >= target, |_| {})
    }

    /// Waits until everything taken in before is on the medium.
    ///
    /// # Errors
    /// As [`LineLog::write_out`]; [`Error::Unsynced`] when a sync failed, now or before and nobody
    /// was told; [`Error::Invalid`] with [`SyncWhen::Never`].
    ///
    /// # Durability
    /// The lines survive a power cut, and so do the names of their files.
    pub fn sync(&self) -> Result<()> {
        if !self.can_sync {
            return Err(Error::Invalid("a log opened with SyncWhen::Never is not synced"));
        }
        let mut state = self.shared.state.lock();
        let (target, before) = (state.accepted, state.syncs_done);
        let failures = state.sync_failures;
        let is_synced = |state: &State| state.synced >= target && state.syncs_done > before;
        let ask = |state: &mut State| {
            state.sync_at = Some(state.sync_at.map_or(target, |at| at.min(target)));
        };
        self.wait(&mut state, is_synced, ask)?;
        told(&mut state, failures)
    }

    /// Closes the current file, unless it is empty, and begins the next one. What was taken in
    /// before is in the closed one. When a line was begun without its newline, the file is closed
    /// once the line ends, and this does not wait for that.
    ///
    /// # Errors
    /// As [`LineLog::write_out`].
    ///
    /// # Durability
    /// The closed file survives a power cut, unless it is [`SyncWhen::Never`], or
    /// [`LineLog::sync`] says otherwise.
    pub fn rotate(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        let (target, before) = (state.accepted, state.rotations_done);
        let mut is_asked = false;
        let ask = |state: &mut State| {
            if !std::mem::replace(&mut is_asked, true) {
                state.rotate_at = Some(state.rotate_at.map_or(target, |at| at.max(target)));
            }
        };
        let is_done = |state: &State| state.rotations_done > before && state.rotated_to >= target;
        self.wait(&mut state, is_done, ask)
    }

    /// Waits for something the background thread does, asking it each time.
    fn wait(
        &self,
        state: &mut MutexGuard<'_, State>,
        is_done: impl Fn(&State) -> bool,
        mut ask: impl FnMut(&mut State),
    ) -> Result<()> {
        let failures = state.failures;
        while !is_done(state) {
            let has_failed = state.is_over || state.failures > failures;
            if let Some(source) = state.stuck.clone().filter(|_| has_failed) {
                return Err(state.stuck_error(source));
            }
            if state.is_over {
                return Err(Error::Closed);
            }
            ask(state);
            state.is_poked = true;
            self.shared.work.notify_one();
            self.shared.done.wait(state);
        }
        Ok(())
    }

    /// Counters since the log was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let state = self.shared.state.lock();
        Stats {
            bytes: state.accepted,
            memory_bytes: state.accepted - state.written,
            is_stuck: state.stuck.is_some(),
            ..state.stats
        }
    }

    /// The last thing that went wrong, whether or not it works again.
    #[must_use]
    pub fn last_error(&self) -> Option<Error> {
        self.shared.state.lock().last_error.clone()
    }

    /// Takes in no more lines, and waits until all that were taken in are written and synced. When
    /// they cannot be written now, they are lost. Dropping does the same and keeps failures to
    /// itself; what is kept for the whole life of a process is never dropped, so close it.
    ///
    /// # Errors
    /// [`Error::Stuck`] with the number of bytes that were lost; [`Error::Unsynced`] when a sync
    /// failed and nobody was told. Closing again gives the same.
    ///
    /// # Durability
    /// All lines survive a power cut, unless it is [`SyncWhen::Never`].
    pub fn close(&self) -> Result<()> {
        let failures = self.shared.state.lock().sync_failures;
        let mut thread = self.thread.lock();
        self.shared.begin_closing();
        if let Some(thread) = thread.take() {
            // It ends by itself; had it panicked, what it left undone is told below.
            drop(thread.join());
        }
        let mut state = self.shared.state.lock();
        match state.stuck.clone() {
            Some(source) => Err(state.stuck_error(source)),
            None if state.written < state.accepted => Err(Error::Closed),
            None => told(&mut state, failures),
        }
    }
}

/// The failed sync that `state` knows and nobody was told of yet, or since there were `failures`.
fn told(state: &mut State, failures: u64) -> Result<()> {
    let is_untold = std::mem::take(&mut state.is_unsynced_untold);
    match &state.unsynced {
        Some(source) if is_untold || state.sync_failures > failures => {
            Err(Error::Unsynced { source: Arc::clone(source) })
        }
        _ => Ok(()),
    }
}

impl Drop for LineLog {
    fn drop(&mut self) {
        drop(self.close());
    }
}
