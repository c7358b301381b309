//! Collects the status of the files of a group before an action.

use std::io;
use std::path::Path;

use haul_bulk_read::open_directory;
use haul_disk::{Error, Op};
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, makedev, statx};
use rustix::io::Errno;

use super::open_file::nanoseconds;
use super::skip_reason::SkipReason;
use crate::keep::{FileInfo, Permissions, Rules};
use crate::report::{Group, Identity, Member};

/// Returns the status of each unchanged member; reports each changed or unreadable member to
/// `skipped`.
///
/// # Errors
/// Fails if the rules require to skip the whole group.
pub(super) fn collect(
    group: &Group,
    rules: &Rules,
    skipped: &mut dyn FnMut(&Path, SkipReason),
) -> Result<Vec<FileInfo>, SkipReason> {
    let mut all = Vec::with_capacity(group.members.len());
    for member in &group.members {
        match status(member) {
            Ok(file) => all.push(file),
            Err(reason) => skipped(&member.path, reason),
        }
    }
    if let Some(before) = rules.modified_before
        && all.iter().any(|file| file.identity.modified_ns > before.0)
    {
        return Err(SkipReason::Modified(before));
    }
    if rules.check_bytes && all.iter().any(|file| file.identity.bytes != group.bytes) {
        return Err(SkipReason::Changed);
    }
    Ok(all)
}

fn status(member: &Member) -> Result<FileInfo, SkipReason> {
    let stat = |flags: AtFlags| {
        statx_at(&member.path, flags | AtFlags::NO_AUTOMOUNT)
            .map_err(|error| SkipReason::from(Error::new(Op::Status, &member.path, error)))
    };
    let mut found = stat(AtFlags::SYMLINK_NOFOLLOW)?;
    let is_link = kind(&found) == FileType::Symlink;
    if is_link {
        // A report contains the identity of the link's target.
        found = stat(AtFlags::empty())?;
    }
    if kind(&found) != FileType::RegularFile {
        return Err(SkipReason::NotRegularFile);
    }
    let identity = identity(&found);
    // The ctime may differ, because another process or an earlier action may have added a hard
    // link.
    let is_same = |old: Identity| Identity { changed_ns: old.changed_ns, ..identity } == old;
    if member.identity.is_some_and(|old| !is_same(old)) {
        return Err(SkipReason::Changed);
    }
    let has_btime = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    Ok(FileInfo {
        path: member.path.clone(),
        identity,
        created_ns: has_btime
            .then(|| nanoseconds(found.stx_btime.tv_sec, found.stx_btime.tv_nsec.into())),
        accessed_ns: nanoseconds(found.stx_atime.tv_sec, found.stx_atime.tv_nsec.into()),
        permissions: Permissions {
            user: found.stx_uid,
            group: found.stx_gid,
            mode: u32::from(found.stx_mode) & 0o7777,
        },
        is_link,
    })
}

/// Returns the status of the file at a path of any length.
fn statx_at(path: &Path, flags: AtFlags) -> io::Result<Statx> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    match (statx(CWD, path, flags, mask), path.parent(), path.file_name()) {
        (Err(Errno::NAMETOOLONG), Some(parent), Some(name)) => {
            Ok(statx(open_directory(parent)?, name, flags, mask)?)
        }
        (status, ..) => Ok(status?),
    }
}

fn kind(status: &Statx) -> FileType {
    FileType::from_raw_mode(status.stx_mode.into())
}

fn identity(status: &Statx) -> Identity {
    Identity {
        device: makedev(status.stx_dev_major, status.stx_dev_minor),
        inode: status.stx_ino,
        bytes: status.stx_size,
        modified_ns: nanoseconds(status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec.into()),
        changed_ns: nanoseconds(status.stx_ctime.tv_sec, status.stx_ctime.tv_nsec.into()),
    }
}
