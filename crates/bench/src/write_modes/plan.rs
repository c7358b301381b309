//! What is measured, as numbers and names. Pure.

use std::fmt;
use std::str::FromStr;

/// How a file is prepared before records are written into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Not at all: every record makes it longer.
    Append,
    /// Reserved by `fallocate`.
    Fallocate,
    /// Written once, then cleaned by `FALLOC_FL_ZERO_RANGE`, as a log may do with an old file.
    ZeroRange,
    /// Zeroed by the device (`FALLOC_FL_WRITE_ZEROES`).
    WriteZeroes,
    /// Filled with real zeros, just now.
    Filled,
    /// An old file, once written whole, out of the page cache, under a new name.
    Recycled,
}

/// How a record is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sync {
    /// Not at all: handed to the kernel.
    Nothing,
    /// `pwrite`, then `fdatasync`.
    Fdatasync,
    /// `pwrite`, then `fsync`.
    Fsync,
    /// One `pwrite` to a file opened with `O_DIRECT | O_DSYNC`, of whole pages.
    DirectDsync,
    /// Copied into a mapping, then `msync(MS_SYNC)`.
    Msync,
}

impl Way {
    /// All of them, as they stand in a table.
    pub const ALL: [Self; 6] = [
        Self::Append,
        Self::Fallocate,
        Self::ZeroRange,
        Self::WriteZeroes,
        Self::Filled,
        Self::Recycled,
    ];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Fallocate => "fallocate",
            Self::ZeroRange => "zero-range",
            Self::WriteZeroes => "write-zeroes",
            Self::Filled => "filled",
            Self::Recycled => "recycled",
        }
    }
}

impl Sync {
    /// All of them, as they stand in a table.
    pub const ALL: [Self; 5] =
        [Self::Nothing, Self::Fdatasync, Self::Fsync, Self::DirectDsync, Self::Msync];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
            Self::DirectDsync => "direct-dsync",
            Self::Msync => "msync",
        }
    }
}

/// Some ways with some syncs: `recycled`, `fdatasync`, or `recycled+fdatasync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    way: Option<Way>,
    sync: Option<Sync>,
}

impl Modes {
    fn includes(self, way: Way, sync: Sync) -> bool {
        self.way.is_none_or(|wanted| wanted == way) && self.sync.is_none_or(|wanted| wanted == sync)
    }
}

impl FromStr for Modes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let way = |name: &str| Way::ALL.into_iter().find(|way| way.name() == name);
        let sync = |name: &str| Sync::ALL.into_iter().find(|sync| sync.name() == name);
        let modes = match text.split_once('+') {
            Some((left, right)) => way(left).zip(sync(right)).map(|(w, s)| (Some(w), Some(s))),
            None => match (way(text), sync(text)) {
                (None, None) => None,
                found => Some(found),
            },
        };
        let (way, sync) = modes.ok_or_else(|| {
            let ways: Vec<_> = Way::ALL.map(Way::name).into();
            let syncs: Vec<_> = Sync::ALL.map(Sync::name).into();
            format!(
                "name a way ({}), a sync ({}), or both, like recycled+fdatasync",
                ways.join(", "),
                syncs.join(", ")
            )
        })?;
        Ok(Self { way, sync })
    }
}

/// One line of the table, before it is known which pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    // In this order they are sorted.
    pub(crate) sync: Sync,
    pub(crate) record_bytes: u64,
    pub(crate) way: Way,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} B", self.way.name(), self.sync.name(), self.record_bytes)
    }
}

/// The direct writes go out in whole pages, and so does what a mapping syncs.
const PAGE_BYTES: u64 = 4096;

impl Cell {
    /// From where to where one record starts: direct writes of less than a page are padded.
    pub(crate) fn step_bytes(&self) -> u64 {
        match self.sync {
            Sync::DirectDsync => self.record_bytes.next_multiple_of(PAGE_BYTES),
            _ => self.record_bytes,
        }
    }

    /// The length of a file that takes `records`, in whole pages.
    pub(crate) fn file_bytes(&self, records: u64) -> u64 {
        self.step_bytes().saturating_mul(records).next_multiple_of(PAGE_BYTES)
    }
}

/// All lines that are wanted, sorted, each once. No `modes` are all of them.
pub(crate) fn cells(modes: &[Modes], record_bytes: &[u64]) -> Vec<Cell> {
    let wanted = |way, sync| modes.is_empty() || modes.iter().any(|m| m.includes(way, sync));
    let mut cells = Vec::new();
    for sync in Sync::ALL {
        for way in Way::ALL.into_iter().filter(|way| wanted(*way, sync)) {
            cells.extend(record_bytes.iter().map(|&record_bytes| Cell { sync, record_bytes, way }));
        }
    }
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// A file system the bench makes itself, in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtualDisk {
    /// ext4 as it comes.
    Ext4,
    /// ext4 without a journal.
    Ext4NoJournal,
    /// xfs.
    Xfs,
    /// btrfs, which writes nothing in place.
    Btrfs,
}

impl VirtualDisk {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Ext4NoJournal, Self::Xfs, Self::Btrfs];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext4NoJournal => "ext4-nojournal",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    pub(crate) const fn file_system(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Ext4NoJournal => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Nothing is left to be set up in the background, which would disturb the counts.
    pub(crate) const fn mkfs_options(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["-q", "-F", "-b4096", "-Elazy_itable_init=0,lazy_journal_init=0"],
            Self::Ext4NoJournal => {
                &["-q", "-F", "-b4096", "-O^has_journal", "-Elazy_itable_init=0"]
            }
            Self::Xfs | Self::Btrfs => &["-q", "-f"],
        }
    }

    /// Commits come when asked for, not every few seconds besides.
    pub(crate) const fn mount_options(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Btrfs => "commit=300",
            Self::Ext4NoJournal | Self::Xfs => "",
        }
    }

    /// How large it must be for files of `file_bytes`: two stand there at a time, and what is
    /// removed is not free at once everywhere.
    pub(crate) fn image_bytes(file_bytes: u64) -> u64 {
        file_bytes.saturating_mul(4).saturating_add(512 << 20).next_multiple_of(1 << 20)
    }
}

impl FromStr for VirtualDisk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|disk| disk.name() == text)
            .ok_or_else(|| format!("name one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named_by_way_by_sync_or_by_both() {
        for (text, count) in [("recycled", 5), ("fdatasync", 6), ("recycled+fdatasync", 1)] {
            let cells = cells(&[text.parse().unwrap()], &[4096]);
            assert_eq!(cells.len(), count, "{text}");
        }
        for wrong in
            ["", "+", "recycled+", "+fsync", "fsync+recycled", "recycled+append", "RECYCLED"]
        {
            let why = wrong.parse::<Modes>().unwrap_err();
            assert!(why.contains("recycled+fdatasync"), "{wrong}: {why}");
        }
    }

    #[test]
    fn every_line_is_wanted_once_and_ways_stand_together() {
        assert_eq!(cells(&[], &[512, 4096, 65536]).len(), 6 * 5 * 3);
        let both = ["append".parse().unwrap(), "append+fsync".parse().unwrap()];
        assert_eq!(cells(&both, &[512, 512]).len(), 5);
        let fsync = cells(&["fsync".parse().unwrap()], &[4096, 512]);
        let expected: Vec<_> = [512, 4096]
            .into_iter()
            .flat_map(|record_bytes| {
                Way::ALL.map(|way| Cell { sync: Sync::Fsync, record_bytes, way })
            })
            .collect();
        assert_eq!(fsync, expected);
    }

    #[test]
    fn direct_records_are_padded_and_files_are_whole_pages() {
        let cell = |sync, record_bytes| Cell { sync, record_bytes, way: Way::Filled };
        for (sync, record_bytes, step, file) in [
            (Sync::Fdatasync, 512, 512, 4096),
            (Sync::Fdatasync, 4096, 4096, 12288),
            (Sync::DirectDsync, 512, 4096, 12288),
            (Sync::DirectDsync, 65536, 65536, 196_608),
            (Sync::Msync, 512, 512, 4096),
        ] {
            let cell = cell(sync, record_bytes);
            assert_eq!((cell.step_bytes(), cell.file_bytes(3)), (step, file), "{cell}");
        }
    }

    #[test]
    fn virtual_disks_are_found_by_name_and_large_enough() {
        for disk in VirtualDisk::ALL {
            assert_eq!(disk.name().parse(), Ok(disk));
        }
        assert!("ntfs".parse::<VirtualDisk>().unwrap_err().contains("ext4-nojournal"));
        assert_eq!(VirtualDisk::image_bytes(1), 513 << 20);
        assert_eq!(VirtualDisk::image_bytes(1 << 30), (4 << 30) + (512 << 20));
    }
}
