//! Why a file was left as it was.

use std::path::PathBuf;

use haul_disk::Error;

/// Why nothing was done about a file, or about a whole group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Left {
    /// It is not there, cannot be opened, or the kernel refused what was to be done.
    #[error("{error}: {source}", error = .0, source = .0.source)]
    Disk(Box<Error>),
    /// It is not the file it was when the report was made.
    #[error("it changed since the report was made")]
    Changed,
    /// It was modified after the moment up to which files may be touched.
    #[error("a file of its group was modified later than {0}")]
    Modified(crate::report::Moment),
    /// Its bytes are not those of the file that would be kept.
    #[error("its content differs from that of {path}", path = .0.display())]
    Differs(PathBuf),
    /// Somebody has it, or the file that would be kept, open for writing.
    #[error("{path} is being written to", path = .0.display())]
    InUse(PathBuf),
    /// Somebody holds a lock on it, or on the file that would be kept.
    #[error("{path} is locked by another process", path = .0.display())]
    Locked(PathBuf),
    /// It changed a moment ago, and nothing would tell if it changed again.
    #[error("{path} changed a moment ago: try again", path = .0.display())]
    JustChanged(PathBuf),
    /// It is no regular file, such as a symbolic link.
    #[error("it is no regular file")]
    NotAFile,
    /// It is the very file that would be kept, reached on another way.
    #[error("it is {path} itself, on another way", path = .0.display())]
    SameName(PathBuf),
    /// It shares its blocks, or is a link, already.
    #[error("there is nothing to do: it is a link to {path}", path = .0.display())]
    Already(PathBuf),
    /// A link cannot lead from one file system to another.
    #[error("{path} is on another file system: use symlink or move", path = .0.display())]
    OtherFileSystem(PathBuf),
    /// The file system shares no blocks.
    #[error("the file system cannot share blocks: use link")]
    CannotShare,
    /// Something has the name it would be moved to.
    #[error("{path} is there already", path = .0.display())]
    Taken(PathBuf),
    /// Something else took its name while it was looked at, and that stands under another name.
    #[error("another file took its name meanwhile; that one is {path} now", path = .0.display())]
    Displaced(PathBuf),
    /// No file of its group can be kept: all that are left changed or went.
    #[error("no other file of its group is there any more")]
    NothingToKeep,
    /// The transform failed, so that it cannot be compared.
    #[error("it cannot be compared: {0}")]
    Transform(String),
}

impl From<Error> for Left {
    fn from(error: Error) -> Self {
        Self::Disk(Box::new(error))
    }
}

impl Left {
    /// Whether it is no failure: what was wanted is so already.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        matches!(self, Self::Already(_))
    }
}
