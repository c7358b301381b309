//! Defines the reasons to skip a file.

use std::path::PathBuf;

use haul_disk::Error;

/// The reason why a file or a whole group was skipped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// A system call failed: for example, the file is missing or cannot be opened, or the action
    /// itself failed.
    #[error("{error}: {source}", error = .0, source = .0.source)]
    Disk(Box<Error>),
    /// The file was modified or replaced after the report was written.
    #[error("changed since the report")]
    Changed,
    /// The file was modified or replaced after its blocks were read.
    #[error("changed since it was read")]
    ChangedSinceRead,
    /// A file of the group was modified after [`Rules::modified_before`](crate::keep::Rules).
    #[error("a file of its group was modified later than {0}")]
    Modified(crate::report::Timestamp),
    /// The content differs from that of the file to keep.
    #[error("content differs from {path}", path = .0.display())]
    ContentDiffers(PathBuf),
    /// Another process has the file, or the file to keep, open for writing.
    #[error("{path} is being written by another process", path = .0.display())]
    BeingWritten(PathBuf),
    /// Another process holds a lock on the file or on the file to keep.
    #[error("{path} is locked by another process", path = .0.display())]
    Locked(PathBuf),
    /// The kernel grants no lease, and the file changed so recently that another change might not
    /// alter its timestamps.
    #[error("{path} changed less than 2 s ago: try again", path = .0.display())]
    RecentlyChanged(PathBuf),
    /// The path does not refer to a regular file.
    #[error("not a regular file")]
    NotRegularFile,
    /// The path refers to the same directory entry as the file to keep.
    #[error("another path to {path} itself", path = .0.display())]
    SameEntry(PathBuf),
    /// The file to keep is mounted on its name, so that it loses this name when it is unmounted.
    #[error(
        "{path} is a mount point, which shows a file stored under another name: process it where \
         it is stored",
        path = .0.display()
    )]
    MountPoint(PathBuf),
    /// The file is already a hard link to the file to keep.
    #[error("already a hard link to {path}", path = .0.display())]
    AlreadyLinked(PathBuf),
    /// The file to keep is on another file system, which hard links and reflinks cannot cross.
    #[error("{path} is on another file system: use symlink or move", path = .0.display())]
    OtherFileSystem(PathBuf),
    /// The file to keep has another owner, group or mode, which a link would have.
    #[error(
        "{path} has another owner, group or mode: use --ignore-permissions to link nevertheless",
        path = .0.display()
    )]
    OtherPermissions(PathBuf),
    /// The file to keep has another ACL, capability, label, extended attribute or flag, which a
    /// link would have.
    #[error(
        "{path} has other {what}: use --ignore-permissions to link nevertheless",
        path = .path.display()
    )]
    OtherAttributes {
        /// The file to keep.
        path: PathBuf,
        /// The first attribute that differs.
        what: String,
    },
    /// The destination of a move cannot have an attribute of the file.
    #[error(
        "its {what} cannot be set at the destination: {source}: use --ignore-permissions to move \
         nevertheless"
    )]
    AttributeLost {
        /// The attribute.
        what: String,
        /// Why it cannot be set.
        source: std::io::Error,
    },
    /// The file to keep has as many links as its file system permits. The file becomes one to
    /// keep: further files of the group are linked to it.
    #[error("{path} has as many links as its file system permits", path = .0.display())]
    LinksExhausted(PathBuf),
    /// The file is the file to keep, which another mount shows.
    #[error("the same file as {path}, seen through another mount", path = .0.display())]
    SameFile(PathBuf),
    /// The file may be the file to keep, which another mount shows.
    #[error(
        "may be the same file as {path}, seen through another mount: process it where the files \
         are stored",
        path = .0.display()
    )]
    MaybeSameFile(PathBuf),
    /// Another process has the file open, so it cannot be told from a file of another mount.
    #[error("{path} is open in another process: try again", path = .0.display())]
    InUse(PathBuf),
    /// The directory is append-only, so no name in it can be replaced.
    #[error("its directory is append-only")]
    AppendOnly,
    /// The link that was to replace the file could neither be renamed nor removed, and remains at
    /// this temporary path.
    #[error("{error}; the unused link {path} could not be removed", path = .path.display())]
    LeftBehind {
        /// The temporary path.
        path: PathBuf,
        /// The reason for which the file was not replaced.
        error: Box<Self>,
    },
    /// The file system does not support reflinks.
    #[error("the file system does not support reflinks: use link")]
    ReflinkUnsupported,
    /// The destination of a move exists.
    #[error("{path} already exists", path = .0.display())]
    DestinationExists(PathBuf),
    /// Another process replaced the file during the action. One of the two files could not be
    /// renamed back and remains at this temporary path.
    #[error(
        "replaced by another process during the action; the other file is now {path}",
        path = .0.display()
    )]
    Displaced(PathBuf),
    /// All files of the group that could be kept are missing or changed.
    #[error("no unchanged file of its group is left to keep")]
    NoFileToKeep,
    /// The transform failed, so the files cannot be compared.
    #[error("cannot compare: {0}")]
    Transform(String),
}

impl From<Error> for SkipReason {
    fn from(error: Error) -> Self {
        Self::Disk(Box::new(error))
    }
}

impl SkipReason {
    /// `true` if the reason is not a failure, because the goal of the action is achieved as far as
    /// it can be.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        matches!(self, Self::AlreadyLinked(_) | Self::LinksExhausted(_))
    }
}
