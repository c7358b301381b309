//! Where a walk begins, and what it has seen.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haul_disk::Op;
use rustix::fs::{CWD, FileType};
use rustix::io::Errno;

use super::list::Job;
use super::{Shared, Skipped};
use crate::error::Error;
use crate::status::{Status, status_at};
use crate::tree::DirId;

/// What is a thing itself, whatever its name: its file system and its number there.
pub(super) type Identity = (u64, u64);

/// What was seen already, so that it is not taken twice.
#[derive(Debug, Default)]
pub(super) struct Seen {
    dirs: HashSet<Identity>,
    /// Roots that are files, by the directory they are in.
    files: HashSet<(Identity, CString)>,
    has_files: bool,
}

impl Seen {
    /// Whether the directory is new. Those of a file system that gives no numbers all are.
    pub(super) fn is_new(&mut self, dir: Identity) -> bool {
        dir.1 == 0 || self.dirs.insert(dir)
    }

    /// Whether any root is a file.
    pub(super) fn has_files(&self) -> bool {
        self.has_files
    }

    /// Whether that file is a root itself.
    pub(super) fn is_root(&self, dir: Identity, name: &CStr) -> bool {
        self.files.contains(&(dir, name.to_owned()))
    }

    fn is_new_file(&mut self, dir: Identity, name: &CStr) -> bool {
        self.has_files = true;
        self.files.insert((dir, name.to_owned()))
    }
}

/// Takes the roots that are files, and gives the directories to walk, the first one last.
///
/// All roots count as seen from here on, so that what lies in several of them belongs to the
/// innermost, whichever thread comes first.
pub(super) fn begin(shared: &Shared<'_>, roots: &[PathBuf]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (index, root) in (0..).zip(roots) {
        if shared.is_stopped() {
            break;
        }
        match take(shared, root, index) {
            Ok(job) => jobs.extend(job),
            Err(error) => shared.events.failed(error),
        }
    }
    jobs.reverse();
    jobs
}

fn take(shared: &Shared<'_>, path: &Path, root: u32) -> Result<Option<Job>, Error> {
    let fail = |errno: Errno| haul_disk::Error::new(Op::Status, path, errno);
    // No path of the kernel's has a zero byte, so nothing has that name.
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_zero| fail(Errno::NOENT))?;
    let status = status_at(CWD, &name, true).map_err(fail)?;
    match status.kind {
        FileType::Directory => {
            if !shared.seen.lock().is_new((status.meta.device, status.meta.inode)) {
                shared.events.skipped(path, Skipped::SeenBefore);
                return Ok(None);
            }
            let added = shared.tree.lock().add_dir(None, name.to_bytes(), root);
            let dir = added.ok_or_else(|| Error::TooMany { path: path.to_path_buf() })?;
            Ok(Some(Job::root(dir, root, status.meta.device)))
        }
        FileType::RegularFile => {
            take_file(shared, path, root, &status)?;
            Ok(None)
        }
        _ => {
            shared.events.skipped(path, Skipped::NotAFile);
            Ok(None)
        }
    }
}

fn take_file(shared: &Shared<'_>, path: &Path, root: u32, status: &Status) -> Result<(), Error> {
    let fail = |errno: Errno| haul_disk::Error::new(Op::Status, path, errno);
    let parent = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or(path.as_os_str()).as_bytes();
    let name = CString::new(name).map_err(|_zero| fail(Errno::NOENT))?;
    let dir = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let dir = CString::new(dir.as_os_str().as_bytes()).map_err(|_zero| fail(Errno::NOENT))?;
    let home = status_at(CWD, &dir, true).map_err(fail)?.meta;
    if !shared.seen.lock().is_new_file((home.device, home.inode), &name) {
        shared.events.skipped(path, Skipped::SeenBefore);
        return Ok(());
    }
    let options = shared.options;
    let fits = (options.bytes_min..=options.bytes_max).contains(&status.meta.bytes);
    if !fits || options.accept.is_some_and(|accept| !accept(path)) {
        return Ok(());
    }
    let entry =
        status_at(CWD, &CString::new(path.as_os_str().as_bytes()).unwrap_or_default(), false);
    let is_link = entry.is_ok_and(|entry| entry.kind == FileType::Symlink);
    let mut tree = shared.tree.lock();
    let added = tree
        .add_dir(None, parent.as_os_str().as_bytes(), root)
        .and_then(|dir: DirId| tree.add_file(dir, name.to_bytes(), &status.meta, is_link));
    drop(tree);
    added.ok_or_else(|| Error::TooMany { path: path.to_path_buf() })?;
    shared.found(1, status.meta.bytes);
    Ok(())
}
