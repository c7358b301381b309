//! Resolves names beneath a root directory by `openat2`, which rejects names that leave it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::{Error, Op, Result};

/// Who may access the files and directories that are created below a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// This process's user: the files hold others' data, or what a reader could misuse.
    Owner,
    /// Whomever this process's umask permits.
    Umask,
}

impl Access {
    fn file(self) -> Mode {
        Mode::from_raw_mode(if self == Self::Owner { 0o600 } else { 0o666 })
    }

    pub(super) fn dir(self) -> Mode {
        Mode::from_raw_mode(if self == Self::Owner { 0o700 } else { 0o777 })
    }
}

/// The open root directory, beneath which all names are resolved.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) dir: OwnedFd,
    pub(super) access: Access,
}

impl Root {
    pub(super) fn at(path: &Path) -> Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = fs::open(path, flags, Mode::empty())
            .map_err(|errno| Error::new(Op::Open, path, errno))?;
        Ok(Self { path: path.to_path_buf(), dir, access: Access::Owner })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.path.clone() } else { self.path.join(name) }
    }

    pub(super) fn fail(&self, op: Op, name: &str) -> impl FnOnce(Errno) -> Error {
        let path = self.path(name);
        move |errno| Error::new(op, path, errno)
    }

    /// Opens the file or directory `name` beneath the root; "" is the root itself.
    pub(super) fn open(&self, name: &str, flags: OFlags, op: Op) -> Result<OwnedFd> {
        let is_new = flags.contains(OFlags::CREATE);
        let mode = if is_new { self.access.file() } else { Mode::empty() };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let name_or_self = if name.is_empty() { "." } else { name };
        let flags = flags | OFlags::CLOEXEC;
        loop {
            match fs::openat2(&self.dir, name_or_self, flags, mode, beneath) {
                // AGAIN: a concurrent rename interfered with the path resolution, so the call is
                // repeated.
                Err(Errno::INTR | Errno::AGAIN) => {}
                other => return other.map_err(self.fail(op, name)),
            }
        }
    }

    /// Returns a descriptor for the parent directory of `name`, beneath the root, and the last
    /// component of `name`.
    pub(super) fn parent<'a>(&self, name: &'a str, op: Op) -> Result<(OwnedFd, &'a str)> {
        let (dir, last) = name.rsplit_once('/').unwrap_or(("", name));
        let fd = self.open(dir, OFlags::DIRECTORY | OFlags::PATH, op)?;
        Ok((fd, last))
    }

    pub(super) fn remove(&self, name: &str) -> Result<()> {
        let (parent, last) = self.parent(name, Op::Remove)?;
        fs::unlinkat(&parent, last, AtFlags::empty()).map_err(self.fail(Op::Remove, name))
    }
}
