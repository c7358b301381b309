//! What is known of the files of a group before anything is done.

use std::path::Path;

use haul_disk::{Error, Op};
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, makedev, statx};

use super::left::Left;
use super::side::nanoseconds;
use crate::keep::{Facts, Rules};
use crate::report::{Group, Identity, Member};

/// The facts of each member that is still what the report says, and why others are not.
///
/// # Errors
/// When the whole group is left alone.
pub(super) fn facts(
    group: &Group,
    rules: &Rules,
    left: &mut dyn FnMut(&Path, Left),
) -> Result<Vec<Facts>, Left> {
    let mut all = Vec::with_capacity(group.members.len());
    for member in &group.members {
        match fact(member) {
            Ok(fact) => all.push(fact),
            Err(reason) => left(&member.path, reason),
        }
    }
    if let Some(before) = rules.modified_before
        && all.iter().any(|fact| fact.identity.modified_ns > before.0)
    {
        return Err(Left::Modified(before));
    }
    if rules.check_bytes && all.iter().any(|fact| fact.identity.bytes != group.bytes) {
        return Err(Left::Changed);
    }
    Ok(all)
}

fn fact(member: &Member) -> Result<Facts, Left> {
    let status = |flags| {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        statx(CWD, &member.path, flags | AtFlags::NO_AUTOMOUNT, wanted)
            .map_err(|errno| Left::from(Error::new(Op::Status, &member.path, errno)))
    };
    let mut found = status(AtFlags::SYMLINK_NOFOLLOW)?;
    let is_link = kind(&found) == FileType::Symlink;
    if is_link {
        // It is reported by what it leads to.
        found = status(AtFlags::empty())?;
    }
    if kind(&found) != FileType::RegularFile {
        return Err(Left::NotAFile);
    }
    let identity = identity(&found);
    // A new link changes the status, but not the file.
    let is_same = |then: Identity| Identity { changed_ns: then.changed_ns, ..identity } == then;
    if member.identity.is_some_and(|then| !is_same(then)) {
        return Err(Left::Changed);
    }
    let created = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    Ok(Facts {
        path: member.path.clone(),
        identity,
        created_ns: created
            .then(|| nanoseconds(found.stx_btime.tv_sec, found.stx_btime.tv_nsec.into())),
        accessed_ns: nanoseconds(found.stx_atime.tv_sec, found.stx_atime.tv_nsec.into()),
        is_link,
    })
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
