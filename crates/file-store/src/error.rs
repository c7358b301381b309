//! What can go wrong with a store, told by what the caller should do about it.

use std::path::PathBuf;

use haul_append_log as log;

/// The result of every operation of a store.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Create the bucket first, or correct its name.
    #[error("there is no bucket \"{bucket}\"")]
    NoSuchBucket {
        /// The name asked for.
        bucket: String,
    },
    /// Use the bucket that is there, or another name.
    #[error("the bucket \"{bucket}\" is already there")]
    BucketExists {
        /// The name asked for.
        bucket: String,
    },
    /// Delete its objects and abort its uploads first.
    #[error("the bucket \"{bucket}\" is not empty")]
    BucketNotEmpty {
        /// The name asked for.
        bucket: String,
    },
    /// Choose a name by the rules in `why`.
    #[error("\"{bucket}\" cannot be the name of a bucket: {why}")]
    InvalidBucketName {
        /// The name asked for.
        bucket: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// Choose a key by the rules in `why`.
    #[error("a key cannot be like this: {why}")]
    InvalidKey {
        /// The rule it breaks.
        why: &'static str,
    },
    /// The caller's mistake; correct the call.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it.
        what: String,
    },
    /// Nothing is stored under this key.
    #[error("there is no object \"{key}\" in bucket \"{bucket}\"")]
    NoSuchKey {
        /// The bucket looked in.
        bucket: String,
        /// The key looked for.
        key: String,
    },
    /// Start the upload anew: it was completed, aborted, or never was.
    #[error("there is no upload \"{id}\"")]
    NoSuchUpload {
        /// The upload asked for.
        id: String,
    },
    /// Upload the part again, or name it as it was acknowledged.
    #[error("part {number} of the upload cannot be used: {why}")]
    InvalidPart {
        /// The number of the part.
        number: u16,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Read the object again, then decide anew: it is not what the caller supposed.
    #[error("the object is not in the state the request asks for")]
    PreconditionFailed,
    /// Free space: delete objects, compact, or enlarge the disk. Nothing was stored.
    #[error("the disk is full")]
    Full {
        /// What was refused.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Restore these bytes from elsewhere: what the medium returned is not what was written.
    #[error("damaged bytes in {} at offset {offset}: {what}", file.display())]
    Damaged {
        /// The file holding them.
        file: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What does not fit.
        what: String,
    },
    /// Wait for that process to end, or talk to it instead.
    #[error("{} is in use by {holder}", dir.display())]
    Locked {
        /// The store's directory.
        dir: PathBuf,
        /// What the holder says of itself.
        holder: String,
    },
    /// Name another directory: this one is not a store, or not of a version known here.
    #[error("{} cannot be used as a store: {why}", dir.display())]
    NotAStore {
        /// The directory.
        dir: PathBuf,
        /// Why not.
        why: String,
    },
    /// The log below refused or failed; after a failed sync, close the store and open it again.
    #[error("the log of the store failed")]
    Log(#[source] log::Error),
    /// The kernel refused.
    #[error(transparent)]
    Disk(haul_disk::Error),
}

impl From<haul_disk::Error> for Error {
    fn from(error: haul_disk::Error) -> Self {
        if error.is_full() { Self::Full { source: Box::new(error) } } else { Self::Disk(error) }
    }
}

impl From<log::Error> for Error {
    fn from(error: log::Error) -> Self {
        match error {
            log::Error::Full { .. } => Self::Full { source: Box::new(error) },
            log::Error::Damaged { file, offset, what } => Self::Damaged { file, offset, what },
            log::Error::Disk(error) => error.into(),
            other => Self::Log(other),
        }
    }
}
