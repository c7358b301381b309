//! The files of a log: the one being written, and the closed ones. Used by one thread alone.

use std::collections::VecDeque;
use std::sync::Arc;

use haul_disk::{Disk, Durability, Error, File, Open, Result};

use crate::clock::Clock;
use crate::names::{self, CURRENT, Name, Stamp};
use crate::options::{Options, SyncWhen};
use crate::plan::{self, Filled, Kept};
use crate::stats::Event;

/// The file being written.
#[derive(Debug)]
struct Current {
    file: Arc<dyn File>,
    filled: Filled,
    /// When its first line was written, as far as is known.
    begun_us: u64,
    /// The last line was torn by a crash: it is ended before the next one begins.
    is_torn: bool,
    /// Bytes of it may not be on the medium.
    is_dirty: bool,
    /// A write or a sync failed: nothing more goes into it.
    is_spoiled: bool,
    /// A sync failed: no other one can make up for it.
    is_unsynced: bool,
}

/// A file that nobody writes to any more.
#[derive(Debug)]
struct Closed {
    name: String,
    kept: Kept,
}

/// All files of a log.
#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    options: Options,
    current: Option<Current>,
    closed: VecDeque<Closed>,
    newest_us: Option<u64>,
    /// Names were changed since the directory was synced.
    is_dir_dirty: bool,
    /// Somebody wants the current file closed.
    is_asked: bool,
    /// A write failed, and none succeeded since: it is tried again in the same place. A new file
    /// for each attempt would in the end remove all old ones.
    is_failing: bool,
    /// What happened since it was last asked.
    pub(crate) events: Vec<Event>,
    /// How often a file was synced.
    pub(crate) syncs: u64,
}

impl Files {
    /// Finds the files that are there, and goes on with the current one.
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
            is_asked: false,
            is_failing: false,
            events: Vec::new(),
            syncs: 0,
        };
        let mut has_current = false;
        let read_only = Open { read_only: true, ..Open::default() };
        // Sorted by name, and so by time.
        for name in files.disk.list("")? {
            match names::parse(&name) {
                Name::Current => has_current = true,
                Name::Closed(stamp) => {
                    let bytes = files.disk.open(&name, read_only)?.bytes()?;
                    files
                        .closed
                        .push_back(Closed { name, kept: Kept { at_us: stamp.at_us, bytes } });
                    files.newest_us = files.newest_us.max(Some(stamp.at_us));
                }
                Name::Other => {}
            }
        }
        if has_current {
            files.current = Some(files.go_on()?);
            // Nobody knows which names the earlier run synced, this one's among them.
            files.is_dir_dirty = true;
        } else {
            files.begin()?;
        }
        files.remove_old();
        Ok(files)
    }

    /// The current file that an earlier run left.
    fn go_on(&self) -> Result<Current> {
        let file = self.disk.open(CURRENT, Open::default())?;
        let bytes = file.bytes()?;
        let mut last = [b'\n'];
        if bytes > 0 {
            haul_disk::read_full(&*file, &mut last, bytes - 1)?;
        }
        let is_torn = last != [b'\n'];
        Ok(Current {
            begun_us: self.clock.modified_us(&*file).unwrap_or_else(|| self.clock.now_us()),
            filled: Filled { bytes, at_line_end: !is_torn },
            is_torn,
            // Nobody knows what the earlier run synced.
            is_dirty: bytes > 0,
            is_spoiled: false,
            is_unsynced: false,
            file,
        })
    }

    /// A new current file.
    fn begin(&mut self) -> Result<()> {
        let file = self.disk.create(CURRENT, Open::default())?;
        self.is_dir_dirty = true;
        self.current = Some(Current {
            file,
            filled: Filled { bytes: 0, at_line_end: true },
            begun_us: self.clock.now_us(),
            is_torn: false,
            is_dirty: false,
            is_spoiled: false,
            is_unsynced: false,
        });
        self.sync_names();
        Ok(())
    }

    /// Writes what of `bytes` is not `done` yet, into as many files as it takes. After an error the
    /// same call goes on where this one stopped.
    pub(crate) fn write(&mut self, bytes: &[u8], done: &mut usize) -> Result<()> {
        while *done < bytes.len() {
            let is_due = self.is_due();
            let Some(current) = &mut self.current else {
                self.begin()?;
                continue;
            };
            if current.is_spoiled {
                // The line it broke off in is written whole into the next one.
                *done = plan::line_start(bytes, *done);
                self.rotate()?;
                continue;
            }
            let rest = &bytes[*done..];
            let bytes_max = self.options.file_bytes_max.unwrap_or(u64::MAX);
            let now = match plan::cut(current.filled, rest, bytes_max) {
                cut if is_due => cut.min(plan::line_end(current.filled, rest)),
                cut => cut,
            };
            if now == 0 {
                self.rotate()?;
                continue;
            }
            if current.filled.bytes == 0 {
                current.begun_us = self.clock.now_us();
            }
            if let Err(error) = current.write(&rest[..now], done) {
                // Room can be made. Whatever else it is, it may be this file or this place of the
                // disk, so one other is tried.
                let is_new = !error.is_full() && !self.is_failing;
                current.is_spoiled |= is_new && current.filled.bytes > 0;
                self.is_failing = true;
                return Err(error);
            }
            self.is_failing = false;
        }
        Ok(())
    }

    /// Whether the current file is to be closed at the end of a line: its interval is over, or
    /// somebody asked.
    fn is_due(&self) -> bool {
        let Some(current) = self.current.as_ref().filter(|current| current.filled.bytes > 0) else {
            return false;
        };
        let is_old = |every| plan::is_old(current.begun_us, self.clock.now_us(), every);
        self.is_asked || self.options.file_time.is_some_and(is_old)
    }

    /// Closes the current file if that is due, and a line ends where it ends.
    pub(crate) fn rotate_if_due(&mut self) -> Result<()> {
        let at_line_end = self.current.as_ref().is_some_and(|current| current.filled.at_line_end);
        if at_line_end && self.is_due() { self.rotate() } else { Ok(()) }
    }

    /// Closes the current file, at the end of the line that was begun.
    pub(crate) fn rotate_when_asked(&mut self) -> Result<()> {
        self.is_asked = true;
        if self.current.is_none() { self.rotate() } else { self.rotate_if_due() }
    }

    /// How long until the interval of the current file is over, if there is anything in it.
    pub(crate) fn until_due(&self) -> Option<std::time::Duration> {
        let every = self.options.file_time?;
        let current = self.current.as_ref().filter(|current| current.filled.bytes > 0)?;
        let now_us = self.clock.now_us();
        // A clock that was set back: the file waits for its own interval to be over.
        Some(plan::until_next(now_us.max(current.begun_us), every))
    }

    /// Closes the current file, unless it is empty, and begins the next one.
    ///
    /// 1. Its bytes are synced. When that fails, it is called unsynced and not trusted further.
    /// 2. It gets the name it keeps, and the directory is synced: a crash that kept only the next
    ///    step would put an empty file in its place.
    /// 3. The next one is made, and the directory is synced.
    /// 4. Old ones are removed: only now, and also when the next one finds no room.
    pub(crate) fn rotate(&mut self) -> Result<()> {
        self.close_current()?;
        let begun = if self.current.is_none() { self.begin() } else { Ok(()) };
        self.remove_old();
        begun
    }

    fn close_current(&mut self) -> Result<()> {
        let is_empty = |current: &Current| current.filled.bytes == 0;
        if self.current.as_ref().is_none_or(is_empty) {
            self.is_asked = false;
            return Ok(());
        }
        if self.options.sync != SyncWhen::Never {
            self.sync_current();
        }
        let Some(current) = &self.current else { return Ok(()) };
        let (is_synced, bytes) = (!current.is_unsynced, current.filled.bytes);
        let stamp = self.free_stamp(is_synced)?;
        let name = names::closed(stamp);
        self.disk.rename(CURRENT, &name)?;
        self.is_dir_dirty = true;
        self.sync_names();
        self.newest_us = Some(stamp.at_us);
        self.current = None;
        self.is_asked = false;
        self.events.push(Event::Closed { name: name.clone(), bytes });
        self.closed.push_back(Closed { name, kept: Kept { at_us: stamp.at_us, bytes } });
        Ok(())
    }

    /// A name nobody has: not even somebody who is not us.
    fn free_stamp(&self, is_synced: bool) -> Result<Stamp> {
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

    /// Syncs the current file, where that is needed. A failure is final for it.
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
                current.is_spoiled = true;
                current.is_unsynced = true;
                self.events.push(Event::Unsynced(Arc::new(error)));
            }
        }
    }

    fn sync_names(&mut self) {
        if !self.is_dir_dirty || self.options.sync == SyncWhen::Never {
            return;
        }
        // A failure is told, and final: a second sync would prove nothing.
        self.is_dir_dirty = false;
        if let Err(error) = self.disk.sync_dir("") {
            self.events.push(Event::Unsynced(Arc::new(error)));
        }
    }

    /// Syncs what was written, and the names. What fails is an event.
    pub(crate) fn sync(&mut self) {
        self.sync_current();
        self.sync_names();
    }

    /// Removes the closed files that need not be kept.
    fn remove_old(&mut self) {
        let closed = self.closed.iter().map(|closed| closed.kept);
        let current_bytes = self.options.file_bytes_max.unwrap_or(0);
        let now_us = self.clock.now_us();
        let count = plan::to_remove(closed, &self.options.keep, current_bytes, now_us);
        for _ in 0..count {
            let Some(oldest) = self.closed.pop_front() else { return };
            match self.disk.remove(&oldest.name) {
                Ok(()) => {
                    self.is_dir_dirty = true;
                    self.events.push(Event::Removed { name: oldest.name });
                }
                // Somebody else was faster.
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    self.events.push(Event::NotRemoved(Arc::new(error)));
                    self.closed.push_front(oldest);
                    return;
                }
            }
        }
    }
}

impl Current {
    /// Appends, counting what the kernel took also where it then failed.
    fn write(&mut self, bytes: &[u8], done: &mut usize) -> Result<()> {
        if self.is_torn {
            haul_disk::write_full(&*self.file, b"\n", self.filled.bytes)?;
            self.filled.bytes += 1;
            self.is_torn = false;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = self.write_some(rest)?;
            let (taken, left) = rest.split_at(written);
            self.filled.bytes += written as u64;
            self.filled.at_line_end = taken.ends_with(b"\n");
            self.is_dirty = true;
            *done += written;
            rest = left;
        }
        Ok(())
    }

    fn write_some(&self, bytes: &[u8]) -> Result<usize> {
        match self.file.write_some(bytes, self.filled.bytes)? {
            0 => {
                let source = std::io::Error::from(std::io::ErrorKind::WriteZero);
                Err(Error::new(haul_disk::Op::Write, CURRENT, source)
                    .at(self.filled.bytes, bytes.len()))
            }
            written => Ok(written),
        }
    }
}
