//! A file on one side of a comparison: open, known, and watched.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use haul_disk::{Error, Lease, Leased, Op};
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::fs::{flock, fstat, openat, statat};
use rustix::io::Errno;

use super::left::Left;
use crate::report::Identity;

/// How long ago a file must have changed for a second change to show in its times, where the
/// kernel gives no lease.
pub(super) const TICK_NS: i64 = 2_000_000_000;

/// A file that is open, and the directory its name is in. From here on nothing goes by paths: a
/// directory that is renamed, or replaced by a link, leads nobody astray.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) path: PathBuf,
    pub(super) dir: OwnedFd,
    pub(super) name: OsString,
    pub(super) file: File,
    pub(super) identity: Identity,
    dir_identity: (u64, u64),
}

/// Nanoseconds since 1970.
pub(crate) fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// Who a file is, by its status.
#[expect(clippy::allow_attributes, reason = "the types differ between machines")]
pub(crate) fn identity(stat: &Stat) -> Identity {
    #[allow(clippy::unnecessary_cast, clippy::cast_possible_wrap, reason = "as above")]
    let time = |seconds, fraction| nanoseconds(seconds as i64, fraction as i64);
    Identity {
        device: stat.st_dev,
        inode: stat.st_ino,
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified_ns: time(stat.st_mtime, stat.st_mtime_nsec),
        changed_ns: time(stat.st_ctime, stat.st_ctime_nsec),
    }
}

impl Side {
    /// Opens the file that `path` leads to, if it is still the one that was known as `expected`.
    pub(super) fn open(path: &Path, expected: &Identity) -> Result<Self, Left> {
        let fail = |op, errno: Errno| Left::from(Error::new(op, path, errno));
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Left::NotAFile);
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(CWD, parent, flags, Mode::empty()).map_err(|e| fail(Op::Open, e))?;
        // Nothing but a file is opened in a way that could wait or do something.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&dir, name, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::LOOP | Errno::NXIO => Left::NotAFile,
            _ => fail(Op::Open, errno),
        })?;
        let stat = fstat(&file).map_err(|errno| fail(Op::Status, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Left::NotAFile);
        }
        let identity = identity(&stat);
        // The time of the last status change is that of the last link, too: it may differ.
        if (Identity { changed_ns: expected.changed_ns, ..identity }) != *expected {
            return Err(Left::Changed);
        }
        let home = fstat(&dir).map_err(|errno| fail(Op::Status, errno))?;
        Ok(Self {
            path: path.to_owned(),
            name: name.to_owned(),
            file: file.into(),
            identity,
            dir_identity: (home.st_dev, home.st_ino),
            dir,
        })
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        let inode = |side: &Self| (side.identity.device, side.identity.inode);
        inode(self) == inode(other)
    }

    /// Whether both are one entry of one directory: removing one removes the other.
    pub(super) fn is_same_name(&self, other: &Self) -> bool {
        self.dir_identity == other.dir_identity && self.name == other.name
    }

    /// Takes the lock that programs which lock files respect.
    pub(super) fn lock(&self, operation: FlockOperation) -> Result<(), Left> {
        match flock(&self.file, operation) {
            Err(Errno::WOULDBLOCK) => Err(Left::Locked(self.path.clone())),
            // A file system without locks has nobody who holds one.
            _ => Ok(()),
        }
    }

    /// Watches the bytes of the file.
    pub(super) fn watch(&self, now_ns: i64) -> Result<Watch<'_>, Left> {
        match Lease::take(self.file.as_fd())? {
            Leased::Ours(lease) => Ok(Watch { side: self, lease: Some(lease) }),
            Leased::HasWriter => Err(Left::InUse(self.path.clone())),
            Leased::NoLeases if self.identity.changed_ns > now_ns.saturating_sub(TICK_NS) => {
                Err(Left::JustChanged(self.path.clone()))
            }
            Leased::NoLeases => Ok(Watch { side: self, lease: None }),
        }
    }

    /// Whether `name` in the directory leads to this file.
    pub(super) fn leads_here(&self, name: &OsStr) -> bool {
        statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.inode())
    }

    fn inode(&self) -> (u64, u64) {
        (self.identity.device, self.identity.inode)
    }

    /// The error of `op` on this file.
    pub(super) fn fail(&self, op: Op, errno: Errno) -> Left {
        Left::from(Error::new(op, &self.path, errno))
    }
}

/// Notices that somebody is about to change the bytes of a file, or did.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    side: &'a Side,
    lease: Option<Lease<'a>>,
}

impl Watch<'_> {
    /// Whether the bytes are those they were when the watch began. With a lease this is certain,
    /// and stays so until the watch ends; without one it is what the times of the file say.
    pub(super) fn is_quiet(&self) -> bool {
        match &self.lease {
            Some(lease) => lease.is_held(),
            None => fstat(&self.side.file).is_ok_and(|stat| {
                let now = identity(&stat);
                let then = &self.side.identity;
                (now.bytes, now.modified_ns) == (then.bytes, then.modified_ns)
            }),
        }
    }

    pub(super) fn check(&self) -> Result<(), Left> {
        if self.is_quiet() { Ok(()) } else { Err(Left::InUse(self.side.path.clone())) }
    }
}
