//! The file to which lines are written.

use std::io;
use std::sync::Arc;

use haul_disk::{Disk, Error, File, Op, Open, Result};
use rustix::fs::FileType;

use super::rotation_policy::FileEnd;
use crate::calendar::{Clock, Schedule};
use crate::names::CURRENT;

/// The file to which lines are written.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) file: Arc<dyn File>,
    pub(crate) end: FileEnd,
    /// The time at which the schedule closes the file, in microseconds since the Unix epoch; `None`
    /// without a schedule, or while the file is empty.
    ///
    /// If the clock is set back, the time does not change; otherwise each line could close a file.
    pub(crate) due_us: Option<u64>,
    /// `true` if the file ends with an incomplete line of an earlier run: a newline must be written
    /// before the next line.
    is_torn: bool,
    /// `true` if the file may contain bytes that are not synced.
    pub(crate) is_dirty: bool,
    /// `true` if nothing more may be written to the file, because a write or a sync failed.
    pub(crate) is_abandoned: bool,
    /// `true` if a sync failed. The file is not synced again, because a later success would not
    /// prove that its bytes are durable.
    pub(crate) is_unsynced: bool,
}

/// Fails unless the file is regular: a device such as `/dev/null` would take lines and keep none.
fn check_kind(file: &dyn File) -> Result<()> {
    let status = file.descriptor().map(rustix::fs::fstat).transpose();
    let status = status.map_err(|errno| Error::new(Op::Status, CURRENT, errno))?;
    let is_regular = status
        .is_none_or(|status| FileType::from_raw_mode(status.st_mode) == FileType::RegularFile);
    if is_regular {
        return Ok(());
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    Err(Error::new(Op::Open, CURRENT, source))
}

impl Current {
    /// Creates a new current file.
    pub(crate) fn create(disk: &dyn Disk) -> Result<Self> {
        let file = disk.create(CURRENT, Open::default())?;
        Ok(Self {
            file,
            end: FileEnd { bytes: 0, at_line_end: true },
            due_us: None,
            is_torn: false,
            is_dirty: false,
            is_abandoned: false,
            is_unsynced: false,
        })
    }

    /// Opens the current file of an earlier run, to continue at its end. The time of its first line
    /// is unknown; the modification time of the file replaces it.
    pub(crate) fn resume(
        disk: &dyn Disk,
        clock: &dyn Clock,
        times: Option<Schedule>,
    ) -> Result<Self> {
        let file = disk.open(CURRENT, Open::default())?;
        check_kind(&*file)?;
        let bytes = file.bytes()?;
        let mut last = [b'\n'];
        if bytes > 0 {
            haul_disk::read_full(&*file, &mut last, bytes - 1)?;
        }
        let is_torn = last != [b'\n'];
        let modified_us = clock.modified_us(&*file).unwrap_or_else(|| clock.now_us());
        let mut current = Self {
            end: FileEnd { bytes, at_line_end: !is_torn },
            due_us: None,
            is_torn,
            // The earlier run may have ended before it synced these bytes.
            is_dirty: bytes > 0,
            is_abandoned: false,
            is_unsynced: false,
            file,
        };
        current.set_due(modified_us, clock, times);
        Ok(current)
    }

    /// Sets the time at which a file that was first written at `us` is closed.
    pub(crate) fn set_due(&mut self, us: u64, clock: &dyn Clock, times: Option<Schedule>) {
        let offset = |utc| clock.local_offset(utc);
        self.due_us = times.map(|times| times.next_us(us, &offset));
    }

    /// Appends `bytes` to the file and advances `done` by the number of bytes written, also if an
    /// error follows.
    pub(crate) fn write(&mut self, bytes: &[u8], done: &mut usize) -> Result<()> {
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
                let source = io::Error::from(io::ErrorKind::WriteZero);
                Err(Error::new(Op::Write, CURRENT, source).at(self.end.bytes, bytes.len()))
            }
            written => Ok(written),
        }
    }
}
