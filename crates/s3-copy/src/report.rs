//! Defines what a copy reports while it runs, and its summary.

use crate::error::Error;

/// What happened, or in a dry run would happen.
#[derive(Debug)]
pub enum Event<'a> {
    /// A bucket is created at the target.
    BucketCreated {
        /// The bucket.
        bucket: &'a str,
    },
    /// A setting of a bucket is copied, such as `versioning`.
    Setting {
        /// The bucket.
        bucket: &'a str,
        /// The name of the setting in requests.
        setting: &'a str,
    },
    /// A setting of the source is not copied.
    NotCarried {
        /// The bucket.
        bucket: &'a str,
        /// The name of the setting in requests.
        setting: &'a str,
        /// The reason.
        reason: &'a str,
    },
    /// An object is copied, or in a bucket with versions those that the target lacks.
    Copied {
        /// The bucket.
        bucket: &'a str,
        /// The key.
        key: &'a str,
        /// The number of versions and delete markers.
        versions: u64,
        /// The size of all of them.
        bytes: u64,
    },
    /// An object that the source does not have is deleted.
    Deleted {
        /// The bucket.
        bucket: &'a str,
        /// The key.
        key: &'a str,
    },
    /// The versions at the target are not the first ones of the source; they stay as they are.
    Different {
        /// The bucket.
        bucket: &'a str,
        /// The key.
        key: &'a str,
    },
    /// An object or a setting could not be copied.
    Failed {
        /// The bucket.
        bucket: &'a str,
        /// The key; empty if the bucket or a setting of it failed.
        key: &'a str,
        /// The reason.
        error: &'a Error,
    },
}

/// The receiver of events, which is called on the thread that runs the copy.
pub trait Events {
    /// `true` if the copy must stop after the objects in progress.
    fn is_stopped(&self) -> bool;

    /// Reports an event. With the summary so far, for the progress.
    fn happened(&self, event: &Event<'_>, summary: &Summary);
}

/// The totals of a copy, or in a dry run of what would be copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The buckets that were processed.
    pub buckets: u64,
    /// The keys of which something was copied.
    pub objects: u64,
    /// The copied versions and delete markers, and the objects of buckets without versions.
    pub versions: u64,
    /// The copied bytes.
    pub bytes: u64,
    /// The keys that were the same at the target.
    pub skipped: u64,
    /// The objects that were deleted at the target.
    pub deleted: u64,
    /// The keys whose versions at the target are other ones.
    pub different: u64,
    /// The objects and settings that failed.
    pub failed: u64,
    /// Copied versions whose ETag the target cannot have: their length was compared.
    pub verified_by_length: u64,
    /// The settings that were not copied, each with its bucket and the reason.
    pub not_carried: Vec<NotCarried>,
    /// `true` if the copy was stopped before its end.
    pub is_stopped: bool,
}

/// A setting of a bucket that was not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCarried {
    /// The bucket.
    pub bucket: String,
    /// The name of the setting in requests.
    pub setting: String,
    /// The reason.
    pub reason: String,
}
