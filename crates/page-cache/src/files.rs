//! Finds regular files below given paths, opens them, and counts their cached pages.

use std::collections::HashSet;
use std::io::ErrorKind::PermissionDenied;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use haul_bulk_read::{FileId, SkipReason, Tree, WalkEvents, WalkOptions, open_directory, walk};
use haul_disk::{Error, Op, resident};
use rustix::fs::{Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;

use crate::counts::PageCounts;

/// A receiver of the errors of [`Files::find`]. Several threads may call its methods at once.
pub trait FilesEvents: Sync {
    /// Reports that a file or directory cannot be listed. The walk continues.
    fn failed(&self, error: haul_bulk_read::Error);

    /// Reports that a given path is neither a regular file nor a directory.
    fn not_a_file(&self, path: &Path);
}

/// The regular files at or below the given paths, each once, sorted by path.
pub struct Files<'a> {
    tree: Tree,
    roots: &'a [PathBuf],
    ids: Vec<FileId>,
}

/// A file found by the walk.
#[derive(Debug)]
pub struct FoundFile {
    /// The path of the file.
    pub path: PathBuf,
    /// `true` if the path of the file is one of the given paths. [`open_quietly`] then follows a
    /// symbolic link at this path.
    pub named: bool,
    /// The device number of the file system that contains the file.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

impl<'a> Files<'a> {
    /// Finds the files at or below `paths`. If `one_file_system` is set, the search below a path
    /// does not enter other file systems.
    #[must_use]
    pub fn find(paths: &'a [PathBuf], one_file_system: bool, events: &dyn FilesEvents) -> Self {
        let options =
            WalkOptions { hidden: true, one_file_system, sort: true, ..WalkOptions::default() };
        let tree = walk(paths, &options, &WalkEventsOf { roots: paths, events });
        let mut seen = HashSet::new();
        let is_new = |id: &FileId| {
            let meta = tree.meta(*id);
            // The walk itself removes all duplicates except hard links.
            meta.links < 2 || seen.insert((meta.device, meta.inode))
        };
        let ids = tree.ids().filter(is_new).collect();
        Self { tree, roots: paths, ids }
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns the file at `index` in the order of paths.
    pub(crate) fn get(&self, index: usize) -> FoundFile {
        let id = self.ids[index];
        let (path, meta) = (self.tree.path(id), self.tree.meta(id));
        let named = self.roots[self.tree.root(id)] == path;
        FoundFile { path, named, device: meta.device, inode: meta.inode }
    }

    /// Returns the files in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = FoundFile> {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// An adapter that passes the events of the walk to [`FilesEvents`].
struct WalkEventsOf<'a> {
    roots: &'a [PathBuf],
    events: &'a dyn FilesEvents,
}

impl WalkEvents for WalkEventsOf<'_> {
    fn failed(&self, error: haul_bulk_read::Error) {
        self.events.failed(error);
    }

    fn skipped(&self, path: &Path, why: SkipReason) {
        if why == SkipReason::NotRegularFile && self.roots.iter().any(|root| root == path) {
            self.events.not_a_file(path);
        }
    }
}

/// Opens a file for reading. If the process owns the file, later reads do not update its access
/// time.
///
/// # Errors
/// The file does not exist, or the process may not read it.
pub fn open_quietly(found: &FoundFile) -> haul_disk::Result<OwnedFd> {
    // NONBLOCK: the file may have been replaced by a FIFO, whose opening would block.
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if !found.named {
        flags |= OFlags::NOFOLLOW;
    }
    match open_path(&found.path, flags | OFlags::NOATIME) {
        // Only the owner may use O_NOATIME.
        Err(Errno::PERM) => open_path(&found.path, flags),
        opened => opened,
    }
    .map_err(|errno| Error::new(Op::Open, &found.path, errno))
}

/// Opens the file at a path of any length.
fn open_path(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    match (open(path, flags, Mode::empty()), path.parent(), path.file_name()) {
        (Err(Errno::NAMETOOLONG), Some(parent), Some(name)) => {
            let dir = open_directory(parent)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NAMETOOLONG))?;
            openat(dir, name, flags, Mode::empty())
        }
        (opened, ..) => opened,
    }
}

/// Counts pages as [`count_pages`] does. If the kernel denies the query, all pages count as
/// unknown.
pub(crate) fn count_or_unknown(path: &Path, fd: &OwnedFd) -> haul_disk::Result<PageCounts> {
    match count_pages(path, fd) {
        Err(error) if error.source.kind() == PermissionDenied => {
            Ok(PageCounts::unknown(file_bytes(path, fd)?))
        }
        result => result,
    }
}

/// Returns the page counts of an open file.
///
/// # Errors
/// The kernel reports residency only to the owner of the file and to users who may write it.
pub fn count_pages(path: &Path, fd: &OwnedFd) -> haul_disk::Result<PageCounts> {
    Ok(PageCounts::of(file_bytes(path, fd)?, &resident(fd, 0, u64::MAX)?))
}

fn file_bytes(path: &Path, fd: &OwnedFd) -> haul_disk::Result<u64> {
    let status = fstat(fd).map_err(|errno| Error::new(Op::Status, path, errno))?;
    Ok(u64::try_from(status.st_size).unwrap_or(0))
}
