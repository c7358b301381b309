//! Executes a plan: lets the kernel compare and share the ranges.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::rc::Rc;

use haul_bulk_read::{FileId, Tree};
use haul_disk::{
    DedupeOutcome, DelayedAllocation, Error, ExtentMap, dedupe_range_at, extents, same_blocks_at,
};
use rustix::fs::{Advice, fadvise};

use super::events::{Events, SharedRange, Stats};
use super::plan::Run;
use crate::act::{OpenFile, SkipReason};
use crate::report::Identity;

/// The maximum number of files that are kept open.
const OPEN_MAX: usize = 64;

/// The length in bytes of a step of a range: the maximum that btrfs shares by one call.
const STEP_BYTES: u64 = 16 << 20;

/// An executor of runs.
pub(super) struct Sharing<'a> {
    tree: &'a Tree,
    block_bytes: u64,
    dry_run: bool,
    events: &'a dyn Events,
    open: HashMap<u32, Rc<OpenFile>>,
    /// The devices whose file system cannot share blocks.
    unsupported: HashSet<u64>,
    stats: Stats,
}

/// The outcome for one range.
enum Outcome {
    Shared,
    AlreadyShared,
    /// Not shared, for a reason that was already reported for another range.
    Silent,
}

impl<'a> Sharing<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        block_bytes: u64,
        dry_run: bool,
        events: &'a dyn Events,
    ) -> Self {
        Self {
            tree,
            block_bytes,
            dry_run,
            events,
            open: HashMap::new(),
            unsupported: HashSet::new(),
            stats: Stats::default(),
        }
    }

    /// Processes one run and reports its result.
    pub(super) fn process(&mut self, run: &Run) {
        let offset = |block: u32| u64::from(block) * self.block_bytes;
        let (from_offset, to_offset) = (offset(run.from.block), offset(run.to.block));
        let from = self.tree.path(FileId(run.from.file));
        let to = self.tree.path(FileId(run.to.file));
        let bytes = self.bytes(run);
        let range = SharedRange { from: &from, from_offset, to: &to, to_offset, bytes };
        match self.share(run, &range) {
            Ok(Outcome::Shared) => {
                self.stats.ranges += 1;
                self.stats.shared_bytes += bytes;
                self.events.shared(&range);
            }
            Ok(Outcome::AlreadyShared) => self.stats.already_shared_bytes += bytes,
            Ok(Outcome::Silent) => self.stats.skipped += 1,
            Err(reason) => {
                self.stats.skipped += 1;
                self.events.range_skipped(&range, &reason);
            }
        }
    }

    /// Returns the totals.
    pub(super) fn finish(self) -> Stats {
        self.stats
    }

    /// Returns the length of a run: its last block may end at the end of the file.
    fn bytes(&self, run: &Run) -> u64 {
        let length = self.tree.meta(FileId(run.to.file)).bytes;
        let end = (u64::from(run.to.block) + u64::from(run.blocks)) * self.block_bytes;
        end.min(length) - u64::from(run.to.block) * self.block_bytes
    }

    fn share(&mut self, run: &Run, range: &SharedRange<'_>) -> Result<Outcome, SkipReason> {
        let SharedRange { from_offset, to_offset, bytes, .. } = *range;
        let from_end = self.tree.meta(FileId(run.from.file)).bytes;
        let is_tail = !bytes.is_multiple_of(self.block_bytes);
        if is_tail && from_offset + bytes != from_end {
            // Two blocks of different lengths had the same digest.
            return Ok(Outcome::Silent);
        }
        let device = self.tree.meta(FileId(run.to.file)).device;
        if self.unsupported.contains(&device) {
            return Ok(Outcome::Silent);
        }
        let (from, to) = (self.open(run.from.file)?, self.open(run.to.file)?);
        let is_shared = same_blocks_at(
            &map(&from, from_offset, bytes),
            from_offset,
            &map(&to, to_offset, bytes),
            to_offset,
            bytes,
        );
        if is_shared {
            return Ok(Outcome::AlreadyShared);
        }
        if self.dry_run {
            return Ok(Outcome::Shared);
        }
        match share_bytes(&from, &to, range) {
            Ok(DedupeOutcome::Same) => Ok(Outcome::Shared),
            Ok(DedupeOutcome::Differs) => Err(SkipReason::ContentDiffers(range.from.to_owned())),
            Err(error) => {
                if error.is_unsupported() {
                    self.unsupported.insert(device);
                }
                Err(error.into())
            }
        }
    }

    /// Opens a file if it is in the state in which it was listed.
    fn open(&mut self, file: u32) -> Result<Rc<OpenFile>, SkipReason> {
        if let Some(open) = self.open.get(&file) {
            return Ok(Rc::clone(open));
        }
        let meta = self.tree.meta(FileId(file));
        let expected = Identity {
            device: meta.device,
            inode: meta.inode,
            bytes: meta.bytes,
            modified_ns: meta.modified_ns,
            changed_ns: meta.changed_ns,
        };
        let opened = OpenFile::open(&self.tree.path(FileId(file)), &expected);
        let opened = Rc::new(opened.map_err(|reason| match reason {
            SkipReason::Changed => SkipReason::ChangedSinceRead,
            reason => reason,
        })?);
        if self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        self.open.insert(file, Rc::clone(&opened));
        Ok(opened)
    }
}

/// Lets the kernel compare and share a range, in steps. Before a step, both files are read ahead: in
/// the comparison, the kernel reads one page at a time.
fn share_bytes(
    from: &OpenFile,
    to: &OpenFile,
    range: &SharedRange<'_>,
) -> Result<DedupeOutcome, Error> {
    let mut at = 0;
    while at < range.bytes {
        let bytes = STEP_BYTES.min(range.bytes - at);
        let (from_offset, to_offset) = (range.from_offset + at, range.to_offset + at);
        for (file, offset) in [(from, from_offset), (to, to_offset)] {
            // An error is ignored: without the advice the comparison is only slower.
            fadvise(&file.file, offset, NonZeroU64::new(bytes), Advice::WillNeed).ok();
        }
        let (from, to) = (from.file.as_fd(), to.file.as_fd());
        match dedupe_range_at(from, from_offset, to, to_offset, bytes)? {
            DedupeOutcome::Same => at += bytes,
            DedupeOutcome::Differs => return Ok(DedupeOutcome::Differs),
        }
    }
    Ok(DedupeOutcome::Same)
}

/// Returns the extent map of a range after its dirty pages were written. An empty map, which proves
/// nothing, stands for an error.
fn map(open: &OpenFile, offset: u64, bytes: u64) -> ExtentMap {
    extents(&open.file.as_fd(), offset, bytes, DelayedAllocation::Sync).unwrap_or_default()
}
