//! Evicts files from the page cache, and counts the pages that remain, by reason.

use haul_disk::{Error, Op, evict};

use crate::counts::PageCounts;
use crate::devices::Devices;
use crate::files::{Files, FoundFile, count_or_unknown, open_quietly};

/// The result of an eviction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evicted {
    /// The page counts before the eviction.
    pub before: PageCounts,
    /// The page counts after the eviction.
    pub after: PageCounts,
    /// The pages that remained cached after the eviction, by reason, without those counted in
    /// `in_memory`.
    pub remaining: Remaining,
    /// The number of cached pages of files on tmpfs or ramfs, which cannot be evicted.
    pub in_memory: u64,
}

/// The numbers of pages that remained cached after an eviction, by reason.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// The number of dirty pages, which the kernel does not evict before writeback.
    pub dirty: u64,
    /// The number of pages under writeback.
    pub writeback: u64,
    /// The number of cached pages that are neither dirty nor under writeback: mapped, locked or
    /// being read.
    pub in_use: u64,
}

impl Remaining {
    fn add(&mut self, after: &PageCounts) {
        let dirty = after.dirty.min(after.resident);
        let writeback = after.writeback.min(after.resident - dirty);
        self.dirty += dirty;
        self.writeback += writeback;
        self.in_use += after.resident - dirty - writeback;
    }
}

impl Evicted {
    /// Evicts all files. If `sync` is set, first syncs each file that may have cached pages, since
    /// dirty pages cannot be evicted. Calls `failed` for each file that cannot be evicted, and
    /// continues with the next file.
    pub fn run(files: &Files<'_>, sync: bool, mut failed: impl FnMut(&Error)) -> Self {
        let mut devices = Devices::default();
        let mut evicted = Self::default();
        for found in files.iter() {
            match evict_one(&found, sync) {
                Ok((before, after)) => {
                    evicted.before += before;
                    evicted.after += after;
                    if after.resident > 0 && devices.kind(found.device, &found.path).in_memory {
                        evicted.in_memory += after.resident;
                    } else {
                        evicted.remaining.add(&after);
                    }
                }
                Err(error) => failed(&error),
            }
        }
        evicted
    }
}

/// How often a file is evicted of which pages remain that are neither dirty nor under writeback:
/// another thread may have held them for a moment, or their writeback may just have ended.
const ATTEMPTS_MAX: u32 = 3;

/// Evicts one file, and returns its page counts before and after the eviction.
fn evict_one(found: &FoundFile, sync: bool) -> haul_disk::Result<(PageCounts, PageCounts)> {
    let fd = open_quietly(found)?;
    let before = count_or_unknown(&found.path, &fd)?;
    if sync && before.resident + before.unknown > 0 {
        rustix::fs::fdatasync(&fd).map_err(|errno| Error::new(Op::Sync, &found.path, errno))?;
    }
    let mut attempts = 0;
    loop {
        evict(&fd, 0, u64::MAX)?;
        attempts += 1;
        let after = count_or_unknown(&found.path, &fd)?;
        if after.resident <= after.dirty + after.writeback || attempts == ATTEMPTS_MAX {
            return Ok((before, after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_remaining_page_has_one_reason() {
        for (resident, dirty, writeback, expected) in [
            (0, 0, 0, (0, 0, 0)),
            (9, 0, 0, (0, 0, 9)),
            (9, 4, 3, (4, 3, 2)),
            // The kernel's counts may be inconsistent if pages change while it counts.
            (9, 9, 9, (9, 0, 0)),
            (2, 5, 0, (2, 0, 0)),
        ] {
            let mut remaining = Remaining::default();
            remaining.add(&PageCounts { resident, dirty, writeback, ..PageCounts::default() });
            let (dirty, writeback, in_use) = expected;
            assert_eq!(remaining, Remaining { dirty, writeback, in_use });
        }
    }
}
