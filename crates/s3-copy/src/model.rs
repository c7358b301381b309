//! Defines what listings contain.

use time::OffsetDateTime;

/// A version of an object, or an object of a bucket without versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    /// The version ID; `None` in a bucket without versions.
    pub(crate) id: Option<String>,
    /// The ETag without quotation marks; empty for a delete marker.
    pub(crate) etag: String,
    pub(crate) bytes: u64,
    pub(crate) is_delete_marker: bool,
    pub(crate) is_latest: bool,
    /// The time of storing, if the server sends a valid one.
    pub(crate) modified: Option<OffsetDateTime>,
}

/// A key with its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    /// The versions, the oldest one first; one in a bucket without versions.
    pub(crate) versions: Vec<Version>,
}

impl Key {
    /// Returns the newest version.
    pub(crate) fn latest(&self) -> Option<&Version> {
        self.versions.last()
    }

    /// Returns the size of the versions from the one with the index `first` on.
    pub(crate) fn bytes_from(&self, first: usize) -> u64 {
        self.versions.iter().skip(first).map(|version| version.bytes).sum()
    }
}

/// Returns the number of parts of an object with the ETag `…-N` of a multipart upload.
pub(crate) fn part_count(etag: &str) -> Option<u32> {
    let (_, count) = etag.rsplit_once('-')?;
    count.parse().ok().filter(|count| *count > 0)
}
