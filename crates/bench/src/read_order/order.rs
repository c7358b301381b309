//! Lists the files of a tree in the order in which they are to be read.

use std::fs::{File, ReadDir, read_dir};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use haul_disk::first_extent;
use haul_measure::{Error, Result};

use crate::named::named;

named! {
    /// The order in which files are read.
    pub(super) enum Order {
        /// In the order in which `readdir` returns the files.
        Unsorted = "unsorted",
        /// By inode number.
        Inode = "inode",
        /// By position on the device.
        Physical = "physical",
    }
}

fn entries(dir: &Path) -> Result<ReadDir> {
    read_dir(dir).map_err(Error::other(format!("list {}", dir.display())))
}

/// Returns the files two levels below `root` in `order`. Reads each directory once; for
/// physical order it also opens every file, in inode order, to query its first extent.
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
        let placed = files.into_iter().map(|(_, path)| Ok((position(&path)?, path)));
        files = placed.collect::<Result<_>>()?;
        files.sort_by_key(|(position, _)| *position);
    }
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// Returns the position of a file's first extent on the device; 0 if it has none.
fn position(path: &Path) -> Result<u64> {
    let file = File::open(path).map_err(Error::other(format!("open {}", path.display())))?;
    let extent = first_extent(&OwnedFd::from(file))?;
    Ok(extent.and_then(|extent| extent.device_offset()).unwrap_or(0))
}
