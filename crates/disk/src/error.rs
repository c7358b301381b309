//! The one error of this crate: what was tried, on what, where, and why the kernel refused.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this crate that talks to the kernel.
pub type Result<T> = std::result::Result<T, Error>;

/// What was being done when the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Opening an existing file or directory.
    Open,
    /// Creating a file or directory.
    Create,
    /// Reading bytes.
    Read,
    /// Handing bytes to the kernel.
    Write,
    /// Asking for the size, the status or the place of a file.
    Status,
    /// Changing the length of a file.
    Resize,
    /// Allocating blocks before they are written.
    Allocate,
    /// Waiting until a file is on the medium.
    Sync,
    /// Waiting until the names in a directory are on the medium.
    SyncDir,
    /// Giving a file another name.
    Rename,
    /// Removing a name.
    Remove,
    /// Listing a directory.
    List,
    /// Taking the lock of a directory.
    Lock,
    /// Mapping a file into memory.
    Map,
    /// Asking for, filling or emptying the page cache.
    Cache,
    /// Having many reads under way at once.
    Ring,
    /// Asking where on the device a file is.
    Blocks,
}

impl Op {
    fn words(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Create => "create",
            Self::Read => "read",
            Self::Write => "write",
            Self::Status => "get the status of",
            Self::Resize => "change the length of",
            Self::Allocate => "allocate space for",
            Self::Sync => "sync",
            Self::SyncDir => "sync the directory",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::List => "list",
            Self::Lock => "lock",
            Self::Map => "map",
            Self::Cache => "manage the page cache of",
            Self::Ring => "read by way of",
            Self::Blocks => "find the blocks of",
        }
    }
}

/// A refused operation on a file, with the kernel's reason kept as it came.
#[derive(Debug)]
pub struct Error {
    /// What was tried.
    pub op: Op,
    /// The file or directory it was tried on.
    pub path: PathBuf,
    /// Where in the file, where that means something.
    pub offset: Option<u64>,
    /// How many bytes were asked for, where that means something.
    pub bytes: Option<u64>,
    /// The kernel's reason.
    pub source: io::Error,
}

impl Error {
    /// An error of `op` on `path`.
    pub fn new(op: Op, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self {
            op,
            path: path.as_ref().to_path_buf(),
            offset: None,
            bytes: None,
            source: source.into(),
        }
    }

    /// The same error, saying at which bytes of the file it happened.
    #[must_use]
    pub fn at(mut self, offset: u64, bytes: usize) -> Self {
        self.offset = Some(offset);
        self.bytes = Some(bytes as u64);
        self
    }

    /// Whether the medium, the quota or the size limit is exhausted: freeing space helps.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }

    /// Whether kernel, file system or device do not offer this.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.source.kind() == io::ErrorKind::Unsupported
    }

    /// Whether the file or directory is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether a file of that name is already there.
    #[must_use]
    pub fn is_already_there(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

impl fmt::Display for Error {
    // The source is not repeated here: whoever prints the chain prints each link once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}", self.op.words(), self.path.display())?;
        match (self.offset, self.bytes) {
            (Some(offset), Some(bytes)) => write!(f, " ({bytes} bytes at offset {offset})"),
            (Some(offset), None) => write!(f, " (at offset {offset})"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
