//! The closed files of a log, and their removal.

use std::collections::VecDeque;
use std::sync::Arc;

use haul_disk::{Disk, Result};

use super::rotation_policy::{self, ClosedFile};
use crate::compress::Compressor;
use crate::names::{self, READ_ONLY, Stamp};
use crate::options::Retention;
use crate::stats::Event;

/// A closed file, which is no longer written to.
#[derive(Debug, Clone, Copy)]
struct Entry {
    stamp: Stamp,
    bytes: u64,
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
        self.entries.push_back(Entry { stamp, bytes });
        self.newest_us = self.newest_us.max(Some(stamp.at_us));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the files that are not compressed, oldest first.
    pub(crate) fn uncompressed(&self) -> impl Iterator<Item = Stamp> {
        self.entries.iter().map(|entry| entry.stamp).filter(|stamp| !stamp.is_compressed)
    }

    /// Executes step 4 of the compression of a file, which now has `to_bytes` bytes: removes the
    /// file that was compressed. If that fails, or the file is not in the list any more, removes
    /// the compressed file instead: the lines must not appear twice or again.
    pub(crate) fn replace_by_compressed(
        &mut self,
        stamp: Stamp,
        to_bytes: u64,
        context: &mut Context<'_>,
    ) {
        let compressed = Stamp { is_compressed: true, ..stamp };
        let name = names::closed(compressed);
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.stamp == stamp) {
            match context.disk.remove(&names::closed(stamp)) {
                Ok(()) => {
                    let from_bytes = std::mem::replace(&mut entry.bytes, to_bytes);
                    entry.stamp = compressed;
                    context.events.push(Event::Compressed { name, from_bytes, to_bytes });
                    return;
                }
                // Another process has removed the file.
                Err(error) if error.is_not_found() => {
                    self.entries.retain(|entry| entry.stamp != stamp);
                }
                Err(error) => context.events.push(Event::RemoveFailed(Arc::new(error))),
            }
        }
        if let Err(error) = context.disk.remove(&name) {
            context.events.push(Event::RemoveFailed(Arc::new(error)));
        }
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
            let stamp = Stamp { at_us, is_synced, is_compressed: false };
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
        keep: &Retention,
        reserved_bytes: u64,
        now_us: u64,
        context: &mut Context<'_>,
    ) -> bool {
        let file = |entry: &Entry| ClosedFile { at_us: entry.stamp.at_us, bytes: entry.bytes };
        let files = self.entries.iter().map(file);
        let count = rotation_policy::expired_count(files, keep, reserved_bytes, now_us);
        let mut is_removed = false;
        for _ in 0..count {
            match self.remove_oldest(context) {
                Removal::Done(Entry { stamp, .. }) => {
                    is_removed = true;
                    context.events.push(Event::Removed { name: names::closed(stamp) });
                }
                Removal::Missing => {}
                Removal::Failed => break,
            }
        }
        is_removed
    }

    /// Removes the oldest file, unless only `files_min` files are left, and reports it. Returns
    /// `true` if a file was removed.
    pub(crate) fn make_space(&mut self, files_min: u32, context: &mut Context<'_>) -> bool {
        while self.entries.len() > files_min as usize {
            match self.remove_oldest(context) {
                Removal::Done(Entry { stamp, bytes }) => {
                    let name = names::closed(stamp);
                    context.events.push(Event::RemovedForSpace { name, bytes });
                    return true;
                }
                Removal::Missing => {}
                Removal::Failed => break,
            }
        }
        false
    }

    /// Removes the oldest file. A failure is reported as an event, and the file stays in the list.
    fn remove_oldest(&mut self, context: &mut Context<'_>) -> Removal {
        let Some(oldest) = self.entries.pop_front() else { return Removal::Missing };
        if let Some(compressor) = context.compressor {
            // A file that is open occupies its space after it was removed.
            compressor.cancel(oldest.stamp);
        }
        match context.disk.remove(&names::closed(oldest.stamp)) {
            Ok(()) => Removal::Done(oldest),
            Err(error) if error.is_not_found() => Removal::Missing,
            Err(error) => {
                context.events.push(Event::RemoveFailed(Arc::new(error)));
                self.entries.push_front(oldest);
                Removal::Failed
            }
        }
    }
}

/// The objects that a change of the closed files uses.
pub(crate) struct Context<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) compressor: Option<&'a Compressor>,
    pub(crate) events: &'a mut Vec<Event>,
}

/// The result of the removal of a file.
enum Removal {
    Done(Entry),
    /// There is no file, or another process has removed it.
    Missing,
    Failed,
}
