//! The directory that is served, and how names below it are opened.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Whether a look-up may wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Only what the kernel knows already: [`NotOpened::NotKnown`] otherwise.
    Never,
    May,
}

/// Why a name was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOpened {
    /// The kernel would have to ask the disk for it.
    NotKnown,
    /// An answer with this status: it is not there, not ours to read, or there are no descriptors.
    Status(u16),
}

/// What a name leads to.
pub(crate) enum Opened {
    File(OwnedFd, Stat),
    Directory(OwnedFd),
}

/// The root of all paths.
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

    /// Opens what is at `below_root`, which [`crate::path::checked`] has seen. Symbolic links are
    /// followed as long as they stay beneath the root; the kernel sees to that in the very call
    /// that opens, so nobody can exchange a directory in between.
    pub(crate) fn open_at(&self, below_root: &[u8], wait: Wait) -> Result<Opened, NotOpened> {
        let name = if below_root.is_empty() { &b"."[..] } else { below_root };
        // NONBLOCK: a named pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = self.open_beneath(OsStr::from_bytes(name), flags, wait)?;
        let stat = fs::fstat(&fd).map_err(not_opened)?;
        match fs::FileType::from_raw_mode(stat.st_mode) {
            fs::FileType::RegularFile => Ok(Opened::File(fd, stat)),
            fs::FileType::Directory => Ok(Opened::Directory(fd)),
            // Devices, pipes and sockets are nobody's to read over the network.
            _ => Err(NotOpened::Status(404)),
        }
    }

    /// Whether the directory still has a name: it is opened once, and a removed one stays empty.
    pub(crate) fn is_there(&self) -> bool {
        fs::fstat(&self.dir).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// What a name leads to, without opening it; nothing, where that is not beneath the root.
    pub(crate) fn stat_at(&self, below_root: &[u8]) -> Option<Stat> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = self.open_beneath(OsStr::from_bytes(below_root), flags, Wait::May).ok()?;
        fs::fstat(&fd).ok()
    }

    fn open_beneath(&self, name: &OsStr, flags: OFlags, wait: Wait) -> Result<OwnedFd, NotOpened> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let resolve = match wait {
            Wait::Never => beneath | ResolveFlags::CACHED,
            Wait::May => beneath,
        };
        // AGAIN: something was renamed under the walk, and the kernel wants it repeated.
        for _ in 0..100 {
            match fs::openat2(self.dir.as_fd(), name, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if wait == Wait::Never => return Err(NotOpened::NotKnown),
                // CACHED is newer (5.12) than the rest: an older kernel may always wait.
                Err(Errno::INVAL) if wait == Wait::Never => return Err(NotOpened::NotKnown),
                Err(Errno::INTR | Errno::AGAIN) => {}
                other => return other.map_err(not_opened),
            }
        }
        Err(NotOpened::Status(503))
    }
}

fn not_opened(errno: Errno) -> NotOpened {
    NotOpened::Status(match errno {
        Errno::ACCESS | Errno::PERM => 403,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => 503,
        Errno::IO => 500,
        // XDEV and LOOP: it leads out of the root, or nowhere. Which of them is nobody's business.
        _ => 404,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn status(opened: Result<Opened, NotOpened>) -> u16 {
        match opened {
            Ok(_) => 200,
            Err(NotOpened::Status(status)) => status,
            Err(NotOpened::NotKnown) => 0,
        }
    }

    #[test]
    fn links_are_followed_only_beneath_the_root() {
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
            assert_eq!(status(root.open_at(path.as_bytes(), Wait::May)), expected, "{path}");
        }
        assert!(matches!(root.open_at(b"", Wait::May), Ok(Opened::Directory(_))));
        let long = vec![b'x'; 5000];
        assert_eq!(status(root.open_at(&long, Wait::May)), 404);
    }

    #[test]
    fn only_regular_files_are_files() {
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status();
        assert!(made.unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        for name in ["pipe", "socket"] {
            assert_eq!(status(root.open_at(name.as_bytes(), Wait::May)), 404, "{name}");
        }
    }

    #[test]
    fn what_the_kernel_knows_is_opened_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "a").unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(status(root.open_at(b"a", Wait::May)), 200);
        assert_eq!(status(root.open_at(b"a", Wait::Never)), 200);
        assert_eq!(status(root.open_at(b"none", Wait::May)), 404);
        assert_eq!(status(root.open_at(b"none", Wait::Never)), 404, "known not to be there");
    }
}
