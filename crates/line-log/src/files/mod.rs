//! Writes, syncs, closes and removes the files of a log. After the log was opened, only the
//! background thread uses this module.

mod closed;
mod current;
mod rotation_policy;

use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Disk, Durability, Result};

use crate::calendar::Clock;
use crate::compress::{Compressor, Outcome};
use crate::names::{self, CURRENT, Name, READ_ONLY, Stamp};
use crate::options::{Options, SyncMode};
use crate::stats::Event;
use closed::{ClosedFiles, Context};
use current::Current;

/// The longest wait for the time at which the current file is closed. The wait ends early because
/// the clock can be set forward meanwhile, and does not advance while the machine is suspended.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// All files of a log, and the pending work on these files.
#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    options: Options,
    current: Option<Current>,
    closed: ClosedFiles,
    /// The thread that compresses closed files; `None` without compression and while opening.
    compressor: Option<Compressor>,
    /// The files whose compression failed.
    uncompressed: Vec<Stamp>,
    /// `true` if names have changed since the directory was last synced.
    is_dir_dirty: bool,
    /// `true` if a caller requested a rotation that has not taken place yet.
    is_rotation_requested: bool,
    /// `true` if the last write failed. The write is then retried in the same file: if each attempt
    /// created a new file, retention would remove all old files.
    is_failing: bool,
    /// The number of bytes written since the log was opened.
    written_bytes: u64,
    /// The value of `written_bytes` when a closed file was last removed because the disk was full.
    space_made_at: Option<u64>,
    /// The events that were not yet passed to the listener.
    pub(crate) events: Vec<Event>,
    /// The number of syncs of files that the statistics do not contain yet.
    pub(crate) syncs: u64,
}

impl Files {
    /// Lists the existing files, continues the current one or creates it, and removes expired
    /// files.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        options: &Options,
    ) -> Result<Self> {
        let mut files = Self {
            disk,
            clock,
            options: options.clone(),
            current: None,
            closed: ClosedFiles::default(),
            compressor: None,
            uncompressed: Vec::new(),
            is_dir_dirty: false,
            is_rotation_requested: false,
            is_failing: false,
            written_bytes: 0,
            space_made_at: None,
            events: Vec::new(),
            syncs: 0,
        };
        let has_current = files.read_names()?;
        if has_current {
            let times = files.options.file_times;
            files.current = Some(Current::resume(&*files.disk, &*files.clock, times)?);
            // The earlier run may have ended before it synced the directory.
            files.is_dir_dirty = true;
        } else {
            // The earlier run may have ended after it renamed its current file, and before it synced
            // the directory. Without this sync, a crash could preserve only the creation of the next
            // file, which would replace that file.
            files.is_dir_dirty = !files.closed.is_empty();
            files.sync_dir_if_dirty();
            files.create_current()?;
        }
        files.remove_expired();
        Ok(files)
    }

    /// Lists the closed files, and removes what an interrupted compression has left. Returns `true`
    /// if there is a current file.
    fn read_names(&mut self) -> Result<bool> {
        let mut has_current = false;
        let mut last = None;
        // The list is sorted by name, and therefore by closing time. A file precedes the compressed
        // one of the same time.
        for name in self.disk.list("")? {
            match names::parse(&name) {
                Name::Current => has_current = true,
                Name::Closed(stamp) => {
                    let original = Stamp { is_compressed: false, ..stamp };
                    if stamp.is_compressed && last == Some(original) {
                        self.disk.remove(&name)?;
                        continue;
                    }
                    let bytes = self.disk.open(&name, READ_ONLY)?.bytes()?;
                    self.closed.add(stamp, bytes);
                    last = Some(stamp);
                }
                Name::Temporary => self.disk.remove(&name)?,
                Name::Other => {}
            }
        }
        Ok(has_current)
    }

    /// Starts the compression of all closed files, if [`Options::compress`] is set. `on_outcome` is
    /// called on another thread when [`Files::finish_compressed`] has work.
    pub(crate) fn start_compression(
        &mut self,
        on_outcome: impl Fn() + Send + 'static,
    ) -> std::io::Result<()> {
        let Some(compression) = self.options.compress else { return Ok(()) };
        let compressor = Compressor::start(Arc::clone(&self.disk), compression, on_outcome)?;
        self.closed.uncompressed().for_each(|stamp| compressor.add(stamp));
        self.compressor = Some(compressor);
        Ok(())
    }

    /// `true` if a closed file waits for its compression or for step 4 of it.
    pub(crate) fn is_compressing(&self) -> bool {
        self.compressor.as_ref().is_some_and(Compressor::is_busy)
    }

    /// Executes step 4 of the compressions that are done, and reports failures.
    pub(crate) fn finish_compressed(&mut self) {
        let Some(compressor) = &self.compressor else { return };
        for (stamp, outcome) in compressor.take_outcomes() {
            match outcome {
                Outcome::Compressed { bytes } => {
                    let mut context = Context {
                        disk: &*self.disk,
                        compressor: self.compressor.as_ref(),
                        events: &mut self.events,
                    };
                    self.closed.replace_by_compressed(stamp, bytes, &mut context);
                    self.is_dir_dirty = true;
                }
                Outcome::Failed(error) => {
                    self.uncompressed.push(stamp);
                    self.events.push(Event::CompressFailed(Arc::new(error)));
                }
                Outcome::Incompressible | Outcome::Cancelled => {}
            }
        }
    }

    /// Stops the compression of files. The next run continues it.
    pub(crate) fn stop_compression(&mut self) {
        if let Some(compressor) = &mut self.compressor {
            compressor.stop();
        }
        self.finish_compressed();
    }

    /// Creates a new current file.
    fn create_current(&mut self) -> Result<()> {
        self.current = Some(Current::create(&*self.disk)?);
        self.is_dir_dirty = true;
        self.sync_dir_if_dirty();
        Ok(())
    }

    /// Writes `bytes` from index `done` on, to as many files as necessary, and advances `done`.
    /// After an error, calling it again with the same arguments continues at `done`.
    pub(crate) fn write(&mut self, bytes: &[u8], done: &mut usize) -> Result<()> {
        while *done < bytes.len() {
            let is_due = self.is_due();
            let Some(current) = &mut self.current else {
                self.create_current()?;
                continue;
            };
            if current.is_abandoned {
                // The line that was written partially is written again, completely, to the next
                // file.
                *done = rotation_policy::line_start(bytes, *done);
                self.rotate()?;
                continue;
            }
            let rest = &bytes[*done..];
            let bytes_max = self.options.file_bytes_max.unwrap_or(u64::MAX);
            let now = match rotation_policy::cut(current.end, rest, bytes_max) {
                cut if is_due => cut.min(rotation_policy::line_end(current.end, rest)),
                cut => cut,
            };
            if now == 0 {
                self.rotate()?;
                continue;
            }
            if current.end.bytes == 0 {
                let times = self.options.file_times;
                current.set_due(self.clock.now_us(), &*self.clock, times);
            }
            let before = *done;
            let written = current.write(&rest[..now], done);
            self.written_bytes += (*done - before) as u64;
            if let Err(error) = written {
                // On a full disk, space may become free, so the write is retried in the same file.
                // Any other error may be specific to this file or its blocks, so the next attempt
                // uses a new file. If that attempt fails, too, the later ones stay in the new file.
                let is_new = !error.is_full() && !self.is_failing;
                current.is_abandoned |= is_new && current.end.bytes > 0;
                self.is_failing = true;
                return Err(error);
            }
            self.is_failing = false;
        }
        Ok(())
    }

    /// Removes the oldest closed file because the disk is full, if [`Options::full_disk_files_min`]
    /// allows that. Returns `true` if a file was removed, and the write can be retried at once.
    ///
    /// Returns `false` if no byte was written since the last removal: the file system may free the
    /// space later, or another process may have used it. Thus at most one file is removed without effect
    /// before each pause. While the log is closing, no pause follows, so this rule does not apply.
    pub(crate) fn make_space(&mut self, is_closing: bool) -> bool {
        let Some(files_min) = self.options.full_disk_files_min else { return false };
        if self.space_made_at.take() == Some(self.written_bytes) && !is_closing {
            return false;
        }
        let mut context = Context {
            disk: &*self.disk,
            compressor: self.compressor.as_ref(),
            events: &mut self.events,
        };
        let is_removed = self.closed.make_space(files_min, &mut context);
        if is_removed {
            self.is_dir_dirty = true;
            self.space_made_at = Some(self.written_bytes);
        }
        is_removed
    }

    /// `true` if the current file must be closed at the next end of a line, because its time is over
    /// or a rotation was requested.
    fn is_due(&self) -> bool {
        let Some(current) = self.current.as_ref().filter(|current| current.end.bytes > 0) else {
            return false;
        };
        let is_over = |due_us| self.clock.now_us() >= due_us;
        self.is_rotation_requested || current.due_us.is_some_and(is_over)
    }

    /// Closes the current file if a rotation is due and the file ends with a complete line.
    pub(crate) fn rotate_if_due(&mut self) -> Result<()> {
        let at_line_end = self.current.as_ref().is_some_and(|current| current.end.at_line_end);
        if at_line_end && self.is_due() { self.rotate() } else { Ok(()) }
    }

    /// Closes the current file now or, if its last line is incomplete, when this line ends.
    pub(crate) fn request_rotation(&mut self) -> Result<()> {
        self.is_rotation_requested = true;
        if self.current.is_none() { self.rotate() } else { self.rotate_if_due() }
    }

    /// Returns the time until the schedule closes the current file; `None` if the file is empty or
    /// there is no schedule.
    pub(crate) fn until_due(&self) -> Option<Duration> {
        let current = self.current.as_ref().filter(|current| current.end.bytes > 0)?;
        let left_us = current.due_us?.saturating_sub(self.clock.now_us());
        Some(Duration::from_micros(left_us).min(WAIT_MAX))
    }

    /// Closes the current file, unless it is empty, and creates the next one.
    ///
    /// 1. Syncs the file. If the sync fails, the file gets the suffix `.unsynced` in step 2.
    /// 2. Renames the file and syncs the directory. Without this sync, a crash could preserve only
    ///    step 3, so that the new, empty file would replace this file.
    /// 3. Creates the next file and syncs the directory.
    /// 4. Removes expired files, even if the next file cannot be created.
    pub(crate) fn rotate(&mut self) -> Result<()> {
        self.close_current()?;
        let created = if self.current.is_none() { self.create_current() } else { Ok(()) };
        self.remove_expired();
        created
    }

    fn close_current(&mut self) -> Result<()> {
        let is_empty = |current: &Current| current.end.bytes == 0;
        if self.current.as_ref().is_none_or(is_empty) {
            self.is_rotation_requested = false;
            return Ok(());
        }
        if self.options.sync != SyncMode::Never {
            self.sync_current();
        }
        let Some(current) = &self.current else { return Ok(()) };
        let (is_synced, bytes) = (!current.is_unsynced, current.end.bytes);
        let stamp = self.closed.unused_stamp(&*self.disk, self.clock.now_us(), is_synced)?;
        let name = names::closed(stamp);
        self.disk.rename(CURRENT, &name)?;
        self.is_dir_dirty = true;
        self.sync_dir_if_dirty();
        self.current = None;
        self.is_rotation_requested = false;
        self.events.push(Event::Closed { name, bytes });
        self.closed.add(stamp, bytes);
        if let Some(compressor) = &self.compressor {
            self.uncompressed.drain(..).for_each(|failed| compressor.add(failed));
            compressor.add(stamp);
        }
        Ok(())
    }

    /// Syncs the current file if it may contain unsynced bytes. After a failure, the file is not
    /// written or synced again.
    fn sync_current(&mut self) {
        let Some(current) = &mut self.current else { return };
        if !current.is_dirty || current.is_unsynced {
            return;
        }
        match current.file.sync(Durability::Data) {
            Ok(()) => {
                current.is_dirty = false;
                self.syncs += 1;
            }
            Err(error) => {
                current.is_abandoned = true;
                current.is_unsynced = true;
                self.events.push(Event::SyncFailed(Arc::new(error)));
            }
        }
    }

    fn sync_dir_if_dirty(&mut self) {
        if !self.is_dir_dirty || self.options.sync == SyncMode::Never {
            return;
        }
        // A failure is final and reported once: a second sync could succeed without making the
        // names durable.
        self.is_dir_dirty = false;
        if let Err(error) = self.disk.sync_dir("") {
            self.events.push(Event::SyncFailed(Arc::new(error)));
        }
    }

    /// Syncs the current file and the directory. A failure is reported as an event.
    pub(crate) fn sync(&mut self) {
        self.sync_current();
        self.sync_dir_if_dirty();
    }

    /// Removes the closed files that exceed a limit of [`crate::Retention`].
    fn remove_expired(&mut self) {
        let (keep, now_us) = (&self.options.keep, self.clock.now_us());
        let mut context = Context {
            disk: &*self.disk,
            compressor: self.compressor.as_ref(),
            events: &mut self.events,
        };
        let reserved_bytes = self.options.reserved_bytes();
        self.is_dir_dirty |= self.closed.remove_expired(keep, reserved_bytes, now_us, &mut context);
    }
}
