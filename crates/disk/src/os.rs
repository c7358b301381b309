//! The kernel's files: names through `openat2` beneath a root, bytes by positional calls.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{self, AtFlags, FallocateFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::{Error, Op, Result};
use crate::file::{Allocation, Disk, Durability, File, Open};

/// `FALLOC_FL_WRITE_ZEROES`, newer than the headers this is built with (Linux 6.17).
const WRITE_ZEROES: FallocateFlags = FallocateFlags::from_bits_retain(0x80);

/// `O_DSYNC`. What rustix calls `DSYNC` is `O_SYNC` on Linux, whose every write also waits for the
/// times of the file, so for a commit of the journal.
const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());

/// A directory of the real file system and all below it.
#[derive(Debug)]
pub struct OsDisk {
    root: PathBuf,
    dir: OwnedFd,
}

impl OsDisk {
    /// The directory at `root`, which must be there.
    ///
    /// # Errors
    /// When it is not there, not a directory, or not ours to open.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref().to_path_buf();
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = fs::open(&root, flags, Mode::empty())
            .map_err(|errno| Error::new(Op::Open, &root, errno))?;
        Ok(Self { root, dir })
    }

    /// The directory at `root`, made with its parents where it is not there.
    ///
    /// # Errors
    /// As [`OsDisk::open`], and when a directory cannot be made.
    ///
    /// # Durability
    /// The names of the directories made are on the medium when this returns.
    pub fn open_or_create(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        match Self::open(root) {
            Err(error) if error.is_not_found() => {}
            opened => return opened,
        }
        let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = Self::open_or_create(parent.unwrap_or(Path::new(".")))?;
        match std::fs::create_dir(root) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::new(Op::Create, root, source));
            }
            _ => parent.sync_dir("")?,
        }
        Self::open(root)
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }

    fn fail(&self, op: Op, name: &str) -> impl FnOnce(Errno) -> Error {
        let path = self.path(name);
        move |errno| Error::new(op, path, errno)
    }

    fn open_at(&self, name: &str, flags: OFlags, op: Op) -> Result<OwnedFd> {
        let mode = if flags.contains(OFlags::CREATE) { 0o666 } else { 0 };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let name_or_self = if name.is_empty() { "." } else { name };
        let flags = flags | OFlags::CLOEXEC;
        loop {
            match fs::openat2(&self.dir, name_or_self, flags, Mode::from_raw_mode(mode), beneath) {
                // AGAIN: something was renamed under the walk, and the kernel wants it repeated.
                Err(Errno::INTR | Errno::AGAIN) => {}
                other => return other.map_err(self.fail(op, name)),
            }
        }
    }

    fn open_file(&self, name: &str, how: Open, create: bool) -> Result<Arc<dyn File>> {
        let (op, flags) = if create {
            (Op::Create, OFlags::CREATE | OFlags::EXCL)
        } else {
            (Op::Open, OFlags::empty())
        };
        let fd = self.open_at(name, flags | access(how), op)?;
        self.adjusted(fd, name, how, op)
    }

    /// A file in the root without a name: its blocks are free when it is closed, however the
    /// process ends. Where the file system makes no such files, it has a name for a moment.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn unnamed(&self, how: Open) -> Result<Arc<dyn File>> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let flags = OFlags::TMPFILE | access(Open { read_only: false, ..how }) | OFlags::CLOEXEC;
        match fs::openat(&self.dir, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => self.adjusted(fd, "", how, Op::Create),
            // ISDIR: it does not even know the flag.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                let name = format!(".haul-{}-{number}", std::process::id());
                let file = self.create(&name, how)?;
                self.remove(&name)?;
                Ok(file)
            }
            Err(errno) => Err(self.fail(Op::Create, "")(errno)),
        }
    }

    /// A file of this disk, with or without a name, opened once more in another way.
    ///
    /// # Errors
    /// As the kernel says; `Unsupported` for a simulated file.
    pub fn reopen(&self, file: &dyn File, how: Open) -> Result<Arc<dyn File>> {
        let fail = self.fail(Op::Open, "");
        let Some(fd) = file.descriptor() else { return Err(fail(Errno::OPNOTSUPP)) };
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let fd = fs::open(path, access(how) | OFlags::CLOEXEC, Mode::empty()).map_err(fail)?;
        self.adjusted(fd, "", how, Op::Open)
    }

    /// What cannot be asked for while a file is opened.
    fn adjusted(&self, fd: OwnedFd, name: &str, how: Open, op: Op) -> Result<Arc<dyn File>> {
        // A file system without O_DIRECT would have created the name before refusing the flag,
        // so the flag is set on the open descriptor, where a refusal costs nothing.
        if how.direct {
            match fs::fcntl_getfl(&fd).and_then(|set| fs::fcntl_setfl(&fd, set | OFlags::DIRECT)) {
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(self.fail(op, name)(errno)),
            }
        }
        if how.random {
            fs::fadvise(&fd, 0, None, fs::Advice::Random).map_err(self.fail(Op::Cache, name))?;
        }
        Ok(Arc::new(OsFile { path: self.path(name), fd }))
    }

    /// A descriptor of the parent of `name`, beneath the root, and the last part of the name.
    fn parent<'a>(&self, name: &'a str, op: Op) -> Result<(OwnedFd, &'a str)> {
        let (dir, last) = name.rsplit_once('/').unwrap_or(("", name));
        let fd = self.open_at(dir, OFlags::DIRECTORY | OFlags::PATH, op)?;
        Ok((fd, last))
    }
}

impl Disk for OsDisk {
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.open_file(name, how, false)
    }

    fn create(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.open_file(name, how, true)
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        let (parent, last) = self.parent(name, Op::Create)?;
        match fs::mkdirat(&parent, last, Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => {
                // Only a directory is as good as a new one.
                self.open_at(name, OFlags::DIRECTORY | OFlags::PATH, Op::Create).map(drop)
            }
            Err(errno) => Err(self.fail(Op::Create, name)(errno)),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from_dir, from_last) = self.parent(from, Op::Rename)?;
        let (to_dir, to_last) = self.parent(to, Op::Rename)?;
        fs::renameat(&from_dir, from_last, &to_dir, to_last).map_err(self.fail(Op::Rename, from))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let (parent, last) = self.parent(name, Op::Remove)?;
        fs::unlinkat(&parent, last, AtFlags::empty()).map_err(self.fail(Op::Remove, name))
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let fd = self.open_at(dir, OFlags::DIRECTORY | OFlags::RDONLY, Op::List)?;
        let mut names = Vec::new();
        for entry in fs::Dir::new(fd).map_err(self.fail(Op::List, dir))? {
            let entry = entry.map_err(self.fail(Op::List, dir))?;
            let name = utf8(entry.file_name()).map_err(self.fail(Op::List, dir))?;
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        let fd = self.open_at(dir, OFlags::DIRECTORY | OFlags::RDONLY, Op::SyncDir)?;
        fs::fsync(&fd).map_err(self.fail(Op::SyncDir, dir))
    }

    fn root(&self) -> &Path {
        &self.root
    }
}

fn access(how: Open) -> OFlags {
    let access = if how.read_only { OFlags::RDONLY } else { OFlags::RDWR };
    if how.dsync { access | DSYNC } else { access }
}

fn utf8(name: &CStr) -> std::result::Result<&str, Errno> {
    name.to_str().map_err(|_not_ours| Errno::ILSEQ)
}

/// One open file of the kernel.
#[derive(Debug)]
struct OsFile {
    path: PathBuf,
    fd: OwnedFd,
}

impl OsFile {
    fn fail(&self, op: Op) -> impl FnOnce(Errno) -> Error {
        move |errno| Error::new(op, &self.path, errno)
    }
}

/// Repeats a call that a signal interrupted before it did anything.
fn uninterrupted<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

impl File for OsFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = buffer.len();
        uninterrupted(|| rustix::io::pread(&self.fd, &mut *buffer, offset))
            .map_err(|errno| self.fail(Op::Read)(errno).at(offset, bytes))
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        uninterrupted(|| rustix::io::pwrite(&self.fd, bytes, offset))
            .map_err(|errno| self.fail(Op::Write)(errno).at(offset, bytes.len()))
    }

    fn bytes(&self) -> Result<u64> {
        let status = fs::fstat(&self.fd).map_err(self.fail(Op::Status))?;
        u64::try_from(status.st_size)
            .map_err(|source| Error::new(Op::Status, &self.path, io::Error::other(source)))
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        uninterrupted(|| fs::ftruncate(&self.fd, bytes)).map_err(self.fail(Op::Resize))
    }

    fn allocate(&self, how: Allocation, offset: u64, bytes: u64) -> Result<()> {
        let flags = match how {
            Allocation::Reserve => FallocateFlags::empty(),
            Allocation::ZeroRange => FallocateFlags::ZERO_RANGE,
            Allocation::WriteZeroes => WRITE_ZEROES,
        };
        uninterrupted(|| fs::fallocate(&self.fd, flags, offset, bytes)).map_err(|errno| {
            let mut error = self.fail(Op::Allocate)(errno);
            error.offset = Some(offset);
            error.bytes = Some(bytes);
            error
        })
    }

    fn sync(&self, what: Durability) -> Result<()> {
        // Not repeated when interrupted: a sync that did not succeed is final.
        match what {
            Durability::Data => fs::fdatasync(&self.fd),
            Durability::Everything => fs::fsync(&self.fd),
        }
        .map_err(self.fail(Op::Sync))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }
}
