//! Implements [`Disk`] with system calls. `openat2` resolves names beneath a root directory and
//! rejects names that leave it.

mod file;
mod lock;
mod root;
mod sync_dir;

use std::ffi::CStr;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::disk::{Disk, File, Locked, Open};
use crate::error::{Error, Op, Result};
use file::OsFile;
use root::{Access, Root};
pub use sync_dir::sync_parent;

/// The flag `O_DSYNC`. rustix's constant `DSYNC` is not used, because on Linux it is `O_SYNC`: each
/// write then also waits until the timestamps are durable, which needs a journal commit.
const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());

/// A [`Disk`] with real files: a directory in the file system, the root, and all files below it.
///
/// Only this process's user may access the files and directories that it creates, whatever the
/// umask is; [`OsDisk::with_umask`] changes that.
#[derive(Debug)]
pub struct OsDisk {
    root: Root,
}

impl OsDisk {
    /// Opens the directory at `root`, which must exist.
    ///
    /// # Errors
    /// Fails if `root` does not exist, is not a directory, or permission is denied.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { root: Root::at(root.as_ref())? })
    }

    /// Creates files and directories that are as accessible as this process's umask permits: those
    /// that a user asks for by name.
    #[must_use]
    pub fn with_umask(mut self) -> Self {
        self.root.access = Access::Umask;
        self
    }

    /// Opens the directory at `root`, creating it and its parents if missing. Only this process's
    /// user may access it then; the umask applies to its parents.
    ///
    /// # Errors
    /// Fails like [`OsDisk::open`], or if a directory cannot be created.
    ///
    /// # Durability
    /// The names of created directories are durable when this returns.
    pub fn open_or_create(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        match Self::open(root) {
            Err(error) if error.is_not_found() => {}
            opened => return opened,
        }
        Self::create_path(root, Access::Owner)
    }

    fn create_path(root: &Path, access: Access) -> Result<Self> {
        let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let parent = match Self::open(parent) {
            Err(error) if error.is_not_found() => Self::create_path(parent, Access::Umask)?,
            opened => opened?,
        };
        match DirBuilder::new().mode(access.dir().bits()).create(root) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::new(Op::Create, root, source));
            }
            _ => parent.sync_dir("")?,
        }
        Self::open(root)
    }

    fn open_file(&self, name: &str, options: Open, create: bool) -> Result<Arc<dyn File>> {
        let (op, flags) = if create {
            (Op::Create, OFlags::CREATE | OFlags::EXCL)
        } else {
            (Op::Open, OFlags::empty())
        };
        // Opening a FIFO waits for its other end, unless NONBLOCK is set.
        let careful = if create { OFlags::empty() } else { OFlags::NONBLOCK | OFlags::NOCTTY };
        let fd = self.root.open(name, flags | careful | access(options), op)?;
        if !create {
            self.check_kind(&fd, name)?;
        }
        self.finish_open(fd, name, options, op)
    }

    /// Fails if the file is neither regular nor a device, and clears NONBLOCK: with it, requests of
    /// io_uring fail instead of waiting.
    fn check_kind(&self, fd: &OwnedFd, name: &str) -> Result<()> {
        let fail = |errno: Errno| self.root.fail(Op::Open, name)(errno);
        let status = fs::fstat(fd).map_err(fail)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile | FileType::BlockDevice | FileType::CharacterDevice => {
                fs::fcntl_setfl(fd, OFlags::empty()).map_err(fail)
            }
            FileType::Directory => Err(fail(Errno::ISDIR)),
            _ => {
                let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
                Err(Error::new(Op::Open, self.root.path(name), source))
            }
        }
    }

    /// Creates an unnamed file in the root, whose blocks are freed when the file is closed or the
    /// process ends, even if the process is killed. On file systems without `O_TMPFILE`, the method
    /// creates a named file and removes the name at once; a process killed in between leaves the
    /// file.
    ///
    /// # Errors
    /// Returns the system call's error.
    pub fn unnamed(&self, options: Open) -> Result<Arc<dyn File>> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let flags =
            OFlags::TMPFILE | access(Open { read_only: false, ..options }) | OFlags::CLOEXEC;
        match fs::openat(&self.root.dir, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => self.finish_open(fd, "", options, Op::Create),
            // ISDIR: a kernel without `O_TMPFILE` rejects opening a directory for writing.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                let name = format!(".haul-{}-{number}", std::process::id());
                let file = self.create(&name, options)?;
                self.remove(&name)?;
                Ok(file)
            }
            Err(errno) => Err(self.root.fail(Op::Create, "")(errno)),
        }
    }

    /// Opens `file`, which is open already, a second time with `options`. The file may be unnamed.
    ///
    /// # Errors
    /// Returns the system call's error; `Unsupported` for a simulated file.
    pub fn reopen(&self, file: &dyn File, options: Open) -> Result<Arc<dyn File>> {
        let fail = self.root.fail(Op::Open, "");
        let Some(fd) = file.descriptor() else { return Err(fail(Errno::OPNOTSUPP)) };
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let fd = fs::open(path, access(options) | OFlags::CLOEXEC, Mode::empty()).map_err(fail)?;
        self.finish_open(fd, "", options, Op::Open)
    }

    /// Applies the options that are not flags of `openat2`, and wraps the descriptor.
    fn finish_open(&self, fd: OwnedFd, name: &str, options: Open, op: Op) -> Result<Arc<dyn File>> {
        // O_DIRECT is set after the open. If it were passed to `openat2`, a file system without
        // direct I/O would create the file and then fail the call. EINVAL here means that the file
        // system has no direct I/O; the file then uses the page cache.
        if options.direct {
            match fs::fcntl_getfl(&fd).and_then(|set| fs::fcntl_setfl(&fd, set | OFlags::DIRECT)) {
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(self.root.fail(op, name)(errno)),
            }
        }
        if options.random {
            fs::fadvise(&fd, 0, None, fs::Advice::Random)
                .map_err(self.root.fail(Op::Cache, name))?;
        }
        Ok(Arc::new(OsFile { path: self.root.path(name), fd }))
    }
}

impl Disk for OsDisk {
    fn open(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        self.open_file(name, options, false)
    }

    fn create(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        self.open_file(name, options, true)
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        let (parent, last) = self.root.parent(name, Op::Create)?;
        match fs::mkdirat(&parent, last, self.root.access.dir()) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => {
                // The name exists: an existing directory is accepted, an existing file is an error.
                self.root.open(name, OFlags::DIRECTORY | OFlags::PATH, Op::Create).map(drop)
            }
            Err(errno) => Err(self.root.fail(Op::Create, name)(errno)),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from_dir, from_last) = self.root.parent(from, Op::Rename)?;
        let (to_dir, to_last) = self.root.parent(to, Op::Rename)?;
        fs::renameat(&from_dir, from_last, &to_dir, to_last)
            .map_err(self.root.fail(Op::Rename, from))
    }

    fn link(&self, file: &dyn File, name: &str) -> Result<()> {
        let fail = self.root.fail(Op::Link, name);
        let Some(fd) = file.descriptor() else { return Err(fail(Errno::OPNOTSUPP)) };
        let (parent, last) = self.root.parent(name, Op::Link)?;
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        fs::linkat(fs::CWD, path, &parent, last, AtFlags::SYMLINK_FOLLOW).map_err(fail)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.root.remove(name)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let fd = self.root.open(dir, OFlags::DIRECTORY | OFlags::RDONLY, Op::List)?;
        let mut names = Vec::new();
        for entry in fs::Dir::new(fd).map_err(self.root.fail(Op::List, dir))? {
            let entry = entry.map_err(self.root.fail(Op::List, dir))?;
            let name = utf8(entry.file_name()).map_err(self.root.fail(Op::List, dir))?;
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        let fd = self.root.open(dir, OFlags::DIRECTORY | OFlags::RDONLY, Op::SyncDir)?;
        sync_dir::sync(&fd).map_err(self.root.fail(Op::SyncDir, dir))
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Locked> {
        lock::lock(&self.root, name, holder)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        let status = fs::fstatvfs(&self.root.dir).map_err(self.root.fail(Op::Status, ""))?;
        Ok(Some(status.f_bavail.saturating_mul(status.f_frsize)))
    }

    fn root(&self) -> &Path {
        &self.root.path
    }
}

fn access(options: Open) -> OFlags {
    let access = if options.read_only { OFlags::RDONLY } else { OFlags::RDWR };
    if options.dsync { access | DSYNC } else { access }
}

fn utf8(name: &CStr) -> std::result::Result<&str, Errno> {
    name.to_str().map_err(|_invalid| Errno::ILSEQ)
}
