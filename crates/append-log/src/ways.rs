//! How a log writes on the storage it is on: decided from what the probe found, and told.

use std::fmt;

use haul_disk::{DirectIo, FileSystem, PAGE_BYTES, Storage};

/// How a batch comes to the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMethod {
    /// Through the page cache, then `fdatasync`. What was appended is in memory for readers.
    Buffered,
    /// Past the page cache (`O_DIRECT`), then `fdatasync`.
    Direct,
    /// Past the page cache by one call that writes and syncs (`RWF_DSYNC`): where the device has
    /// FUA, without emptying its whole cache.
    DirectDsync,
}

impl SyncMethod {
    /// All of them, the one to prefer first.
    pub const ALL: [Self; 3] = [Self::Buffered, Self::Direct, Self::DirectDsync];

    /// The method of these medians, in microseconds, and why: the first, unless another is a twentieth
    /// faster. So that what readers may want stays in the page cache where that costs nothing.
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
        let why = if others.is_empty() {
            "the only one for this storage".to_owned()
        } else {
            format!("{us} us for a page, against {}", others.join(", "))
        };
        Some((method, why))
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

/// How a log writes, and why: [`crate::Log::ways`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ways {
    /// New segments are really filled with zeros before they are used.
    pub prefills: bool,
    /// Segments that are removed are used again.
    pub recycles: bool,
    /// Why so.
    pub segments_why: String,
    /// How batches come to the medium.
    pub sync_method: SyncMethod,
    /// Why this one.
    pub sync_why: String,
    /// The median time of writing and syncing one page in each way that was tried, in
    /// microseconds.
    pub sync_us: Vec<(SyncMethod, u64)>,
    /// Opening can read past the page cache.
    pub(crate) reads_direct: bool,
}

impl Ways {
    /// What can be said of a storage before anything is tried: whether segments are filled and
    /// used again. The method is the one to prefer; [`Ways::candidates`] are tried when a log is
    /// opened.
    #[must_use]
    pub fn of(storage: &Storage) -> Self {
        ways(Some(storage))
    }

    /// The methods worth trying on this storage.
    #[must_use]
    pub fn candidates(&self) -> &'static [SyncMethod] {
        // Where blocks move at each write, direct I/O has nothing to win, and btrfs with checksums
        // only pretends to do it.
        if self.reads_direct && self.prefills { &SyncMethod::ALL } else { &[SyncMethod::Buffered] }
    }
}

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |is: bool| if is { "yes" } else { "no" };
        writeln!(f, "prefilled      {}: {}", yes(self.prefills), self.segments_why)?;
        writeln!(f, "recycled       {}", yes(self.recycles))?;
        write!(f, "sync           {}: {}", self.sync_method, self.sync_why)
    }
}

/// What can be said before anything is tried. `None` is a simulated disk, on which everything
/// that is worth a test is done.
pub(crate) fn ways(storage: Option<&Storage>) -> Ways {
    let segments = storage.map_or(Ok("a simulated disk"), overwriting);
    Ways {
        prefills: segments.is_ok(),
        recycles: segments.is_ok(),
        segments_why: segments.unwrap_or_else(|why| why).to_owned(),
        sync_method: SyncMethod::Buffered,
        sync_why: "nothing else was tried".to_owned(),
        sync_us: Vec::new(),
        reads_direct: storage.is_some_and(is_direct),
    }
}

/// Why writing to the same blocks again pays, or why not.
fn overwriting(storage: &Storage) -> Result<&'static str, &'static str> {
    if storage.copy_on_write == Some(true) {
        return Err("the file system writes each block to a new place");
    }
    match &storage.file_system {
        FileSystem::Tmpfs => Err("the file system is in memory"),
        FileSystem::Nfs | FileSystem::Fuse => Err("another program or machine keeps the blocks"),
        FileSystem::Other(name) => match name.as_str() {
            "zfs" | "bcachefs" | "f2fs" | "nilfs2" => {
                Err("the file system writes each block to a new place")
            }
            "ramfs" => Err("the file system is in memory"),
            "cifs" | "smb3" | "9p" | "ceph" | "virtiofs" => {
                Err("another program or machine keeps the blocks")
            }
            _ => Ok("blocks written before are written in place, without the journal"),
        },
        _ => Ok("blocks written before are written in place, without the journal"),
    }
}

/// Whether direct I/O takes whole pages here.
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
    fn another_method_must_be_a_twentieth_faster_than_the_first() {
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
    fn storage_that_moves_blocks_or_has_none_is_not_filled() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let here = haul_disk::probe(dir.path()).unwrap();
        let of = |file_system: FileSystem, copy_on_write: Option<bool>| {
            let storage = Storage { file_system, copy_on_write, ..here.clone() };
            ways(Some(&storage)).prefills
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
        assert!(ways(None).prefills && ways(None).recycles);
    }
}
