//! Taking a name from a file so that at every step, and after a crash at any of them, the bytes
//! are under some name, and so that a file that took the name meanwhile keeps it.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::path::Path;

use haul_disk::Op;
use rustix::fs::{AtFlags, CWD, RenameFlags, linkat, renameat_with, symlinkat, unlinkat};
use rustix::io::Errno;

use super::left::Left;
use super::side::{Side, Watch};

/// A name nobody has, for a moment.
pub(super) fn passing_name() -> OsString {
    let mut random = [0_u8; 12];
    // Without random bytes the name may be taken, which the calls below refuse.
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).ok();
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(".haul-{digits}").into()
}

/// What must be so until the end.
pub(super) struct Conditions<'a> {
    pub(super) keep: &'a Side,
    pub(super) watches: &'a [Watch<'a>],
}

impl Conditions<'_> {
    /// Whether the kept file still has its name, and nobody is about to write to either.
    pub(super) fn check(&self) -> Result<(), Left> {
        if !self.keep.leads_here(&self.keep.name) {
            return Err(Left::Changed);
        }
        self.watches.iter().try_for_each(Watch::check)
    }
}

/// Removes the name of `drop`: first it becomes another one, which nobody but us uses; then it is
/// looked at what was renamed. Whatever it is, nothing is lost by that.
pub(super) fn remove(drop: &Side, conditions: &Conditions<'_>) -> Result<(), Left> {
    let aside = passing_name();
    rename(drop, &drop.name, &aside, RenameFlags::NOREPLACE)?;
    let judged = judge(drop, &aside, conditions);
    if judged.is_err() {
        return match rename(drop, &aside, &drop.name, RenameFlags::NOREPLACE) {
            Ok(()) => judged,
            Err(_) => Err(Left::Displaced(drop.path.with_file_name(aside))),
        };
    }
    unlinkat(&drop.dir, &aside, AtFlags::empty()).map_err(|errno| drop.fail(Op::Remove, errno))
}

/// What a name is given to instead.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instead<'a> {
    /// The kept file itself.
    HardLink,
    /// A symbolic link to this path.
    SymLink(&'a Path),
}

/// Gives the name of `drop` to something else, in one step for everybody who looks.
pub(super) fn replace(
    drop: &Side,
    instead: Instead<'_>,
    conditions: &Conditions<'_>,
) -> Result<(), Left> {
    let aside = passing_name();
    make(drop, instead, &aside, conditions.keep)?;
    let swapped = swap(drop, &aside, conditions);
    if !matches!(swapped, Err(Left::Displaced(_))) {
        // Either the link that is not needed, or the file it stands for now.
        let removed = unlinkat(&drop.dir, &aside, AtFlags::empty());
        swapped?;
        return removed.map_err(|errno| drop.fail(Op::Remove, errno));
    }
    swapped
}

fn make(drop: &Side, instead: Instead<'_>, name: &OsStr, keep: &Side) -> Result<(), Left> {
    match instead {
        Instead::HardLink => {
            // By its descriptor: it is the file that was compared.
            let file = format!("/proc/self/fd/{}", keep.file.as_raw_fd());
            linkat(CWD, file, &drop.dir, name, AtFlags::SYMLINK_FOLLOW).map_err(|errno| match errno
            {
                Errno::XDEV => Left::OtherFileSystem(keep.path.clone()),
                _ => drop.fail(Op::Create, errno),
            })
        }
        Instead::SymLink(target) => {
            symlinkat(target, &drop.dir, name).map_err(|errno| drop.fail(Op::Create, errno))
        }
    }
}

/// Exchanges the names, and exchanges them again when that was wrong.
fn swap(drop: &Side, aside: &OsStr, conditions: &Conditions<'_>) -> Result<(), Left> {
    match rename(drop, aside, &drop.name, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        Err(Left::Disk(error))
            if error.source.raw_os_error() == Some(Errno::INVAL.raw_os_error()) =>
        {
            return swap_in_two_steps(drop, aside, conditions);
        }
        Err(left) => return Err(left),
    }
    let judged = judge(drop, aside, conditions);
    if judged.is_err() && rename(drop, aside, &drop.name, RenameFlags::EXCHANGE).is_err() {
        return Err(Left::Displaced(drop.path.with_file_name(aside)));
    }
    judged
}

/// For file systems that cannot exchange names: the file steps aside, then the link takes its
/// name. In between nothing has the name.
fn swap_in_two_steps(drop: &Side, link: &OsStr, conditions: &Conditions<'_>) -> Result<(), Left> {
    let aside = passing_name();
    rename(drop, &drop.name, &aside, RenameFlags::NOREPLACE)?;
    let judged = judge(drop, &aside, conditions)
        .and_then(|()| rename(drop, link, &drop.name, RenameFlags::NOREPLACE));
    if judged.is_err() && rename(drop, &aside, &drop.name, RenameFlags::NOREPLACE).is_err() {
        unlinkat(&drop.dir, link, AtFlags::empty()).ok();
        return Err(Left::Displaced(drop.path.with_file_name(aside)));
    }
    judged?;
    // The caller removes what has the name of the link: that is the file now.
    rename(drop, &aside, link, RenameFlags::NOREPLACE)
}

/// Whether what stands at `aside` is the file that was compared, and all is as it was.
fn judge(drop: &Side, aside: &OsStr, conditions: &Conditions<'_>) -> Result<(), Left> {
    if !drop.leads_here(aside) {
        return Err(Left::Changed);
    }
    conditions.check()
}

fn rename(side: &Side, from: &OsStr, to: &OsStr, flags: RenameFlags) -> Result<(), Left> {
    renameat_with(&side.dir, from, &side.dir, to, flags)
        .or_else(|errno| match errno {
            // A file system that knows no flags: a link never takes a name that is taken.
            Errno::INVAL if flags == RenameFlags::NOREPLACE => {
                linkat(&side.dir, from, &side.dir, to, AtFlags::empty())?;
                unlinkat(&side.dir, from, AtFlags::empty())
            }
            _ => Err(errno),
        })
        .map_err(|errno| side.fail(Op::Rename, errno))
}
