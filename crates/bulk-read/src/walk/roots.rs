//! Adds the roots of a walk to the tree, and creates the first jobs.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haul_disk::Op;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::events::SkipReason;
use super::job::Job;
use super::shared::Shared;
use crate::error::Error;
use crate::status::{Status, status_of_directory, status_of_path};
use crate::tree::DirId;

/// Adds the roots that are files to the tree and returns jobs for the roots that are directories,
/// with their inode numbers.
///
/// All roots are marked as visited before the walk starts. A file below several roots thus always
/// belongs to the innermost root, whichever thread reaches it first.
pub(super) fn start_jobs(shared: &Shared<'_>, roots: &[PathBuf]) -> Vec<(u64, Job)> {
    let mut jobs = Vec::new();
    for (index, root) in (0..).zip(roots) {
        if shared.is_stopped() {
            break;
        }
        match add_root(shared, root, index) {
            Ok(job) => jobs.extend(job),
            Err(error) => shared.events.failed(error),
        }
    }
    jobs
}

fn add_root(shared: &Shared<'_>, path: &Path, root: u32) -> Result<Option<(u64, Job)>, Error> {
    let fail = |errno: Errno| haul_disk::Error::new(Op::Status, path, errno);
    // A path cannot contain a NUL byte, so the file does not exist.
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_zero| fail(Errno::NOENT))?;
    let status = status_of_path(path, true).map_err(fail)?;
    match status.kind {
        FileType::Directory => {
            if !shared.visited.lock().insert_dir((status.meta.device, status.meta.inode)) {
                shared.events.skipped(path, SkipReason::AlreadyVisited);
                return Ok(None);
            }
            let added = shared.tree.lock().add_dir(None, name.to_bytes(), root);
            let dir = added.ok_or_else(|| Error::TreeFull { path: path.to_path_buf() })?;
            Ok(Some((status.meta.inode, Job::root(dir, root, status.meta.device))))
        }
        FileType::RegularFile => {
            add_root_file(shared, path, root, &status)?;
            Ok(None)
        }
        _ => {
            shared.events.skipped(path, SkipReason::NotRegularFile);
            Ok(None)
        }
    }
}

fn add_root_file(
    shared: &Shared<'_>,
    path: &Path,
    root: u32,
    status: &Status,
) -> Result<(), Error> {
    let fail = |errno: Errno| haul_disk::Error::new(Op::Status, path, errno);
    let parent = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or(path.as_os_str()).as_bytes();
    let name = CString::new(name).map_err(|_zero| fail(Errno::NOENT))?;
    let dir = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent_meta = status_of_directory(dir).map_err(fail)?.meta;
    if !shared.visited.lock().insert_root_file((parent_meta.device, parent_meta.inode), &name) {
        shared.events.skipped(path, SkipReason::AlreadyVisited);
        return Ok(());
    }
    let options = shared.options;
    let fits = (options.bytes_min..=options.bytes_max).contains(&status.meta.bytes);
    if !fits || options.accept.is_some_and(|accept| !accept(path)) {
        return Ok(());
    }
    let entry = status_of_path(path, false);
    let is_link = entry.is_ok_and(|entry| entry.kind == FileType::Symlink);
    let mut tree = shared.tree.lock();
    let added = tree
        .add_dir(None, parent.as_os_str().as_bytes(), root)
        .and_then(|dir: DirId| tree.add_file(dir, name.to_bytes(), &status.meta, is_link));
    drop(tree);
    added.ok_or_else(|| Error::TreeFull { path: path.to_path_buf() })?;
    shared.add_found(1, status.meta.bytes);
    Ok(())
}
