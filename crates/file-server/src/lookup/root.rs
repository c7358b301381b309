//! Opens names beneath the directory that is served.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use haul_disk::file_system_type;
use rustix::fs::{self, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::{Errno, pread};

use crate::error::{Error, Result};
use crate::file::description::Version;

/// The permission of a lookup to wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskWait {
    /// The lookup fails with [`OpenError::WouldBlock`] if the kernel has not cached the names.
    Forbidden,
    Allowed,
}

/// The reason why a name was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The kernel would have to read from the disk.
    WouldBlock,
    /// The status of the response: the name is missing or not readable, or there are no descriptors.
    Status(u16),
}

/// An open file or directory.
pub(crate) enum Entry {
    File(OwnedFd, Stat),
    Directory(OwnedFd),
}

/// The directory that contains all paths.
#[derive(Debug)]
pub(crate) struct Root {
    dir: OwnedFd,
}

impl Root {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = fs::open(path, flags, Mode::empty())
            .map_err(|errno| Error::Directory { path: path.to_path_buf(), source: errno.into() })?;
        Ok(Self { dir })
    }

    /// Opens the path `below_root`, which [`checked`](crate::request::path::checked) returned.
    /// Symbolic links are followed as long as they stay beneath the root. The kernel ensures this in
    /// the call that opens, so no directory can be replaced between a check and the open.
    pub(crate) fn open_at(&self, below_root: &[u8], wait: DiskWait) -> Result<Entry, OpenError> {
        let name = if below_root.is_empty() { &b"."[..] } else { below_root };
        // NONBLOCK: a named pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = self.open_beneath(OsStr::from_bytes(name), flags, wait)?;
        let stat = fs::fstat(&fd).map_err(open_error)?;
        match fs::FileType::from_raw_mode(stat.st_mode) {
            fs::FileType::RegularFile => match has_known_length(fd.as_fd(), &stat, wait)? {
                true => Ok(Entry::File(fd, stat)),
                false => Err(OpenError::Status(404)),
            },
            fs::FileType::Directory => Ok(Entry::Directory(fd)),
            // Devices, pipes and sockets are not served, nor is a file without a length.
            _ => Err(OpenError::Status(404)),
        }
    }

    /// Returns the version of the file or directory `below_root`. Costs less than to open it, and
    /// needs no permission to read it.
    pub(crate) fn version(&self, below_root: &[u8], wait: DiskWait) -> Result<Version, OpenError> {
        let version = |stat: Stat| Version::of(&stat);
        if below_root.is_empty() {
            return fs::fstat(&self.dir).map(version).map_err(open_error);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = self.open_beneath(OsStr::from_bytes(below_root), flags, wait)?;
        fs::fstat(&fd).map(version).map_err(open_error)
    }

    /// Returns `true` if the directory still has a name: it is opened once, and a removed one stays
    /// empty.
    pub(crate) fn exists(&self) -> bool {
        fs::fstat(&self.dir).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// Returns the status of a path without opening it; `None` if it is not beneath the root.
    pub(crate) fn stat_at(&self, below_root: &[u8]) -> Option<Stat> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = self.open_beneath(OsStr::from_bytes(below_root), flags, DiskWait::Allowed).ok()?;
        fs::fstat(&fd).ok()
    }

    fn open_beneath(
        &self,
        name: &OsStr,
        flags: OFlags,
        wait: DiskWait,
    ) -> Result<OwnedFd, OpenError> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let resolve = match wait {
            DiskWait::Forbidden => beneath | ResolveFlags::CACHED,
            DiskWait::Allowed => beneath,
        };
        // AGAIN: a directory was renamed during the lookup, which must be repeated.
        for _ in 0..100 {
            match fs::openat2(self.dir.as_fd(), name, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if wait == DiskWait::Forbidden => {
                    return Err(OpenError::WouldBlock);
                }
                // CACHED is newer (Linux 5.12) than the other flags: older kernels may always wait.
                Err(Errno::INVAL) if wait == DiskWait::Forbidden => {
                    return Err(OpenError::WouldBlock);
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                other => return other.map_err(open_error),
            }
        }
        Err(OpenError::Status(503))
    }
}

/// `true` if the content of a regular file has the length of its status. Files of interfaces to the
/// kernel never have, and a file system that stores no files itself may show one of length 0 that
/// has content. Such files have no blocks: others cost no further system call.
fn has_known_length(fd: BorrowedFd<'_>, stat: &Stat, wait: DiskWait) -> Result<bool, OpenError> {
    if stat.st_blocks > 0 {
        return Ok(true);
    }
    // An error is ignored: the file system does not say what it is.
    let Ok(file_system) = file_system_type(fd) else { return Ok(true) };
    if file_system.is_kernel_interface() {
        return Ok(false);
    }
    if stat.st_size > 0 || file_system.stores_files() {
        return Ok(true);
    }
    match wait {
        DiskWait::Forbidden => Err(OpenError::WouldBlock),
        DiskWait::Allowed => Ok(!matches!(pread(fd, &mut [0], 0), Ok(1))),
    }
}

fn open_error(errno: Errno) -> OpenError {
    OpenError::Status(match errno {
        Errno::ACCESS | Errno::PERM => 403,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => 503,
        Errno::IO => 500,
        // XDEV and LOOP: the path leaves the root, or does not exist. Clients do not learn which.
        _ => 404,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn status(entry: Result<Entry, OpenError>) -> u16 {
        match entry {
            Ok(_) => 200,
            Err(OpenError::Status(status)) => status,
            Err(OpenError::WouldBlock) => 0,
        }
    }

    #[test]
    fn symbolic_links_are_followed_only_beneath_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("root");
        std::fs::create_dir_all(below.join("sub")).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::fs::write(below.join("a"), "a").unwrap();
        symlink("../a", below.join("sub/inside")).unwrap();
        symlink("../secret", below.join("outside")).unwrap();
        symlink("../../secret", below.join("sub/outside")).unwrap();
        symlink(dir.path().join("secret"), below.join("absolute")).unwrap();
        symlink(dir.path(), below.join("up")).unwrap();
        symlink("/proc/self/root", below.join("magic")).unwrap();
        symlink("loop", below.join("loop")).unwrap();
        let root = Root::open(&below).unwrap();
        for (path, expected) in [
            ("a", 200),
            ("sub/inside", 200),
            ("outside", 404),
            ("sub/outside", 404),
            ("absolute", 404),
            ("up/secret", 404),
            ("magic/etc/passwd", 404),
            ("../secret", 404),
            ("loop", 404),
            ("a/b", 404),
            ("none", 404),
        ] {
            assert_eq!(
                status(root.open_at(path.as_bytes(), DiskWait::Allowed)),
                expected,
                "{path}"
            );
        }
        assert!(matches!(root.open_at(b"", DiskWait::Allowed), Ok(Entry::Directory(_))));
        let long = vec![b'x'; 5000];
        assert_eq!(status(root.open_at(&long, DiskWait::Allowed)), 404);
    }

    #[test]
    fn special_files_are_not_served() {
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status();
        assert!(made.unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        for name in ["pipe", "socket"] {
            assert_eq!(status(root.open_at(name.as_bytes(), DiskWait::Allowed)), 404, "{name}");
        }
    }

    #[test]
    fn files_whose_length_says_nothing_are_not_served() {
        for (dir, name) in [("/proc/sys/kernel", "ostype"), ("/sys/kernel/mm/ksm", "run")] {
            if !Path::new(dir).join(name).exists() {
                haul_testing::skip(&format!("no {dir}/{name}"));
                continue;
            }
            let root = Root::open(Path::new(dir)).unwrap();
            let found = status(root.open_at(name.as_bytes(), DiskWait::Allowed));
            assert_eq!(found, 404, "{dir}/{name}");
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("empty"), "").unwrap();
        let sparse = std::fs::File::create(dir.path().join("sparse")).unwrap();
        sparse.set_len(1 << 20).unwrap();
        let root = Root::open(dir.path()).unwrap();
        for name in ["empty", "sparse"] {
            assert_eq!(status(root.open_at(name.as_bytes(), DiskWait::Allowed)), 200, "{name}");
        }
    }

    #[test]
    fn cached_names_are_opened_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "a").unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(status(root.open_at(b"a", DiskWait::Allowed)), 200);
        assert_eq!(status(root.open_at(b"a", DiskWait::Forbidden)), 200);
        assert_eq!(status(root.open_at(b"none", DiskWait::Allowed)), 404);
        assert_eq!(status(root.open_at(b"none", DiskWait::Forbidden)), 404, "cached as missing");
    }
}
