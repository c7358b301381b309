//! Errors of a store, classified by what the caller should do about them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use haul_append_log as log;
use haul_disk::error_chain;

use crate::object::VersionId;

/// The result of every operation of a store.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a store operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bucket does not exist: create it, or correct its name.
    #[error("bucket \"{bucket}\" does not exist")]
    NoSuchBucket {
        /// The bucket's name.
        bucket: String,
    },
    /// The bucket exists: use it, or choose another name.
    #[error("bucket \"{bucket}\" already exists")]
    BucketExists {
        /// The bucket's name.
        bucket: String,
    },
    /// The bucket is not empty: delete its objects and abort its uploads first.
    #[error("bucket \"{bucket}\" is not empty")]
    BucketNotEmpty {
        /// The bucket's name.
        bucket: String,
    },
    /// The name violates the rule in `why`: choose another.
    #[error("invalid bucket name \"{bucket}\": {why}")]
    InvalidBucketName {
        /// The bucket's name.
        bucket: String,
        /// The rule it violates.
        why: &'static str,
    },
    /// The key violates the rule in `why`: choose another.
    #[error("invalid key: {why}")]
    InvalidKey {
        /// The rule it violates.
        why: &'static str,
    },
    /// An argument or option is invalid: correct the call.
    #[error("{what}")]
    Invalid {
        /// The rule it violates.
        what: String,
    },
    /// The object does not exist.
    #[error("object \"{key}\" does not exist in bucket \"{bucket}\"")]
    NoSuchKey {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
    },
    /// The version does not exist.
    #[error("version {version} of object \"{key}\" does not exist in bucket \"{bucket}\"")]
    NoSuchVersion {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
        /// The version.
        version: VersionId,
    },
    /// The version is a delete marker, which has no content.
    #[error("version {version} of object \"{key}\" in bucket \"{bucket}\" is a delete marker")]
    IsDeleteMarker {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
        /// The version.
        version: VersionId,
        /// The time at which it was created.
        created: SystemTime,
    },
    /// A lock protects the version, or its retention can only be extended: wait until the retention
    /// ends, bypass the governance mode, or lift the legal hold.
    #[error("version {version} of object \"{key}\" in bucket \"{bucket}\" is locked: {why}")]
    Locked {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
        /// The version.
        version: VersionId,
        /// The reason: a legal hold, or the retention mode and its end.
        why: String,
    },
    /// The bucket has no object lock: enable it first.
    #[error("object lock is not enabled in bucket \"{bucket}\"")]
    NoObjectLock {
        /// The bucket.
        bucket: String,
    },
    /// The bucket's versioning or object-lock state does not allow the operation.
    #[error("bucket \"{bucket}\" is not in the necessary state: {why}")]
    InvalidBucketState {
        /// The bucket.
        bucket: String,
        /// The rule that the operation violates.
        why: &'static str,
    },
    /// The upload was completed, aborted or never created: start a new one.
    #[error("upload \"{id}\" does not exist")]
    NoSuchUpload {
        /// The upload's ID.
        id: String,
    },
    /// The part does not match its acknowledgement: upload it again, or correct the request.
    #[error("invalid part {number} of the upload: {why}")]
    InvalidPart {
        /// The part's number.
        number: u16,
        /// The rule it violates.
        why: &'static str,
    },
    /// The store is open for reading only: write through the process that owns it.
    #[error("the store is read-only")]
    ReadOnly,
    /// The object is not in the expected state: read it again, then decide.
    #[error("precondition failed: the object is not in the expected state")]
    PreconditionFailed,
    /// The disk is full, and nothing was stored: delete objects, compact, or enlarge the disk.
    #[error("the disk is full: {}", error_chain(&**source))]
    Full {
        /// The failed operation.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A quota does not allow the change, and nothing was stored: delete objects and abort uploads,
    /// or raise the quota.
    #[error(transparent)]
    QuotaExceeded(QuotaExceeded),
    /// The disk is full of dead bytes that compaction is still freeing, and nothing was stored:
    /// retry later.
    #[error("the disk is full, and compaction did not free enough space within {waited:?}")]
    Stalled {
        /// The time the call waited.
        waited: std::time::Duration,
    },
    /// The file system rejects new files for a reason other than lack of space, and nothing was
    /// stored: fix the cause, then retry. The store retries at most once a second.
    #[error("{}", error_chain(&**source))]
    Refused {
        /// The last attempt's error.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// The change is durable on this machine and visible, but the store's copy has not confirmed
    /// it, so the loss of this machine may undo it: retry later. The retry finds the change, such
    /// as a bucket that exists. If the copy confirms a later change, this confirms the earlier one,
    /// too, because the copy follows the log.
    #[error(
        "the change is durable on this machine, but not confirmed in the copy of the store: {what}"
    )]
    NotReplicated {
        /// The reason, from [`crate::Replication::wait`].
        what: String,
    },
    /// The bytes read fail their checksum: restore the object from a backup.
    #[error("damaged bytes in {} at offset {offset}: {what}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The offset in the file.
        offset: u64,
        /// The check that failed.
        what: String,
    },
    /// Another process has the store open: wait until it closes the store, or use it through that
    /// process.
    #[error("{} is in use by {holder}", dir.display())]
    InUse {
        /// The store's directory.
        dir: PathBuf,
        /// A description of that process, with its id if known.
        holder: String,
    },
    /// The directory is not a store, or a store of an unsupported version: choose another
    /// directory.
    #[error("{} cannot be used as a store: {why}", dir.display())]
    NotAStore {
        /// The directory.
        dir: PathBuf,
        /// The reason.
        why: String,
    },
    /// The disk that has, or would have, the object is missing: attach it and open the pool again.
    /// Only a pool of several stores returns this error.
    #[error("the member {} of the pool is missing: {why}", dir.display())]
    MemberMissing {
        /// The directory of the missing member.
        dir: PathBuf,
        /// The reason why it cannot be used.
        why: String,
    },
    /// The disk that has, or would have, the object does not respond: repeat the call later. Only a
    /// pool of several stores returns this error.
    #[error(
        "the member {} of the pool does not respond: {calls} calls wait, the first since {} s",
        dir.display(), longest.as_secs()
    )]
    MemberStalled {
        /// The directory of the member.
        dir: PathBuf,
        /// The number of calls that have waited for more than two seconds.
        calls: usize,
        /// The time that the longest one has waited.
        longest: std::time::Duration,
    },
    /// The store's log failed: after a failed sync, close and reopen the store.
    #[error("the log of the store failed: {}", error_chain(.0))]
    Log(#[source] log::Error),
    /// The store accepts no changes after an earlier failure: close and reopen it.
    #[error("{what}, and the store accepts no changes until it is opened again")]
    Stopped {
        /// The failure.
        what: &'static str,
    },
    /// A system call failed.
    #[error(transparent)]
    Disk(haul_disk::Error),
}

/// A quota that does not allow a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    /// The quota of the bucket.
    #[error(
        "the quota of the bucket \"{bucket}\" is exceeded: it has {used} of at most {limit} {unit}, \
         including writes in progress"
    )]
    Bucket {
        /// The bucket's name.
        bucket: String,
        /// The unit of the exceeded limit: bytes or objects.
        unit: &'static str,
        /// The limit.
        limit: u64,
        /// The usage that counts against the limit.
        used: u64,
    },
    /// The quota of the user that owns the bucket. The message does not disclose what the user's
    /// other buckets contain.
    #[error("the quota of the user \"{owner}\", who owns the bucket, is exceeded: its {unit}")]
    Owner {
        /// The user's name.
        owner: String,
        /// The unit of the exceeded limit: bytes or objects.
        unit: &'static str,
    },
}

impl Error {
    /// Returns `true` if a change was rejected because something exists, or does not exist.
    pub(crate) fn is_about_existence(&self) -> bool {
        matches!(
            self,
            Self::NoSuchBucket { .. }
                | Self::BucketExists { .. }
                | Self::BucketNotEmpty { .. }
                | Self::NoSuchKey { .. }
                | Self::NoSuchVersion { .. }
                | Self::NoSuchUpload { .. }
        )
    }
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
            log::Error::NoSegment { source } => Self::Refused { source },
            log::Error::Damaged { file, offset, what } => Self::Damaged { file, offset, what },
            log::Error::InUse { dir, holder } => Self::InUse { dir, holder },
            log::Error::Disk(error) => error.into(),
            other => Self::Log(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_disk::{Error as DiskError, Op};

    use super::*;

    #[test]
    fn every_error_names_its_innermost_cause() {
        let disk = |cause: std::io::Error| DiskError::new(Op::Sync, "/store/1", cause);
        let other = || disk(std::io::Error::other("the cause"));
        let full = || disk(std::io::Error::new(std::io::ErrorKind::StorageFull, "the cause"));
        for error in [
            Error::from(full()),
            Error::from(other()),
            Error::from(log::Error::Full { source: Arc::new(full()) }),
            Error::from(log::Error::NoSegment { source: Arc::new(other()) }),
            Error::from(log::Error::Latched { source: Arc::new(other()) }),
            Error::from(log::Error::Disk(other())),
            Error::from(log::Error::InUse { dir: "/store".into(), holder: "the cause".into() }),
            Error::from(log::Error::Invalid("the cause")),
        ] {
            let text = error_chain(&error);
            assert_eq!(text.matches("the cause").count(), 1, "{text}");
        }
    }
}
