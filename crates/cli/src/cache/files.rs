//! Finds and opens files, and tells of those for which that fails.

use std::collections::HashSet;
use std::error::Error as _;
use std::fs::Metadata;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use haul_disk::{Error, Op, resident};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use walkdir::{DirEntry, WalkDir};

use super::amount::Cached;
use crate::args::FilesArgs;
use crate::report::{Failure, Result, chain, say};
use crate::units::Count;

/// A regular file.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Somebody asked for this very file.
    pub(super) named: bool,
    pub(super) device: u64,
    pub(super) inode: u64,
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

/// Visits every regular file that is named or lies below a named directory, each once.
pub(super) fn each(
    args: &FilesArgs,
    troubles: &Troubles,
    mut visit: impl FnMut(Found) -> Result,
) -> Result {
    let mut seen = HashSet::new();
    for path in &args.paths {
        let entries = WalkDir::new(path).same_file_system(args.one_file_system).sort_by_file_name();
        for entry in entries {
            let looked = entry.and_then(|entry| look(&entry).map(|status| (entry, status)));
            let (entry, status) = match looked {
                Ok(found) => found,
                Err(error) => {
                    troubles.tell(&chain("cannot look at a path", Some(&error)));
                    continue;
                }
            };
            if let Some(found) = regular(&entry, status.as_ref(), troubles)
                && seen.insert((found.device, found.inode))
            {
                visit(found)?;
            }
        }
    }
    Ok(())
}

/// The status of what may be a file of interest. A link is followed if it was named.
fn look(entry: &DirEntry) -> walkdir::Result<Option<Metadata>> {
    let kind = entry.file_type();
    if entry.depth() == 0 {
        // Here the entry is what a link leads to, but its status may be that of the link.
        return Ok(std::fs::metadata(entry.path()).ok().or(entry.metadata().ok()));
    }
    if kind.is_file() { entry.metadata().map(Some) } else { Ok(None) }
}

fn regular(entry: &DirEntry, status: Option<&Metadata>, troubles: &Troubles) -> Option<Found> {
    let status = status?;
    let named = entry.depth() == 0;
    if !status.is_file() {
        if named && !status.is_dir() {
            troubles.tell(&format!("{} is no file and no directory", entry.path().display()));
        }
        return None;
    }
    let path = entry.path().to_path_buf();
    Some(Found { path, named, device: status.dev(), inode: status.ino() })
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

/// What of a file is in the page cache.
pub(super) fn cached(path: &Path, fd: &OwnedFd) -> haul_disk::Result<Cached> {
    let status = rustix::fs::fstat(fd).map_err(|errno| Error::new(Op::Status, path, errno))?;
    let bytes = u64::try_from(status.st_size).unwrap_or(0);
    Ok(Cached::of(bytes, &resident(fd, 0, u64::MAX)?))
}
