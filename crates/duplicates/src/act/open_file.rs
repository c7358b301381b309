//! Opens a file of a group, verifies its identity, and detects concurrent writers.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use haul_bulk_read::open_directory;
use haul_disk::{Error, Lease, LeaseOutcome, Op, Superblock};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::fs::{StatxAttributes, StatxFlags};
use rustix::fs::{flock, fstat, makedev, openat, statx};
use rustix::io::Errno;

use super::skip_reason::SkipReason;
use crate::report::Identity;

/// The minimum age of the last change, in nanoseconds, at which another change is certain to alter
/// the timestamps. It is required if the kernel grants no lease.
pub(super) const TICK_NS: i64 = 2_000_000_000;

/// The number of links from which a file system may permit no more.
const LINKS_MAX_LEAST: u32 = 30_000;

/// A file and its directory, both open. All later operations use these descriptors instead of
/// paths, so renaming or replacing a directory does not redirect them to another file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(super) path: PathBuf,
    pub(super) dir: OwnedFd,
    pub(super) name: OsString,
    pub(crate) file: File,
    pub(super) identity: Identity,
    dir_identity: (u64, u64),
}

/// An advisory lock, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct FileLock<'a>(&'a File);

impl Drop for FileLock<'_> {
    fn drop(&mut self) {
        // Closing the descriptor is not enough: a child process between fork and exec shares the
        // file description and would keep the lock.
        flock(self.0, FlockOperation::Unlock).ok();
    }
}

/// Converts a timestamp to nanoseconds since 1970.
pub(crate) fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// Returns the identity of a file from its status.
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

impl OpenFile {
    /// Opens the file at `path` if its identity is still `expected`.
    pub(crate) fn open(path: &Path, expected: &Identity) -> Result<Self, SkipReason> {
        let fail = |op, errno: Errno| SkipReason::from(Error::new(op, path, errno));
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(SkipReason::NotRegularFile);
        };
        let dir = open_directory(parent).map_err(|error| Error::new(Op::Open, path, error))?;
        // The flags avoid blocking and side effects if the path no longer refers to a regular file.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&dir, name, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::LOOP | Errno::NXIO => SkipReason::NotRegularFile,
            _ => fail(Op::Open, errno),
        })?;
        let stat = fstat(&file).map_err(|errno| fail(Op::Status, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(SkipReason::NotRegularFile);
        }
        let identity = identity(&stat);
        // The ctime may differ, because another process or an earlier action may have added a hard
        // link.
        if (Identity { changed_ns: expected.changed_ns, ..identity }) != *expected {
            return Err(SkipReason::Changed);
        }
        let dir_stat = fstat(&dir).map_err(|errno| fail(Op::Status, errno))?;
        Ok(Self {
            path: path.to_owned(),
            name: name.to_owned(),
            file: file.into(),
            identity,
            dir_identity: (dir_stat.st_dev, dir_stat.st_ino),
            dir,
        })
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.inode() == other.inode()
    }

    /// `true` if this file and `other` were opened through the same directory entry, so that
    /// removing the name of one file would remove the name of the other. One file of which no link
    /// exists has one entry, whatever its paths are.
    pub(super) fn is_same_entry(&self, other: &Self) -> bool {
        let is_one_entry = self.dir_identity == other.dir_identity && self.name == other.name;
        is_one_entry || (self.is_same_file(other) && self.links().is_ok_and(|links| links < 2))
    }

    /// Returns the number of names of the file.
    fn links(&self) -> Result<u32, Errno> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
        statx(&self.file, c"", flags, StatxFlags::NLINK).map(|found| found.stx_nlink)
    }

    /// `true` if the file can have another link beside `planned` further ones, as far as it is
    /// known.
    pub(super) fn has_links_to_spare(&self, planned: u32) -> Result<bool, SkipReason> {
        let links = self.links().map_err(|errno| self.error(Op::Status, errno))?;
        let wanted = links.saturating_add(planned);
        if wanted < LINKS_MAX_LEAST {
            return Ok(true);
        }
        let links_max = Superblock::of(self.file.as_fd())?.file_system.links_max();
        Ok(links_max.is_none_or(|links_max| wanted < links_max))
    }

    /// `true` if the file itself is mounted on its name (`mount --bind FILE NAME`): the name refers
    /// to the file only until it is unmounted, and the file has another name or none.
    pub(super) fn is_mount_point(&self) -> bool {
        let found = statx(&self.file, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
        found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }

    /// Takes an advisory lock (`flock`) without waiting for it.
    pub(super) fn lock(&self, operation: FlockOperation) -> Result<FileLock<'_>, SkipReason> {
        match flock(&self.file, operation) {
            Err(Errno::WOULDBLOCK) => Err(SkipReason::Locked(self.path.clone())),
            // Any error but `WOULDBLOCK` means that the file system has no locks, so no other
            // process can hold a lock.
            _ => Ok(FileLock(&self.file)),
        }
    }

    /// Starts to monitor the file for writers. Fails if another process has it open for writing, or
    /// if without a lease the last change is too recent.
    pub(super) fn monitor(&self, now_ns: i64) -> Result<WriteMonitor<'_>, SkipReason> {
        match Lease::take(self.file.as_fd())? {
            LeaseOutcome::Granted(lease) => Ok(WriteMonitor { file: self, lease: Some(lease) }),
            LeaseOutcome::HasWriter => Err(SkipReason::BeingWritten(self.path.clone())),
            LeaseOutcome::Unsupported
                if self.identity.changed_ns > now_ns.saturating_sub(TICK_NS) =>
            {
                Err(SkipReason::RecentlyChanged(self.path.clone()))
            }
            LeaseOutcome::Unsupported => Ok(WriteMonitor { file: self, lease: None }),
        }
    }

    /// `true` if `name` in the file's directory refers to this file. A network file system is
    /// asked, whatever the kernel remembers.
    pub(super) fn has_name(&self, name: &OsStr) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
        statx(&self.dir, name, flags, StatxFlags::INO).is_ok_and(|found| {
            let device = makedev(found.stx_dev_major, found.stx_dev_minor);
            (device, found.stx_ino) == self.inode()
        })
    }

    /// Returns the device and the inode number.
    pub(super) fn inode(&self) -> (u64, u64) {
        (self.identity.device, self.identity.inode)
    }

    /// Creates an error of `op` on this file.
    pub(super) fn error(&self, op: Op, errno: Errno) -> SkipReason {
        SkipReason::from(Error::new(op, &self.path, errno))
    }
}

/// A detector of writes by other processes to a file. It uses a lease if the kernel grants one.
#[derive(Debug)]
pub(super) struct WriteMonitor<'a> {
    file: &'a OpenFile,
    lease: Option<Lease<'a>>,
}

impl WriteMonitor<'_> {
    /// `true` if the content has not changed since the monitor started. With a lease this is
    /// certain and remains so until the monitor is dropped; without a lease it is inferred from the
    /// length and the `mtime`.
    pub(super) fn is_unchanged(&self) -> bool {
        match &self.lease {
            Some(lease) => lease.is_held(),
            None => fstat(&self.file.file).is_ok_and(|stat| {
                let current = identity(&stat);
                let initial = &self.file.identity;
                (current.bytes, current.modified_ns) == (initial.bytes, initial.modified_ns)
            }),
        }
    }

    pub(super) fn check(&self) -> Result<(), SkipReason> {
        if self.is_unchanged() {
            Ok(())
        } else {
            Err(SkipReason::BeingWritten(self.file.path.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lock_ends_although_another_descriptor_shares_its_description() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "content").unwrap();
        let identity = identity(&fstat(File::open(&path).unwrap()).unwrap());
        let [first, second] = [(); 2].map(|()| OpenFile::open(&path, &identity).unwrap());
        // Like the descriptor in a child process between fork and exec.
        let _shared = first.file.try_clone().unwrap();
        let lock = first.lock(FlockOperation::NonBlockingLockExclusive).unwrap();
        let refused = second.lock(FlockOperation::NonBlockingLockShared);
        assert!(matches!(refused, Err(SkipReason::Locked(_))), "{refused:?}");
        drop(lock);
        second.lock(FlockOperation::NonBlockingLockShared).unwrap();
    }
}
