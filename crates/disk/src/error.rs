//! This crate's error: the operation, the path, the range, and the system call's error.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of a file operation.
pub type Result<T> = std::result::Result<T, Error>;

/// The operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Opening an existing file or directory.
    Open,
    /// Creating a file or directory.
    Create,
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// Reading a file's status.
    Status,
    /// Changing a file's length.
    Resize,
    /// Allocating blocks before they are written.
    Allocate,
    /// Syncing a file.
    Sync,
    /// Syncing a directory.
    SyncDir,
    /// Renaming a file.
    Rename,
    /// Giving a file another name.
    Link,
    /// Removing a file.
    Remove,
    /// Listing a directory.
    List,
    /// Locking a file or directory.
    Lock,
    /// Mapping a file into memory.
    Map,
    /// Deduplicating two files.
    Dedupe,
    /// Querying, filling or evicting the page cache.
    Cache,
    /// Reading through an io_uring.
    Ring,
    /// Mapping a file's extents.
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
            Self::Link => "create the hard link",
            Self::Remove => "remove",
            Self::List => "list",
            Self::Lock => "lock",
            Self::Map => "map",
            Self::Dedupe => "share the blocks of",
            Self::Cache => "manage the page cache of",
            Self::Ring => "read through",
            Self::Blocks => "map the extents of",
        }
    }
}

/// A failed operation on a file.
#[derive(Debug)]
pub struct Error {
    /// The operation.
    pub op: Op,
    /// The file or directory.
    pub path: PathBuf,
    /// The offset in the file in bytes, if the operation has one.
    pub offset: Option<u64>,
    /// The range length in bytes, if the operation has one.
    pub bytes: Option<u64>,
    /// The system call's error.
    pub source: io::Error,
}

impl Error {
    /// Returns an error for `op` on `path`.
    pub fn new(op: Op, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self {
            op,
            path: path.as_ref().to_path_buf(),
            offset: None,
            bytes: None,
            source: source.into(),
        }
    }

    /// Adds the offset and the length of the range in which the operation failed.
    #[must_use]
    pub fn at(mut self, offset: u64, bytes: usize) -> Self {
        self.offset = Some(offset);
        self.bytes = Some(bytes as u64);
        self
    }

    /// `true` if the disk is full, or the quota or the file size limit is exhausted. Unless the
    /// file size limit is the reason, the operation can succeed after space was freed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }

    /// `true` if the kernel, file system or device does not support the operation.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.source.kind() == io::ErrorKind::Unsupported
    }

    /// `true` if the operation needs two files of one file system, and they are of two.
    #[must_use]
    pub fn crosses_file_systems(&self) -> bool {
        self.source.kind() == io::ErrorKind::CrossesDevices
    }

    /// `true` if the file or directory does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// `true` if a file with that name already exists.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

impl fmt::Display for Error {
    // The source is not printed: callers that print the whole chain would print it twice.
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

/// Returns an error's text and its sources' texts in one line, the innermost source last. Omits a
/// source whose text the line already contains, since some errors include their source's text.
#[must_use]
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    append_sources(error.to_string(), error.source())
}

/// Appends the texts of an error's sources to `text`, as [`error_chain`] does.
#[must_use]
pub fn append_sources(
    mut text: String,
    mut source: Option<&(dyn std::error::Error + 'static)>,
) -> String {
    while let Some(error) = source {
        let link = error.to_string();
        if !text.contains(&link) {
            text = format!("{text}: {link}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Link(&'static str, Option<Box<Link>>);

    impl fmt::Display for Link {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl std::error::Error for Link {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.1.as_deref().map(|link| link as _)
        }
    }

    #[test]
    fn error_chain_contains_each_text_once() {
        for (links, expected) in [
            (&["a log"][..], "a log"),
            (&["a log", "cannot sync f", "no space"], "a log: cannot sync f: no space"),
            (
                &["a log: cannot sync f: no space", "cannot sync f", "no space"],
                "a log: cannot sync f: no space",
            ),
            (
                &["a log: cannot sync f", "cannot sync f", "no space"],
                "a log: cannot sync f: no space",
            ),
        ] {
            let link = |inner, text: &&'static str| Some(Box::new(Link(text, inner)));
            let error = links.iter().rev().fold(None, link).unwrap();
            assert_eq!(error_chain(&*error), expected, "{links:?}");
        }
    }
}
