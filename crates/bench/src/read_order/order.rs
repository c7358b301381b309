//! The files of a tree, in one order or another.

use std::fs::{File, ReadDir, read_dir};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use haul_disk::first_extent;

use crate::error::{Error, Result};

/// In which order files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// As the directories tell them.
    Unsorted,
    /// By the number of the inode.
    Inode,
    /// By where the file begins on the device.
    Physical,
}

impl Order {
    pub(super) const ALL: [Self; 3] = [Self::Unsorted, Self::Inode, Self::Physical];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unsorted => "unsorted",
            Self::Inode => "inode",
            Self::Physical => "physical",
        }
    }
}

fn entries(dir: &Path) -> Result<ReadDir> {
    read_dir(dir).map_err(Error::other(format!("list {}", dir.display())))
}

/// All files two levels below `root`, in that order. Each directory is read once; to sort by inode
/// takes nothing more, to sort by place opens every file, in the order of the inodes, and asks
/// where it is.
pub(super) fn listed(root: &Path, order: Order) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for dir in entries(root)? {
        let dir = dir.map_err(Error::other("list the tree"))?.path();
        if !dir.is_dir() {
            continue;
        }
        for entry in entries(&dir)? {
            let entry = entry.map_err(Error::other(format!("list {}", dir.display())))?;
            files.push((entry.ino(), entry.path()));
        }
    }
    if order != Order::Unsorted {
        files.sort_unstable_by_key(|(ino, _)| *ino);
    }
    if order == Order::Physical {
        let placed = files.into_iter().map(|(_, path)| Ok((place(&path)?, path)));
        files = placed.collect::<Result<_>>()?;
        files.sort_by_key(|(place, _)| *place);
    }
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// Where a file begins on the device; what is nowhere comes first.
fn place(path: &Path) -> Result<u64> {
    let file = File::open(path).map_err(Error::other(format!("open {}", path.display())))?;
    let extent = first_extent(&OwnedFd::from(file))?;
    Ok(extent.and_then(|extent| extent.place()).unwrap_or(0))
}
