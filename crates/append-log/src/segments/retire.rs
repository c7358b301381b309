//! Keeps removed segments' files as spare files, or removes them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haul_disk::{has_holes, link_count};

use crate::error::Result;
use crate::format::HEADER_BYTES;
use crate::names;
use crate::segments::pool::Pool;
use crate::segments::spares::Spare;
use crate::segments::{RANDOM, Segment};

impl Pool {
    /// Adds a spare file found by recovery to the pool. Removes the file instead if it has the
    /// wrong length, has holes, has another name (a hard link), or is not needed.
    pub(crate) fn adopt(&self, number: u32) -> Result<()> {
        let name = names::spare(number);
        let file = self.disk.open(&name, RANDOM)?;
        let (bytes, is_whole) = (file.bytes()?, !has_holes(&*file)? && link_count(&*file)? == 1);
        drop(file);
        let is_reserve = number == names::RESERVE;
        let bytes = u32::try_from(bytes).ok().filter(|_| is_whole);
        match bytes {
            Some(bytes) if is_reserve && self.options.reserve_segment_bytes() == Some(bytes) => {
                self.spares.lock().short = Some(Spare { number, bytes, segment: None });
            }
            Some(bytes)
                if !is_reserve && (self.keeps_spare(bytes) || self.keeps_outgrown(bytes)) =>
            {
                self.add_spare(number, bytes, None);
            }
            _ => self.disk.remove(&name)?,
        }
        Ok(())
    }

    /// Removes a segment from the log. The removal is durable when this returns.
    ///
    /// 1. Renames the file to a spare file, or removes it. After a crash the segment exists as
    ///    before, or not at all. A file with another name (a hard link) is shared with a copy of
    ///    the log and must not be overwritten: it is removed. A file that is not on this machine,
    ///    and a file whose pages sockets may still send, are removed, too.
    /// 2. Syncs the directory. Only then may the file be overwritten: otherwise its name as a
    ///    segment could reappear after a crash and refer to other bytes.
    pub(crate) fn retire(&self, segment: Arc<Segment>) -> Result<()> {
        let (number, bytes) = (segment.number, segment.bytes);
        let name = names::segment(number);
        let is_private = segment.pages.retire();
        let keeps = is_private
            && self.keeps_spare(bytes)
            && segment.file.is_local()
            && !has_holes(&*segment.file)?
            && link_count(&*segment.file)? == 1;
        debug_assert!(!keeps || segment.end() >= HEADER_BYTES);
        if keeps {
            self.disk.rename(&name, &names::spare(number))?;
        } else {
            self.disk.remove(&name)?;
        }
        self.disk.sync_dir("")?;
        if keeps {
            self.add_spare(number, bytes, Some(segment));
        }
        self.removals.fetch_add(1, Ordering::Release);
        self.locked_removals.fetch_add((!is_private).into(), Ordering::Release);
        Ok(())
    }

    /// `true` if the file of a removed segment of this length should be kept as a spare file.
    fn keeps_spare(&self, bytes: u32) -> bool {
        let reserved = self.reserved.load(Ordering::Relaxed);
        let room = reserved.saturating_add(self.options.spare_segments_max) as usize;
        (self.recycles || reserved > 0)
            && (self.lengths.whole()..=self.options.segment_bytes).contains(&bytes)
            && bytes.is_multiple_of(HEADER_BYTES)
            && self.spares() < room
    }

    /// `true` if a spare file of this length, shorter than a whole segment, should be kept because
    /// the reserve is incomplete.
    fn keeps_outgrown(&self, bytes: u32) -> bool {
        let reserved = self.reserved.load(Ordering::Relaxed) as usize;
        self.lengths.is_outgrown(bytes)
            && bytes.is_multiple_of(HEADER_BYTES)
            && self.spares.lock().files.len() < reserved
    }
}
