//! Which file system it is. Pure.

use std::fmt;

/// The file systems whose ways this house knows, and the name of any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4; an ext2 or ext3, which share its number, is `Other`.
    Ext4,
    /// xfs.
    Xfs,
    /// btrfs.
    Btrfs,
    /// tmpfs: in memory, nothing on it outlives the machine's uptime.
    Tmpfs,
    /// overlay: its files lie on another file system, which it does not name.
    Overlay,
    /// nfs, of any version.
    Nfs,
    /// A program serves it (FUSE, virtiofs).
    Fuse,
    /// The kernel's name for it, or its number in hexadecimal where the name is unknown.
    Other(String),
}

impl FileSystem {
    /// The file system with `statfs` number `magic` that is mounted under the type `name`.
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
            (_, None) => Self::Other(format!("{magic:#x}")),
        }
    }

    /// The file system that is mounted under the type `name`, where nothing else is known.
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
    fn the_number_decides_and_the_mount_tells_the_exts_apart() {
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
        ] {
            assert_eq!(FileSystem::of(magic, name), expected, "{magic:#x} {name:?}");
            if let Some(name) = name {
                assert_eq!(FileSystem::named(name), expected, "{name}");
            }
        }
    }
}
