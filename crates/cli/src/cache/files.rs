//! Finds and opens files, and tells of those for which that fails.

use std::collections::HashSet;
use std::error::Error as _;
use std::io::ErrorKind::PermissionDenied;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use haul_bulk_read::{FileId, Skipped, Tree, WalkEvents, WalkOptions, walk};
use haul_disk::{Error, Op, resident};
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::io::Errno;

use super::amount::Cached;
use crate::args::FilesArgs;
use crate::report::{Failure, Result, chain, say};
use crate::units::Count;

/// All regular files that are named or lie below named directories, each once, by their paths.
pub(super) struct Files<'a> {
    tree: Tree,
    roots: &'a [PathBuf],
    ids: Vec<FileId>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Somebody asked for this very file.
    pub(super) named: bool,
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl<'a> Files<'a> {
    pub(super) fn of(args: &'a FilesArgs, troubles: &Troubles) -> Self {
        let options = WalkOptions {
            hidden: true,
            one_file_system: args.one_file_system,
            sort: true,
            ..WalkOptions::default()
        };
        let events = Events { roots: &args.paths, troubles };
        let tree = walk(&args.paths, &options, &events);
        let mut seen = HashSet::new();
        let is_new = |id: &FileId| {
            let meta = tree.meta(*id);
            // The walk takes care of everything but several names of one file.
            meta.links < 2 || seen.insert((meta.device, meta.inode))
        };
        let ids = tree.ids().filter(is_new).collect();
        Self { tree, roots: &args.paths, ids }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The one with that number, in the order of their paths.
    pub(super) fn get(&self, index: usize) -> Found {
        let id = self.ids[index];
        let (path, meta) = (self.tree.path(id), self.tree.meta(id));
        let named = self.roots[self.tree.root(id)] == path;
        Found { path, named, device: meta.device, inode: meta.inode }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Found> {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// What the walk meets.
struct Events<'a> {
    roots: &'a [PathBuf],
    troubles: &'a Troubles,
}

impl WalkEvents for Events<'_> {
    fn failed(&self, error: haul_bulk_read::Error) {
        self.troubles.tell(&error.to_string());
    }

    fn skipped(&self, path: &Path, why: Skipped) {
        if why == Skipped::NotAFile && self.roots.iter().any(|root| root == path) {
            self.troubles.tell(&format!("{} is no file and no directory", path.display()));
        }
    }
}

/// What could not be done, told as it happens; the rest goes on.
#[derive(Debug, Default)]
pub(super) struct Troubles(AtomicU64);

impl Troubles {
    /// One more.
    pub(super) fn tell(&self, what: &str) {
        self.count();
        say(what);
    }

    /// One more, which somebody else tells.
    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How the program ends because of them.
    pub(super) fn result(&self) -> Result {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            count => Err(Failure::new(format!("{} left out", Count(count, "path")))),
        }
    }
}

/// An error with its reason, in one line.
pub(super) fn words(error: &Error) -> String {
    chain(&error.to_string(), error.source())
}

/// Opens a file for reading, without leaving a trace in its times where that is allowed.
pub(super) fn open_quietly(found: &Found) -> haul_disk::Result<OwnedFd> {
    // NONBLOCK: a pipe that took its place must not keep us waiting.
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if !found.named {
        flags |= OFlags::NOFOLLOW;
    }
    let open = |flags| open(&found.path, flags, Mode::empty());
    match open(flags | OFlags::NOATIME) {
        // Only the owner may do that.
        Err(Errno::PERM) => open(flags),
        opened => opened,
    }
    .map_err(|errno| Error::new(Op::Open, &found.path, errno))
}

/// As [`cached`], where the kernel tells it.
pub(super) fn cached_if_told(path: &Path, fd: &OwnedFd) -> haul_disk::Result<Cached> {
    match cached(path, fd) {
        Err(error) if error.source.kind() == PermissionDenied => {
            Ok(Cached::untold(file_bytes(path, fd)?))
        }
        told => told,
    }
}

/// What of a file is in the page cache. The kernel tells it of files that we own or may write.
pub(super) fn cached(path: &Path, fd: &OwnedFd) -> haul_disk::Result<Cached> {
    Ok(Cached::of(file_bytes(path, fd)?, &resident(fd, 0, u64::MAX)?))
}

fn file_bytes(path: &Path, fd: &OwnedFd) -> haul_disk::Result<u64> {
    let status = fstat(fd).map_err(|errno| Error::new(Op::Status, path, errno))?;
    Ok(u64::try_from(status.st_size).unwrap_or(0))
}
