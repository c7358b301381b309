//! Opening files by their directories, without ever waiting for one.

use std::os::fd::OwnedFd;

use haul_disk::Op;
use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Opened;
use crate::error::Error;
use crate::open::open_dir;
use crate::status::status;
use crate::tree::{DirId, FileId, Tree};

/// How many directories a worker keeps open.
const DIRS: usize = 16;

/// Opens files; keeps the directories it needed last.
#[derive(Debug)]
pub(super) struct Opener<'a> {
    tree: &'a Tree,
    dirs: [Option<(DirId, OwnedFd)>; DIRS],
    path: Vec<u8>,
    /// The owner of a file alone may read it without a trace; where that was refused, it is not
    /// tried again in the same directory.
    traceless: Option<DirId>,
}

impl<'a> Opener<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        Self { tree, dirs: [const { None }; DIRS], path: Vec::new(), traceless: None }
    }

    /// Opens a file and asks the kernel what it is.
    pub(super) fn open(&mut self, file: FileId) -> Result<(OwnedFd, Opened), Error> {
        let fd = self.open_fd(file).map_err(|errno| match errno {
            // A symbolic link, or a socket, that was a file when it was listed.
            Errno::LOOP | Errno::NXIO => Error::NotAFile { path: self.tree.path(file) },
            errno => self.failed(file, Op::Open, errno),
        })?;
        let status = status(&fd).map_err(|errno| self.failed(file, Op::Status, errno))?;
        if status.kind != FileType::RegularFile {
            return Err(Error::NotAFile { path: self.tree.path(file) });
        }
        let meta = status.meta;
        let opened = Opened {
            device: meta.device,
            inode: meta.inode,
            bytes: meta.bytes,
            modified_ns: meta.modified_ns,
            changed_ns: meta.changed_ns,
            links: meta.links,
        };
        Ok((fd, opened))
    }

    fn open_fd(&mut self, file: FileId) -> Result<OwnedFd, Errno> {
        let dir_id = self.tree.dir(file);
        // Links that were listed as such are followed; a file that became one is not.
        let link = if self.tree.is_link(file) { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY | link;
        let is_refused = self.traceless == Some(dir_id);
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
        self.traceless = Some(dir_id);
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
