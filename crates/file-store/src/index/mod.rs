//! The index: all objects' positions, and the totals for each bucket, upload and volume.
//!
//! The index is derived from the needles. An object has one slot in memory
//! ([`locations::Locations`]) and one entry in the runs on disk ([`keys::Keys`]), from which
//! listings are computed.

pub(crate) mod addresses;
mod apply;
pub(crate) mod bucket;
pub(crate) mod entry;
pub(crate) mod files;
pub(crate) mod hash;
pub(crate) mod hidden;
pub(crate) mod keys;
pub(crate) mod list;
pub(crate) mod locations;
pub(crate) mod quotas;
pub(crate) mod runs;
pub(crate) mod stored_keys;
pub(crate) mod uploads;
mod usage;
pub(crate) mod version_list;
pub(crate) mod version_names;
pub(crate) mod version_rows;
pub(crate) mod volumes;

use std::collections::BTreeMap;

use haul_append_log::{Lsn, Position};

use crate::clock::Version;
use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::index::addresses::{Addresses, Candidates, Location};
use crate::index::bucket::Bucket;
use crate::index::files::Files;
use crate::index::hash::KeyHash;
use crate::index::hidden::{Hidden, HiddenRange};
use crate::index::keys::Keys;
use crate::index::locations::Locations;
use crate::index::uploads::{UploadName, Uploads};
use crate::index::version_names::{
    event_queue, is_internal, limited_bucket, locked_bucket, suspended_bucket, versions_bucket,
};
use crate::index::volumes::Volumes;
use crate::object::{BucketId, Versioning};
use crate::options::RecentChanges;

/// A change to the location table: the removed and the inserted location for a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocationChange {
    pub(crate) hash: u64,
    pub(crate) removed: Option<Location>,
    pub(crate) inserted: Option<Location>,
}

#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) buckets: BTreeMap<Box<str>, Bucket>,
    pub(crate) uploads: Uploads,
    /// The bytes of the parts in `uploads`, by bucket. Buckets without parts are omitted.
    part_bytes: BTreeMap<Box<str>, u64>,
    pub(crate) volumes: Volumes,
    pub(crate) addresses: Addresses,
    pub(crate) files: Files,
    /// The greatest version of all needles.
    pub(crate) newest: Version,
    pub(crate) hash: KeyHash,
    pub(crate) locations: Locations,
    pub(crate) keys: Keys,
    /// Changes to `locations` that no checkpoint contains. `None` if they are unknown: the next
    /// checkpoint then contains the whole table.
    pub(crate) location_changes: Option<Vec<LocationChange>>,
    /// The number of needles that were applied since the last checkpoint.
    pub(crate) change_count: u64,
    /// The ranges that damage hides.
    pub(crate) hidden: Hidden,
    /// `true` while a store is being opened: parts may come before the start of their upload.
    pub(crate) replaying: bool,
}

impl Index {
    /// Returns an empty store's index, for volumes of `volume_bytes`.
    pub(crate) fn new(keys: Keys, hash: KeyHash, volume_bytes: u64) -> Self {
        Self {
            buckets: BTreeMap::new(),
            uploads: BTreeMap::new(),
            part_bytes: BTreeMap::new(),
            volumes: Volumes::default(),
            addresses: Addresses::new(volume_bytes),
            files: Files::default(),
            newest: Version::default(),
            hash,
            locations: Locations::new(),
            keys,
            location_changes: Some(Vec::new()),
            change_count: 0,
            hidden: Hidden::default(),
            replaying: false,
        }
    }

    /// Returns the records that may contain a key's needle, usually at most one. The key in the
    /// needle decides.
    pub(crate) fn candidates(&self, bucket: &str, key: &str) -> Candidates {
        let matches = self.locations.matches(self.hash.of(bucket, key));
        matches.filter_map(|slot| self.addresses.candidate(Location(slot))).collect()
    }

    /// Returns `true` if the newest needle of a key is at `at`.
    pub(crate) fn is_object_at(&self, bucket: &str, key: &str, at: Position) -> bool {
        let location = self.addresses.locate(at);
        location.is_some_and(|at| self.locations.contains(self.hash.of(bucket, key), at.0))
    }

    /// Returns the number of objects in all buckets, with older versions and delete markers.
    pub(crate) fn objects(&self) -> u64 {
        self.buckets.values().map(|bucket| bucket.objects).sum()
    }

    /// Returns the number of current objects, and the number of older versions and delete markers.
    pub(crate) fn current_and_older(&self) -> (u64, u64) {
        let mut counts = (0, 0);
        for (name, bucket) in self.object_buckets() {
            *(if is_internal(name) { &mut counts.1 } else { &mut counts.0 }) += bucket.objects;
        }
        counts
    }

    /// Returns the bytes of the current objects, and the bytes of older versions.
    pub(crate) fn current_and_older_bytes(&self) -> (u64, u64) {
        let mut bytes = (0, 0);
        for (name, bucket) in self.object_buckets() {
            *(if is_internal(name) { &mut bytes.1 } else { &mut bytes.0 }) += bucket.bytes;
        }
        bytes
    }

    /// Returns the buckets without the queues of events.
    fn object_buckets(&self) -> impl Iterator<Item = (&str, &Bucket)> {
        let all = self.buckets.iter().map(|(name, bucket)| (&**name, bucket));
        all.filter(|(name, _)| event_queue(name).is_none())
    }

    /// Returns the queues of events.
    pub(crate) fn event_queues(&self) -> impl Iterator<Item = (&str, &Bucket)> {
        let all = self.buckets.iter();
        all.filter_map(|(name, bucket)| Some((event_queue(name)?, bucket)))
    }

    /// Returns the buckets, in order, without internal ones.
    pub(crate) fn named_buckets(&self) -> impl Iterator<Item = (&str, &Bucket)> {
        let all = self.buckets.iter().map(|(name, bucket)| (&**name, bucket));
        all.filter(|(name, _)| !is_internal(name))
    }

    /// Returns `true` if versioning was ever enabled in an existing bucket.
    pub(crate) fn has_versions(&self) -> bool {
        self.buckets.keys().any(|name| {
            is_internal(name) && limited_bucket(name).is_none() && event_queue(name).is_none()
        })
    }

    /// Returns `true` if the bucket exists and is not internal.
    pub(crate) fn has_bucket(&self, bucket: &str) -> bool {
        !is_internal(bucket) && self.buckets.contains_key(bucket)
    }

    /// Returns the changes since the last checkpoint.
    pub(crate) fn recent_changes(&self) -> RecentChanges {
        RecentChanges { key_bytes: self.keys.recent_bytes() as u64, needles: self.change_count }
    }

    /// Returns the approximate memory of the index, without uploads and big files.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let keys = self.keys.recent_bytes() + self.keys.run_memory_bytes();
        self.locations.heap_bytes() + keys as u64
    }

    /// Removes a volume without live needles.
    pub(crate) fn remove_volume(&mut self, volume: u32) {
        self.volumes.remove(volume);
        self.addresses.release(volume);
    }

    /// Returns an error if corruption may hide the newest state of a key. `newest` is the position
    /// of its newest known needle.
    pub(crate) fn possible_corruption(
        &self,
        bucket: &str,
        key: &str,
        newest: Option<Lsn>,
    ) -> Option<Error> {
        self.hidden.range_hiding(bucket, key, newest).map(HiddenRange::error)
    }

    /// Returns an error if corruption may hide the creation or deletion of a bucket.
    pub(crate) fn possible_bucket_corruption(&self, bucket: &str) -> Option<Error> {
        let found = self.buckets.get(bucket);
        let newest = found.map(|bucket| bucket.position.map_or(Lsn::default(), |at| at.lsn));
        self.hidden.range_hiding(bucket, "", newest).map(HiddenRange::error)
    }

    /// Returns an error if the bucket does not exist, or if corruption may hide its state.
    pub(crate) fn check_bucket(&self, bucket: &str) -> Result<()> {
        if self.has_bucket(bucket) { Ok(()) } else { Err(self.missing_bucket(bucket)) }
    }

    /// Returns the identity of a bucket, if it exists.
    pub(crate) fn bucket_id(&self, bucket: &str) -> Option<BucketId> {
        self.buckets.get(bucket).map(|bucket| BucketId(bucket.created))
    }

    /// Returns the versioning state of a bucket that exists.
    ///
    /// # Errors
    /// [`Error::Damaged`] if damage may hide that versioning was enabled.
    pub(crate) fn versioning(&self, bucket: &str) -> Result<Versioning> {
        let versions = versions_bucket(bucket);
        // A bucket with object lock has versions, even if damage removed this state.
        if self.buckets.contains_key(locked_bucket(bucket).as_str()) {
            return Ok(Versioning::Enabled);
        }
        if !self.buckets.contains_key(versions.as_str()) {
            return self.possible_bucket_corruption(&versions).map_or(Ok(Versioning::Off), Err);
        }
        let suspended = suspended_bucket(bucket);
        let is_suspended = self.buckets.contains_key(suspended.as_str());
        // If in doubt, nothing is replaced that must be retained.
        match is_suspended && self.possible_bucket_corruption(&suspended).is_none() {
            true => Ok(Versioning::Suspended),
            false => Ok(Versioning::Enabled),
        }
    }

    /// Returns the error for a request to a bucket that is not in the index.
    pub(crate) fn missing_bucket(&self, bucket: &str) -> Error {
        let corruption =
            if is_internal(bucket) { None } else { self.possible_bucket_corruption(bucket) };
        corruption.unwrap_or_else(|| Error::NoSuchBucket { bucket: bucket.to_owned() })
    }

    /// Returns an error if corruption may hide any key, for a request that depends on all keys.
    pub(crate) fn any_possible_corruption(&self) -> Option<Error> {
        self.hidden.any().map(HiddenRange::error)
    }

    /// Returns `true` if the needle at this position has the newest state of an object, bucket,
    /// upload or part.
    pub(crate) fn is_live(&self, head: &Head, at: Position) -> bool {
        let found = match head.kind {
            Kind::Object => {
                return self.is_object_at(&head.bucket, &head.key, needle_position(head, at));
            }
            Kind::BucketCreated => self.buckets.get(head.bucket.as_str()).and_then(|b| b.position),
            Kind::UploadStarted => {
                self.uploads.get(&UploadName::of(head)).and_then(|upload| upload.at)
            }
            Kind::Part => self
                .uploads
                .get(&UploadName::of(head))
                .and_then(|upload| upload.parts.get(&head.part))
                .map(|part| part.at),
            Kind::Tombstone | Kind::BucketDeleted | Kind::UploadEnded => None,
        };
        found == Some(at)
    }
}

/// Returns the position of a needle in the record at `at`: that of the record, but with the event's
/// own length for an event, which follows the needle of its change.
pub(crate) fn needle_position(head: &Head, at: Position) -> Position {
    let is_event = head.kind == Kind::Object && event_queue(&head.bucket).is_some();
    match u32::try_from(head.plain_bytes()) {
        Ok(payload_bytes) if is_event => Position { payload_bytes, ..at },
        _ => at,
    }
}
