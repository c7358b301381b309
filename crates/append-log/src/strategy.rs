//! Chooses how a log creates segments and syncs batches on its storage, and reports the reasons.

use std::fmt;

use haul_disk::{DirectIo, FileSystem, PAGE_BYTES, Storage};

/// The method by which a batch is written and synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMethod {
    /// A write through the page cache, then `fdatasync`. Readers find the written records in the
    /// page cache.
    Buffered,
    /// A write that bypasses the page cache (`O_DIRECT`), then `fdatasync`.
    Direct,
    /// One call that bypasses the page cache, writes and syncs (`O_DIRECT` and `RWF_DSYNC`). On a
    /// device that supports FUA (force unit access), it makes only this write durable and does not
    /// write out the device's whole write cache.
    DirectDsync,
}

impl SyncMethod {
    /// All methods, in order of preference.
    pub const ALL: [Self; 3] = [Self::Buffered, Self::Direct, Self::DirectDsync];

    /// Returns the best method and the reason for the choice. `medians` contains the methods in
    /// order of preference, with their median times in microseconds. The first method is the best,
    /// unless another one is more than 5 % faster: the first one is usually [`Self::Buffered`],
    /// which leaves the records in the page cache for readers. `None` if `medians` is empty.
    #[must_use]
    pub fn best(medians: &[(Self, u64)]) -> Option<(Self, String)> {
        let (first, first_us) = *medians.first()?;
        let (fastest, us) = *medians.iter().min_by_key(|(_, us)| *us)?;
        let is_faster = us.saturating_mul(20) < first_us.saturating_mul(19);
        let (method, us) = if is_faster { (fastest, us) } else { (first, first_us) };
        let others: Vec<String> = medians
            .iter()
            .filter(|(other, _)| *other != method)
            .map(|(other, us)| format!("{us} us {other}"))
            .collect();
        let reason = if others.is_empty() {
            "the only one for this storage".to_owned()
        } else {
            format!("{us} us for a page, against {}", others.join(", "))
        };
        Some((method, reason))
    }
}

impl fmt::Display for SyncMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffered => "buffered + fdatasync",
            Self::Direct => "direct + fdatasync",
            Self::DirectDsync => "direct + per-write DSYNC",
        })
    }
}

/// A log's sync methods, by batch length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncMethods {
    pub(crate) small_batches: SyncMethod,
    pub(crate) large_batches: SyncMethod,
}

/// A log's write strategy and the reasons for it, as returned by [`crate::Log::strategy`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteStrategy {
    /// `true` if new segments' files are filled with zeros before use, unless batches are so large
    /// that a journal commit for each of them costs less.
    pub prefills: bool,
    /// `true` if removed segments' files are reused for new segments.
    pub recycles: bool,
    /// The reason for the values of `prefills` and `recycles`.
    pub segments_reason: String,
    /// The method by which batches are written and synced. If it is [`SyncMethod::Buffered`] and
    /// the storage supports direct I/O, segments with large batches (288 KiB or more on average)
    /// are written by [`SyncMethod::Direct`].
    pub sync_method: SyncMethod,
    /// The reason for the choice of `sync_method`.
    pub sync_reason: String,
    /// Each measured method's median time to write and sync one page, in microseconds. Empty if
    /// nothing was measured.
    pub sync_us: Vec<(SyncMethod, u64)>,
    /// `true` if recovery can read with direct I/O.
    pub(crate) reads_direct: bool,
}

impl WriteStrategy {
    /// Returns the strategy for `storage` before any measurement. Its sync method is
    /// [`SyncMethod::Buffered`]; opening a log measures the methods in
    /// [`WriteStrategy::candidates`] and selects the best one.
    #[must_use]
    pub fn of(storage: &Storage) -> Self {
        strategy(Some(storage))
    }

    /// Returns the sync methods that opening a log measures on this storage.
    #[must_use]
    pub fn candidates(&self) -> &'static [SyncMethod] {
        // Direct I/O gains nothing on copy-on-write storage; btrfs with checksums even falls back
        // to buffered I/O.
        if self.reads_direct && self.prefills { &SyncMethod::ALL } else { &[SyncMethod::Buffered] }
    }

    /// Returns the sync methods for small and large batches. Large batches are written directly
    /// where the storage supports it: for them, copying into the page cache takes longer than any
    /// difference that the measurement of a single page can show.
    pub(crate) fn sync_methods(&self) -> SyncMethods {
        let can_be_direct = self.candidates().contains(&SyncMethod::Direct);
        let large_batches = match self.sync_method {
            SyncMethod::Buffered if can_be_direct => SyncMethod::Direct,
            method => method,
        };
        SyncMethods { small_batches: self.sync_method, large_batches }
    }
}

impl fmt::Display for WriteStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |is: bool| if is { "yes" } else { "no" };
        writeln!(f, "prefilled      {}: {}", yes(self.prefills), self.segments_reason)?;
        writeln!(f, "recycled       {}", yes(self.recycles))?;
        write!(f, "sync           {}: {}", self.sync_method, self.sync_reason)
    }
}

/// Returns the strategy before any measurement. `None` stands for a simulated disk, on which
/// prefilling and recycling are enabled so that tests cover them.
pub(crate) fn strategy(storage: Option<&Storage>) -> WriteStrategy {
    let segments = storage.map_or(Ok("a simulated disk"), overwriting);
    WriteStrategy {
        prefills: segments.is_ok(),
        recycles: segments.is_ok(),
        segments_reason: segments.unwrap_or_else(|reason| reason).to_owned(),
        sync_method: SyncMethod::Buffered,
        sync_reason: "no other method was measured".to_owned(),
        sync_us: Vec::new(),
        reads_direct: storage.is_some_and(is_direct),
    }
}

/// Returns `Ok` with the reason why the storage overwrites blocks in place, or `Err` with the
/// reason why it does not.
fn overwriting(storage: &Storage) -> Result<&'static str, &'static str> {
    if storage.copy_on_write == Some(true) {
        return Err("the file system is copy-on-write");
    }
    match &storage.file_system {
        FileSystem::Tmpfs => Err("the file system is in memory"),
        FileSystem::Nfs | FileSystem::Fuse => Err("another program or machine stores the blocks"),
        FileSystem::Other(name) => match name.as_str() {
            "zfs" | "bcachefs" | "f2fs" | "nilfs2" => Err("the file system is copy-on-write"),
            "ramfs" => Err("the file system is in memory"),
            "cifs" | "smb3" | "9p" | "ceph" | "virtiofs" => {
                Err("another program or machine stores the blocks")
            }
            _ => Ok("allocated blocks are overwritten in place, without a journal commit"),
        },
        _ => Ok("allocated blocks are overwritten in place, without a journal commit"),
    }
}

/// `true` if direct I/O on this storage accepts memory and offsets aligned to a page of 4 KiB.
fn is_direct(storage: &Storage) -> bool {
    let page = PAGE_BYTES as u64;
    matches!(
        storage.direct_io,
        Some(DirectIo::Aligned { memory_bytes, offset_bytes })
            if memory_bytes <= page && offset_bytes <= page
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_method_must_be_5_percent_faster_than_the_first() {
        use SyncMethod::{Buffered, Direct, DirectDsync};
        let best =
            |medians: &[(SyncMethod, u64)]| SyncMethod::best(medians).map(|(method, _)| method);
        for (buffered, direct, dsync, expected) in [
            (100, 96, 99, Buffered),
            (100, 95, 99, Buffered),
            (100, 94, 99, Direct),
            (100, 94, 90, DirectDsync),
            (100, 200, 300, Buffered),
            (0, 0, 0, Buffered),
        ] {
            let medians = [(Buffered, buffered), (Direct, direct), (DirectDsync, dsync)];
            assert_eq!(best(&medians), Some(expected), "{medians:?}");
        }
        assert_eq!(best(&[(Direct, 1)]), Some(Direct));
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn copy_on_write_and_remote_storage_is_not_prefilled() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let here = haul_disk::probe(dir.path()).unwrap();
        let of = |file_system: FileSystem, copy_on_write: Option<bool>| {
            let storage = Storage { file_system, copy_on_write, ..here.clone() };
            strategy(Some(&storage)).prefills
        };
        let other = |name: &str| FileSystem::Other(name.to_owned());
        assert!(of(FileSystem::Ext4, None));
        assert!(of(FileSystem::Xfs, Some(false)));
        assert!(of(FileSystem::Btrfs, Some(false)), "nodatacow");
        assert!(of(other("ext2"), None));
        assert!(!of(FileSystem::Btrfs, Some(true)));
        for without in [FileSystem::Tmpfs, FileSystem::Nfs, FileSystem::Fuse, other("zfs")] {
            assert!(!of(without.clone(), None), "{without}");
        }
        assert!(strategy(None).prefills && strategy(None).recycles);
    }
}
