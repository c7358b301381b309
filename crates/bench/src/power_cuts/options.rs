//! Defines the options of the benchmark of power cuts.

use crate::named::named;
use crate::options::{count, size, size_in};
use crate::simulated::Drive;
use crate::write_modes::VirtualDisk;
use haul_measure::Result;

named! {
    /// A file system, with the options that decide in which order it writes.
    pub enum FileSystem {
        /// ext4: data before the metadata that refers to it.
        Ext4 = "ext4",
        /// ext4: data and metadata in any order.
        Ext4Writeback = "ext4-writeback",
        /// ext4: data and metadata through the journal.
        Ext4Journal = "ext4-journal",
        /// ext4 without a journal, repaired by e2fsck before it is mounted.
        Ext4NoJournal = "ext4-nojournal",
        /// ext4 without a journal, mounted as it is.
        Ext4NoJournalUnchecked = "ext4-nojournal-unchecked",
        /// xfs.
        Xfs = "xfs",
    }
}

named! {
    /// The state of the file before its first record.
    pub enum Preparation {
        /// Empty: each record makes it longer.
        Append = "append",
        /// Its blocks are allocated, and unwritten.
        Fallocate = "fallocate",
        /// Filled with zeros, which are synced.
        Filled = "filled",
    }
}

named! {
    /// The time at which records are synced.
    pub enum Sync {
        /// After each record, by fdatasync.
        Each = "each record",
        /// Once, after all of them, by fdatasync.
        Once = "all at once",
    }
}

/// The benchmark `power-cuts`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct PowerCutsBench {
    /// File systems: ext4, ext4-writeback, ext4-journal, ext4-nojournal, ext4-nojournal-unchecked,
    /// xfs
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = FileSystem::ALL)]
    pub file_systems: Vec<FileSystem>,
    /// Number of power cuts for each row
    #[arg(long, value_name = "N", default_value = "20", value_parser = count(1..=100_000))]
    pub cuts: usize,
    /// Number of records that are written until the power is cut, at most
    #[arg(long, value_name = "N", default_value = "64", value_parser = count(2..=4096))]
    pub records: usize,
    /// Size of the simulated disk, 384MiB or more; only written blocks take memory
    #[arg(long, value_name = "SIZE", default_value = "384MiB")]
    #[arg(value_parser = size_in(384 << 20..=1 << 40, "384MiB to 1TiB"))]
    pub disk_size: u64,
    /// Model of the simulated drive
    #[arg(long, value_name = "MODEL", default_value = "travelstar-7k320")]
    pub drive: Drive,
    /// Length of a physical sector of the drive, which a power cut never tears: 512B or 4KiB
    #[arg(long, value_name = "SIZE", default_value = "512B", value_parser = physical_sector)]
    pub physical_sector: u64,
    /// Seed of the random numbers that determine the times of the cuts, and which writes survive
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}

fn physical_sector(text: &str) -> Result<u64, String> {
    let bytes = size(text, 512..=4096, "512B or 4KiB")?;
    if bytes == 512 || bytes == 4096 { Ok(bytes) } else { Err("expected 512B or 4KiB".to_owned()) }
}

impl FileSystem {
    /// Returns the virtual disk with the same type and options of mkfs.
    const fn disk(self) -> VirtualDisk {
        match self {
            Self::Ext4NoJournal | Self::Ext4NoJournalUnchecked => VirtualDisk::Ext4NoJournal,
            Self::Xfs => VirtualDisk::Xfs,
            _ => VirtualDisk::Ext4,
        }
    }

    pub(super) const fn kind(self) -> &'static str {
        self.disk().file_system()
    }

    /// `true` if the file system is to be usable after each power cut.
    pub(super) const fn is_consistent(self) -> bool {
        !matches!(self, Self::Ext4NoJournalUnchecked)
    }

    pub(super) const fn mkfs_options(self) -> &'static [&'static str] {
        self.disk().mkfs_options()
    }

    pub(super) const fn mount_options(self) -> &'static str {
        match self {
            Self::Ext4 => "data=ordered",
            Self::Ext4Writeback => "data=writeback",
            Self::Ext4Journal => "data=journal",
            Self::Ext4NoJournal | Self::Ext4NoJournalUnchecked | Self::Xfs => "",
        }
    }
}
