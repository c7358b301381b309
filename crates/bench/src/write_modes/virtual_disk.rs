//! Lists the file systems that can be created in image files, and their options. Performs no I/O.

use crate::named::named;

named! {
    /// A file system that the benchmark creates in an image file.
    pub enum VirtualDisk {
        /// ext4 with default options.
        Ext4 = "ext4",
        /// ext4 without a journal.
        Ext4NoJournal = "ext4-nojournal",
        /// ext4 that writes data before the metadata that refers to it, which is the default.
        Ext4Ordered = "ext4-ordered",
        /// ext4 that does not order data and metadata (`data=writeback`).
        Ext4Writeback = "ext4-writeback",
        /// ext4 that also writes data to the journal (`data=journal`).
        Ext4DataJournal = "ext4-journal",
        /// xfs.
        Xfs = "xfs",
        /// btrfs, which never writes in place.
        Btrfs = "btrfs",
    }
}

impl VirtualDisk {
    pub(crate) const fn file_system(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            _ => "ext4",
        }
    }

    /// Returns options of mkfs that disable background initialization, which would disturb the
    /// counts.
    pub(crate) const fn mkfs_options(self) -> &'static [&'static str] {
        match self {
            Self::Ext4NoJournal => {
                &["-q", "-F", "-b4096", "-O^has_journal", "-Elazy_itable_init=0"]
            }
            Self::Xfs | Self::Btrfs => &["-q", "-f"],
            _ => &["-q", "-F", "-b4096", "-Elazy_itable_init=0,lazy_journal_init=0"],
        }
    }

    /// Returns mount options that disable periodic commits or make them rare.
    pub(crate) const fn mount_options(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Btrfs => "commit=300",
            Self::Ext4Ordered => "commit=300,data=ordered",
            Self::Ext4Writeback => "commit=300,data=writeback",
            Self::Ext4DataJournal => "commit=300,data=journal",
            Self::Ext4NoJournal | Self::Xfs => "",
        }
    }

    /// Returns the size in bytes of an image for files of `file_bytes` bytes: two files exist at a
    /// time, and some file systems do not free removed files at once.
    pub(crate) fn image_bytes(file_bytes: u64) -> u64 {
        file_bytes.saturating_mul(4).saturating_add(512 << 20).next_multiple_of(1 << 20)
    }
}
