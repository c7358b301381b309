//! Tells two files from one file that is seen through two mounts.
//!
//! A union mount (overlay, mergerfs), a file system in user space or a network mount shows files of
//! another file system under device and inode numbers of its own. If such a file and the file
//! behind it were taken for two copies, removing one would remove both.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use haul_disk::{FileSystem, Lease, Superblock};
use rustix::fs::{AtFlags, StatxFlags, statx};

use super::open_file::{OpenFile, TICK_NS, nanoseconds};
use super::skip_reason::SkipReason;
use crate::keep::FileInfo;

/// The times of a file, in nanoseconds since 1970, from the file system that stores it if the
/// kernel can ask it.
struct Times {
    modified_ns: i64,
    changed_ns: i64,
}

/// Checks that two files with different identities are two files.
///
/// 1. Within one mounted file system, or if both file systems store files themselves, the inode
///    numbers decide.
/// 2. One file has one `mtime`, whichever mount shows it, and one `ctime`, except in user space
///    (FUSE), where some file systems invent the `ctime`. An overlay says nothing: with
///    `metacopy=on` or a data-only layer, one layer has the times and another the content.
/// 3. A write lease on the file that is stored locally is granted only to its sole opener. So it is
///    refused while the other file is open if that is the same one: whatever shows the file must
///    have it open, too.
///
/// # Errors
/// The files are one file, or nothing proves that they are two.
pub(super) fn check(keep: &FileInfo, drop: &FileInfo) -> Result<(), SkipReason> {
    if keep.identity.device == drop.identity.device {
        return Ok(());
    }
    let open = |file: &FileInfo| OpenFile::open(&file.path, &file.identity);
    let stored = |file: &OpenFile| Superblock::of(file.file.as_fd());
    let (opened_keep, opened_drop) = (open(keep)?, open(drop)?);
    let (keep_stored, drop_stored) = (stored(&opened_keep)?, stored(&opened_drop)?);
    if keep_stored.device == drop_stored.device {
        return Ok(());
    }
    let (keep_is_local, drop_is_local) =
        (keep_stored.file_system.stores_files(), drop_stored.file_system.stores_files());
    if keep_is_local && drop_is_local {
        return Ok(());
    }
    let file_systems = [keep_stored.file_system, drop_stored.file_system];
    if have_other_times(&file_systems, &opened_keep.file, &opened_drop.file) {
        return Ok(());
    }
    drop_both(opened_keep, opened_drop);
    let (local, shown) = match (keep_is_local, drop_is_local) {
        (true, _) => (keep, drop),
        (_, true) => (drop, keep),
        _ => return Err(SkipReason::MaybeSameFile(keep.path.clone())),
    };
    check_by_lease(&open(local)?, || open(shown), keep)
}

/// `true` if the times of two files prove that they are two; see [`check`].
fn have_other_times(file_systems: &[FileSystem; 2], keep: &File, drop: &File) -> bool {
    let is_any = |kind: &FileSystem| file_systems.contains(kind);
    let (false, Some(keep), Some(drop)) = (is_any(&FileSystem::Overlay), times(keep), times(drop))
    else {
        return false;
    };
    let differ = |a: i64, b: i64| a.abs_diff(b) >= TICK_NS.unsigned_abs();
    differ(keep.modified_ns, drop.modified_ns)
        || (!is_any(&FileSystem::Fuse) && differ(keep.changed_ns, drop.changed_ns))
}

/// Closes both files, so that the lease of the next step is not refused because of them.
fn drop_both(keep: OpenFile, drop: OpenFile) {
    let _closed = (keep, drop);
}

fn check_by_lease(
    local: &OpenFile,
    open_shown: impl FnOnce() -> Result<OpenFile, SkipReason>,
    keep: &FileInfo,
) -> Result<(), SkipReason> {
    let is_only_open = || Lease::is_only_open(local.file.as_fd());
    match is_only_open()? {
        Some(true) => {}
        Some(false) => return Err(SkipReason::InUse(local.path.clone())),
        None => return Err(SkipReason::MaybeSameFile(keep.path.clone())),
    }
    let shown = open_shown()?;
    // Some file systems in user space open a file at the first read.
    shown.file.read_at(&mut [0], 0).ok();
    match is_only_open()? {
        Some(true) => Ok(()),
        _ => Err(SkipReason::SameFile(keep.path.clone())),
    }
}

/// Returns the current times; `None` if they cannot be read.
fn times(file: &File) -> Option<Times> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    let found = statx(file, c"", flags, StatxFlags::MTIME | StatxFlags::CTIME).ok()?;
    Some(Times {
        modified_ns: nanoseconds(found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec.into()),
        changed_ns: nanoseconds(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec.into()),
    })
}

/// Returns the current `ctime` of an open file, in nanoseconds since 1970.
pub(super) fn changed_ns(file: &File) -> Option<i64> {
    times(file).map(|times| times.changed_ns)
}
