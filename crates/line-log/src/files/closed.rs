//! The closed files of a log, and their removal.

use std::collections::VecDeque;
use std::sync::Arc;

use haul_disk::{Disk, Open, Result};

use super::names::{self, Stamp};
use super::rotation_policy::{self, ClosedFile};
use crate::options::Retention;
use crate::stats::Event;

/// A closed file, which is no longer written to.
#[derive(Debug)]
struct Entry {
    name: String,
    file: ClosedFile,
}

/// The closed files, from the oldest to the newest.
#[derive(Debug, Default)]
pub(crate) struct ClosedFiles {
    entries: VecDeque<Entry>,
    newest_us: Option<u64>,
}

impl ClosedFiles {
    /// Adds a file that is newer than all others.
    pub(crate) fn add(&mut self, stamp: Stamp, bytes: u64) {
        let file = ClosedFile { at_us: stamp.at_us, bytes };
        self.entries.push_back(Entry { name: names::closed(stamp), file });
        self.newest_us = self.newest_us.max(Some(stamp.at_us));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the stamp of a file that is closed now. Skips names that files of other programs
    /// have.
    pub(crate) fn unused_stamp(
        &self,
        disk: &dyn Disk,
        now_us: u64,
        is_synced: bool,
    ) -> Result<Stamp> {
        let mut newest_us = self.newest_us;
        loop {
            let at_us = names::next_us(now_us, newest_us);
            let stamp = Stamp { at_us, is_synced };
            match disk.open(&names::closed(stamp), READ_ONLY) {
                Err(error) if error.is_not_found() => return Ok(stamp),
                Err(error) => return Err(error),
                Ok(_) => newest_us = Some(at_us),
            }
        }
    }

    /// Removes the files that exceed a limit of `keep`, and reports each. Returns `true` if a file
    /// was removed.
    pub(crate) fn remove_expired(
        &mut self,
        disk: &dyn Disk,
        keep: &Retention,
        current_bytes: u64,
        now_us: u64,
        events: &mut Vec<Event>,
    ) -> bool {
        let files = self.entries.iter().map(|entry| entry.file);
        let count = rotation_policy::expired_count(files, keep, current_bytes, now_us);
        let mut is_removed = false;
        for _ in 0..count {
            match self.remove_oldest(disk, events) {
                Removal::Done(entry) => {
                    is_removed = true;
                    events.push(Event::Removed { name: entry.name });
                }
                Removal::Missing => {}
                Removal::Failed => break,
            }
        }
        is_removed
    }

    /// Removes the oldest file, unless only `files_min` files are left, and reports it. Returns
    /// `true` if a file was removed.
    pub(crate) fn make_space(
        &mut self,
        disk: &dyn Disk,
        files_min: u32,
        events: &mut Vec<Event>,
    ) -> bool {
        while self.entries.len() > files_min as usize {
            match self.remove_oldest(disk, events) {
                Removal::Done(Entry { name, file }) => {
                    events.push(Event::RemovedForSpace { name, bytes: file.bytes });
                    return true;
                }
                Removal::Missing => {}
                Removal::Failed => break,
            }
        }
        false
    }

    /// Removes the oldest file. A failure is reported as an event, and the file stays in the list.
    fn remove_oldest(&mut self, disk: &dyn Disk, events: &mut Vec<Event>) -> Removal {
        let Some(oldest) = self.entries.pop_front() else { return Removal::Missing };
        match disk.remove(&oldest.name) {
            Ok(()) => Removal::Done(oldest),
            Err(error) if error.is_not_found() => Removal::Missing,
            Err(error) => {
                events.push(Event::RemoveFailed(Arc::new(error)));
                self.entries.push_front(oldest);
                Removal::Failed
            }
        }
    }
}

/// The result of the removal of a file.
enum Removal {
    Done(Entry),
    /// There is no file, or another process has removed it.
    Missing,
    Failed,
}

/// Opens a closed file for reading.
pub(crate) const READ_ONLY: Open =
    Open { direct: false, dsync: false, random: false, read_only: true };
