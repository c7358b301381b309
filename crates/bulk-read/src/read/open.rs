//! Opens files relative to their directories, without blocking on pipes or devices.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use haul_disk::Op;
use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::request::FileStatus;
use crate::error::Error;
use crate::open::open_dir;
use crate::status::status;
use crate::tree::{DirId, FileId, Tree};

/// The maximum number of directories that a worker keeps open.
const DIRS: usize = 16;

/// An open file.
#[derive(Debug, Clone)]
pub(super) struct OpenFile {
    pub(super) fd: Rc<OwnedFd>,
    pub(super) status: FileStatus,
    /// `true` while the advice `POSIX_FADV_RANDOM` is in effect.
    is_random: Rc<Cell<bool>>,
}

impl OpenFile {
    pub(super) fn new(fd: OwnedFd, status: FileStatus) -> Self {
        Self { fd: Rc::new(fd), status, is_random: Rc::default() }
    }

    /// Records the readahead advice of the file. Returns `true` if it differs from the previous
    /// advice.
    pub(super) fn set_random(&self, is_random: bool) -> bool {
        self.is_random.replace(is_random) != is_random
    }
}

/// An opener of files relative to their directories, which keeps recently used directories open.
#[derive(Debug)]
pub(super) struct Opener<'a> {
    tree: &'a Tree,
    dirs: [Option<(DirId, OwnedFd)>; DIRS],
    path: Vec<u8>,
    /// The last directory with a file for which `O_NOATIME` was rejected, because the kernel allows
    /// it only to the owner of the file. Other files of this directory are opened without it.
    noatime_refused: Option<DirId>,
}

impl<'a> Opener<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        Self { tree, dirs: [const { None }; DIRS], path: Vec::new(), noatime_refused: None }
    }

    /// Opens a file and gets its status.
    pub(super) fn open(&mut self, file: FileId) -> Result<(OwnedFd, FileStatus), Error> {
        let fd = self.open_fd(file).map_err(|errno| match errno {
            // A symbolic link or a socket replaced the listed file.
            Errno::LOOP | Errno::NXIO => Error::NotRegularFile { path: self.tree.path(file) },
            errno => self.failed(file, Op::Open, errno),
        })?;
        let status = status(&fd).map_err(|errno| self.failed(file, Op::Status, errno))?;
        if status.kind != FileType::RegularFile {
            return Err(Error::NotRegularFile { path: self.tree.path(file) });
        }
        let meta = status.meta;
        let opened = FileStatus {
            device: meta.device,
            inode: meta.inode,
            bytes: meta.bytes,
            modified_ns: meta.modified_ns,
            changed_ns: meta.changed_ns,
            links: meta.links,
            allocated_bytes: status.allocated_bytes,
        };
        Ok((fd, opened))
    }

    /// Opens a file and switches it to `O_DIRECT`; returns `None` if that is not supported.
    pub(super) fn open_direct(&mut self, file: FileId) -> Option<(OwnedFd, FileStatus)> {
        let (fd, opened) = self.open(file).ok()?;
        fs::fcntl_setfl(&fd, OFlags::DIRECT).ok()?;
        Some((fd, opened))
    }

    fn open_fd(&mut self, file: FileId) -> Result<OwnedFd, Errno> {
        let dir_id = self.tree.dir(file);
        // A symbolic link is followed only if the walk listed the file as a link.
        let link = if self.tree.is_link(file) { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY | link;
        let is_refused = self.noatime_refused == Some(dir_id);
        let tree = self.tree;
        let dir = self.dir(dir_id)?;
        let name = tree.name(file);
        if !is_refused {
            match fs::openat(dir, name, flags | OFlags::NOATIME, Mode::empty()) {
                Err(Errno::PERM) => {}
                opened => return opened,
            }
        }
        let opened = fs::openat(dir, name, flags, Mode::empty())?;
        self.noatime_refused = Some(dir_id);
        Ok(opened)
    }

    fn dir(&mut self, id: DirId) -> Result<&OwnedFd, Errno> {
        let slot = id.0 as usize % DIRS;
        let is_open = self.dirs[slot].as_ref().is_some_and(|(open, _)| *open == id);
        if !is_open {
            self.tree.dir_path_into(id, &mut self.path);
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = open_dir(&self.path, flags)?;
            self.dirs[slot] = Some((id, dir));
        }
        self.dirs[slot].as_ref().map(|(_, dir)| dir).ok_or(Errno::BADF)
    }

    pub(super) fn failed(&self, file: FileId, op: Op, errno: Errno) -> Error {
        haul_disk::Error::new(op, self.tree.path(file), errno).into()
    }
}
