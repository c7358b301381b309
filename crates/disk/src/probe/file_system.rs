//! Identifies file systems by magic number and by name. The module makes no system calls.

use std::fmt;

/// A file system type: a variant for each type that this workspace treats specially, and `Other`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4. ext2 and ext3, which share its magic number, are `Other`.
    Ext4,
    /// xfs.
    Xfs,
    /// btrfs.
    Btrfs,
    /// tmpfs: in memory, lost at shutdown.
    Tmpfs,
    /// overlay: its files are stored on another file system, which overlay does not expose.
    Overlay,
    /// nfs, any version.
    Nfs,
    /// A file system in user space (FUSE, virtiofs).
    Fuse,
    /// Any other file system: the kernel's name for its type, or its magic number in hexadecimal if
    /// the name is unknown.
    Other(String),
}

/// The types beside those with a variant that store files themselves.
const STORES: [&str; 24] = [
    "bcachefs", "cramfs", "erofs", "exfat", "ext2", "ext3", "f2fs", "hfs", "hfsplus", "iso9660",
    "jffs2", "jfs", "minix", "msdos", "nilfs2", "ntfs3", "ramfs", "reiserfs", "rootfs", "squashfs",
    "ubifs", "udf", "vfat", "zfs",
];

/// The types whose files are made by the kernel as they are read, with their magic numbers.
const KERNEL_INTERFACES: [(&str, u64); 20] = [
    ("binfmt_misc", 0x4249_4E4D),
    ("bpf", 0xCAFE_4A11),
    ("cgroup", 0x0027_E0EB),
    ("cgroup2", 0x6367_7270),
    ("configfs", 0x6265_6570),
    ("debugfs", 0x6462_6720),
    ("devpts", 0x1CD1),
    ("efivarfs", 0xDE5E_81E4),
    ("fusectl", 0x6573_5543),
    ("mqueue", 0x1980_0202),
    ("nfsd", 0x6E66_7364),
    ("nsfs", 0x6E73_6673),
    ("proc", 0x9FA0),
    ("pstore", 0x6165_676C),
    ("resctrl", 0x0765_5821),
    ("rpc_pipefs", 0x6759_6969),
    ("securityfs", 0x7363_6673),
    ("selinuxfs", 0xF97C_FF8C),
    ("sysfs", 0x6265_6572),
    ("tracefs", 0x7472_6163),
];

impl FileSystem {
    /// Returns the file system with the magic number `magic` (from `statfs`), mounted with the type
    /// `name`.
    pub(super) fn of(magic: u64, name: Option<&str>) -> Self {
        match (magic, name) {
            (0xEF53, None | Some("ext4")) => Self::Ext4,
            (0x5846_5342, _) => Self::Xfs,
            (0x9123_683E, _) => Self::Btrfs,
            (0x0102_1994, _) => Self::Tmpfs,
            (0x794C_7630, _) => Self::Overlay,
            (0x6969, _) => Self::Nfs,
            (0x6573_5546, _) => Self::Fuse,
            (_, Some(name)) => Self::Other(name.to_owned()),
            (_, None) => match KERNEL_INTERFACES.iter().find(|(_, number)| *number == magic) {
                Some((name, _)) => Self::Other((*name).to_owned()),
                None => Self::Other(format!("{magic:#x}")),
            },
        }
    }

    /// `true` if the file system stores its files itself, on a device or in memory, so that a file
    /// has one inode, whichever mount shows it. `false` for those that show the files of other file
    /// systems or machines (overlay, FUSE, nfs, smb, 9p), for interfaces to the kernel (proc,
    /// sysfs), and for unknown ones.
    #[must_use]
    pub fn stores_files(&self) -> bool {
        match self {
            Self::Ext4 | Self::Xfs | Self::Btrfs | Self::Tmpfs => true,
            Self::Overlay | Self::Nfs | Self::Fuse => false,
            Self::Other(name) => STORES.contains(&name.as_str()),
        }
    }

    /// Returns the largest number of hard links of a file, if it is known and may be reached.
    ///
    /// # Source
    /// `EXT4_LINK_MAX`, `EXT2_LINK_MAX` and `BTRFS_LINK_MAX` in the kernel's sources.
    #[must_use]
    pub fn links_max(&self) -> Option<u32> {
        match self {
            Self::Ext4 => Some(65_000),
            Self::Btrfs => Some(65_535),
            Self::Other(name) if name == "ext3" => Some(65_000),
            Self::Other(name) if name == "ext2" => Some(32_000),
            _ => None,
        }
    }

    /// `true` if the files are an interface to the kernel: their lengths say nothing about what a
    /// read returns, and a read may wait, or change something.
    #[must_use]
    pub fn is_kernel_interface(&self) -> bool {
        matches!(self, Self::Other(name) if KERNEL_INTERFACES.iter().any(|(known, _)| known == name))
    }

    /// Returns the file system mounted with the type `name`, for callers that have no magic number.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "ext4" => Self::Ext4,
            "xfs" => Self::Xfs,
            "btrfs" => Self::Btrfs,
            "tmpfs" | "devtmpfs" => Self::Tmpfs,
            "overlay" => Self::Overlay,
            "nfs" | "nfs4" => Self::Nfs,
            "fuse" | "fuseblk" | "virtiofs" => Self::Fuse,
            name if name.starts_with("fuse.") => Self::Fuse,
            name => Self::Other(name.to_owned()),
        }
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
            Self::Overlay => "overlay",
            Self::Nfs => "nfs",
            Self::Fuse => "fuse",
            Self::Other(name) => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_number_decides_and_mount_type_distinguishes_ext_versions() {
        let other = |name: &str| FileSystem::Other(name.to_owned());
        for (magic, name, expected) in [
            (0xEF53, Some("ext4"), FileSystem::Ext4),
            (0xEF53, None, FileSystem::Ext4),
            (0xEF53, Some("ext2"), other("ext2")),
            (0x5846_5342, Some("xfs"), FileSystem::Xfs),
            (0x0102_1994, Some("devtmpfs"), FileSystem::Tmpfs),
            (0x6969, Some("nfs4"), FileSystem::Nfs),
            (0x6573_5546, Some("fuse.sshfs"), FileSystem::Fuse),
            (0x2FC1_2FC1, Some("zfs"), other("zfs")),
            (0x2FC1_2FC1, None, other("0x2fc12fc1")),
            (0x9FA0, None, other("proc")),
            (0x6265_6572, Some("sysfs"), other("sysfs")),
        ] {
            assert_eq!(FileSystem::of(magic, name), expected, "{magic:#x} {name:?}");
            if let Some(name) = name {
                assert_eq!(FileSystem::named(name), expected, "{name}");
            }
        }
    }

    #[test]
    fn only_file_systems_with_inodes_of_their_own_store_files() {
        for name in ["ext4", "ext2", "xfs", "btrfs", "tmpfs", "zfs", "vfat"] {
            let found = FileSystem::named(name);
            assert!(found.stores_files() && !found.is_kernel_interface(), "{name}");
        }
        for name in ["overlay", "fuse.bindfs", "nfs4", "cifs", "9p", "ecryptfs", "unknown"] {
            let found = FileSystem::named(name);
            assert!(!found.stores_files() && !found.is_kernel_interface(), "{name}");
        }
        for name in ["proc", "sysfs", "cgroup2", "debugfs"] {
            let found = FileSystem::named(name);
            assert!(!found.stores_files() && found.is_kernel_interface(), "{name}");
        }
    }
}
