//! What can go wrong with one file or directory. Nothing of it stops a walk or a run.

use std::path::PathBuf;
use std::sync::Arc;

/// Why one file or directory could not be listed or read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused: no permission, gone since it was listed, a fault of the medium.
    #[error("{}", message(.0))]
    Disk(Arc<haul_disk::Error>),
    /// Somebody made it shorter while it was read. Read it again once nobody writes to it.
    #[error(
        "{} became shorter while it was read: {opened_bytes} bytes when it was opened, now only \
         {end_bytes}; read it again once nobody writes to it",
        path.display()
    )]
    Shrunk {
        /// The file.
        path: PathBuf,
        /// How long it was when it was opened.
        opened_bytes: u64,
        /// Where it ended.
        end_bytes: u64,
    },
    /// Something else has its name now. List the directory again.
    #[error("{} is not a regular file any more: list its directory again", path.display())]
    NotAFile {
        /// What has the name.
        path: PathBuf,
    },
    /// The caller asked to stop before it was read.
    #[error("{} was not read: the run was stopped", path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
    /// Walk fewer roots at a time: a tree holds 4 GiB of names.
    #[error("{} is left out: the tree holds as many names as it can", path.display())]
    TooMany {
        /// The first that has no room.
        path: PathBuf,
    },
}

/// The error and its reason: it stands in the place of the error, so nobody else would tell it.
fn message(error: &haul_disk::Error) -> String {
    format!("{error}: {}", error.source)
}

impl Error {
    /// Whether the file or directory is not there (any more).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Disk(error) if error.is_not_found())
    }

    /// The file or directory it is about.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::Disk(error) => &error.path,
            Self::Shrunk { path, .. }
            | Self::NotAFile { path }
            | Self::Stopped { path }
            | Self::TooMany { path } => path,
        }
    }
}

impl From<haul_disk::Error> for Error {
    fn from(error: haul_disk::Error) -> Self {
        Self::Disk(Arc::new(error))
    }
}
