//! Writes, syncs, closes and removes the files of a log. After the log was opened, only the
//! background thread uses this module.

use std::collections::VecDeque;
use std::sync::Arc;

use haul_disk::{Disk, Durability, Error, File, Open, Result};

use crate::clock::Clock;
use crate::names::{self, CURRENT, Name, Stamp};
use crate::options::{Options, SyncMode};
use crate::rotation_policy::{self, ClosedFile, FileEnd};
use crate::stats::Event;

/// The file to which lines are written.
#[derive(Debug)]
struct Current {
    file: Arc<dyn File>,
    end: FileEnd,
    /// The time of the first write to the file, in microseconds since the Unix epoch. For a file of
    /// an earlier run, the modification time of the file.
    first_write_us: u64,
    /// `true` if the file ends with an incomplete line of an earlier run: a newline must be written
    /// before the next line.
    is_torn: bool,
    /// `true` if the file may contain bytes that are not synced.
    is_dirty: bool,
    /// `true` if nothing more may be written to the file, because a write or a sync failed.
    is_abandoned: bool,
    /// `true` if a sync failed. The file is not synced again, because a later success would not
    /// prove that its bytes are durable.
    is_unsynced: bool,
}

/// A closed file, which is no longer written to.
#[derive(Debug)]
struct ClosedEntry {
    name: String,
    file: ClosedFile,
}

/// All files of a log, and the pending work on these files.
#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    options: Options,
    current: Option<Current>,
    closed: VecDeque<ClosedEntry>,
    newest_us: Option<u64>,
    /// `true` if names have changed since the directory was last synced.
    is_dir_dirty: bool,
    /// `true` if a caller requested a rotation that has not taken place yet.
    is_rotation_requested: bool,
    /// `true` if the last write failed. The write is then retried in the same file: if each attempt
    /// created a new file, retention would remove all old files.
    is_failing: bool,
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
            closed: VecDeque::new(),
            newest_us: None,
            is_dir_dirty: false,
            is_rotation_requested: false,
            is_failing: false,
            events: Vec::new(),
            syncs: 0,
        };
        let mut has_current = false;
        let read_only = Open { read_only: true, ..Open::default() };
        // The list is sorted by name, and therefore by closing time.
        for name in files.disk.list("")? {
            match names::parse(&name) {
                Name::Current => has_current = true,
                Name::Closed(stamp) => {
                    let bytes = files.disk.open(&name, read_only)?.bytes()?;
                    files.closed.push_back(ClosedEntry {
                        name,
                        file: ClosedFile { at_us: stamp.at_us, bytes },
                    });
                    files.newest_us = files.newest_us.max(Some(stamp.at_us));
                }
                Name::Other => {}
            }
        }
        if has_current {
            files.current = Some(files.resume()?);
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

    /// Opens the current file of an earlier run, to continue at its end.
    fn resume(&self) -> Result<Current> {
        let file = self.disk.open(CURRENT, Open::default())?;
        let bytes = file.bytes()?;
        let mut last = [b'\n'];
        if bytes > 0 {
            haul_disk::read_full(&*file, &mut last, bytes - 1)?;
        }
        let is_torn = last != [b'\n'];
        Ok(Current {
            first_write_us: self.clock.modified_us(&*file).unwrap_or_else(|| self.clock.now_us()),
            end: FileEnd { bytes, at_line_end: !is_torn },
            is_torn,
            // The earlier run may have ended before it synced these bytes.
            is_dirty: bytes > 0,
            is_abandoned: false,
            is_unsynced: false,
            file,
        })
    }

    /// Creates a new current file.
    fn create_current(&mut self) -> Result<()> {
        let file = self.disk.create(CURRENT, Open::default())?;
        self.is_dir_dirty = true;
        self.current = Some(Current {
            file,
            end: FileEnd { bytes: 0, at_line_end: true },
            first_write_us: self.clock.now_us(),
            is_torn: false,
            is_dirty: false,
            is_abandoned: false,
            is_unsynced: false,
        });
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
                current.first_write_us = self.clock.now_us();
            }
            if let Err(error) = current.write(&rest[..now], done) {
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

    /// `true` if the current file must be closed at the next end of a line, because its interval is
    /// over or a rotation was requested.
    fn is_due(&self) -> bool {
        let Some(current) = self.current.as_ref().filter(|current| current.end.bytes > 0) else {
            return false;
        };
        let is_interval_over = |every| {
            rotation_policy::is_interval_over(current.first_write_us, self.clock.now_us(), every)
        };
        self.is_rotation_requested || self.options.file_time.is_some_and(is_interval_over)
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

    /// Returns the time until the interval of the current file is over; `None` if the file is empty
    /// or there is no interval.
    pub(crate) fn until_due(&self) -> Option<std::time::Duration> {
        let every = self.options.file_time?;
        let current = self.current.as_ref().filter(|current| current.end.bytes > 0)?;
        let now_us = self.clock.now_us();
        // If the clock was set back, the interval in which the file was first written is used.
        Some(rotation_policy::until_next(now_us.max(current.first_write_us), every))
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
        let stamp = self.unused_stamp(is_synced)?;
        let name = names::closed(stamp);
        self.disk.rename(CURRENT, &name)?;
        self.is_dir_dirty = true;
        self.sync_dir_if_dirty();
        self.newest_us = Some(stamp.at_us);
        self.current = None;
        self.is_rotation_requested = false;
        self.events.push(Event::Closed { name: name.clone(), bytes });
        self.closed.push_back(ClosedEntry { name, file: ClosedFile { at_us: stamp.at_us, bytes } });
        Ok(())
    }

    /// Returns a stamp that results in an unused file name. Skips names that files of other
    /// programs have.
    fn unused_stamp(&self, is_synced: bool) -> Result<Stamp> {
        let mut newest_us = self.newest_us;
        loop {
            let at_us = names::next_us(self.clock.now_us(), newest_us);
            let stamp = Stamp { at_us, is_synced };
            let read_only = Open { read_only: true, ..Open::default() };
            match self.disk.open(&names::closed(stamp), read_only) {
                Err(error) if error.is_not_found() => return Ok(stamp),
                Err(error) => return Err(error),
                Ok(_) => newest_us = Some(at_us),
            }
        }
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
        let closed = self.closed.iter().map(|closed| closed.file);
        let current_bytes = self.options.file_bytes_max.unwrap_or(0);
        let now_us = self.clock.now_us();
        let count =
            rotation_policy::expired_count(closed, &self.options.keep, current_bytes, now_us);
        for _ in 0..count {
            let Some(oldest) = self.closed.pop_front() else { return };
            match self.disk.remove(&oldest.name) {
                Ok(()) => {
                    self.is_dir_dirty = true;
                    self.events.push(Event::Removed { name: oldest.name });
                }
                // Another process has removed the file.
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    self.events.push(Event::RemoveFailed(Arc::new(error)));
                    self.closed.push_front(oldest);
                    return;
                }
            }
        }
    }
}

impl Current {
    /// Appends `bytes` to the file and advances `done` by the number of bytes written, also if an
    /// error follows.
    fn write(&mut self, bytes: &[u8], done: &mut usize) -> Result<()> {
        if self.is_torn {
            haul_disk::write_full(&*self.file, b"\n", self.end.bytes)?;
            self.end.bytes += 1;
            self.is_torn = false;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = self.write_some(rest)?;
            let (taken, left) = rest.split_at(written);
            self.end.bytes += written as u64;
            self.end.at_line_end = taken.ends_with(b"\n");
            self.is_dirty = true;
            *done += written;
            rest = left;
        }
        Ok(())
    }

    fn write_some(&self, bytes: &[u8]) -> Result<usize> {
        match self.file.write_some(bytes, self.end.bytes)? {
            0 => {
                let source = std::io::Error::from(std::io::ErrorKind::WriteZero);
                Err(Error::new(haul_disk::Op::Write, CURRENT, source)
                    .at(self.end.bytes, bytes.len()))
            }
            written => Ok(written),
        }
    }
}
