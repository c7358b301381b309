//! Application of needles to the index.

use haul_append_log::Position;

use crate::clock::Version;
use crate::format::{Head, Kind};
use crate::index::addresses::Location;
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::uploads::UploadName;
use crate::index::{Index, LocationChange};

impl Index {
    /// Applies a durable needle at `at`. Returns the big files that are no longer referenced.
    ///
    /// Recovery and every write call this function, so reopening a store changes no content. The
    /// log order of the needles of a key is the order of its states.
    pub(crate) fn apply(&mut self, change: Change, at: Position) -> Vec<u128> {
        let Change { head, replaces } = change;
        self.newest = self.newest.max(head.version);
        self.change_count += 1;
        if head.ends_something() {
            self.volumes.add_ending(at, head.head_bytes());
        }
        if matches!(head.kind, Kind::Tombstone | Kind::BucketDeleted) {
            self.hidden.settle_absent(&head.bucket, &head.key);
        }
        match head.kind {
            Kind::Object => self.put_object(&head, at, replaces),
            Kind::Tombstone => self.delete_object(&head, at, replaces),
            Kind::BucketCreated => self.create_bucket(head, at),
            Kind::BucketDeleted => self.delete_bucket(&head),
            Kind::UploadStarted => self.start_upload(&head, at),
            Kind::Part => self.put_part(&head, at),
            Kind::UploadEnded => self.end_upload(&UploadName::of(&head)),
        }
        self.files.take_freed()
    }

    fn put_object(&mut self, head: &Head, at: Position, replaces: Option<Replaced>) {
        self.volumes.add_live(at);
        if replaces.as_ref().is_some_and(|old| old.at.lsn > at.lsn) {
            self.volumes.retire(at);
            return;
        }
        let entry = Entry::of(head, at);
        self.files.hold(&entry.files);
        // The needle of a bucket may be lost to damage. Its objects then restore the bucket.
        let bucket = self.buckets.entry(head.bucket.as_str().into()).or_default();
        bucket.objects += 1;
        bucket.bytes += entry.bytes;
        let removed = replaces.and_then(|old| self.forget_object(&head.bucket, &old));
        let inserted =
            self.addresses.assign(at).expect("appends stop before the address space is used up");
        self.change_location(&head.bucket, &head.key, removed, Some(inserted));
        self.keys.insert(&head.bucket, &head.key, Some(&entry));
    }

    fn delete_object(&mut self, head: &Head, at: Position, replaces: Option<Replaced>) {
        if let Some(old) = replaces.filter(|old| old.at.lsn < at.lsn) {
            self.forget(&head.bucket, &head.key, old);
        }
    }

    /// Removes an object without a tombstone: a later needle, which deletes its bucket, implies it.
    pub(crate) fn forget(&mut self, bucket: &str, key: &str, old: Replaced) {
        let removed = self.forget_object(bucket, &old);
        self.change_location(bucket, key, removed, None);
        self.keys.insert(bucket, key, None);
    }

    /// Subtracts an object from the counters. Returns its former location.
    fn forget_object(&mut self, bucket: &str, old: &Replaced) -> Option<Location> {
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            bucket.objects = bucket.objects.saturating_sub(1);
            bucket.bytes = bucket.bytes.saturating_sub(old.bytes);
        }
        self.volumes.retire(old.at);
        self.files.release(&old.files);
        self.addresses.locate(old.at)
    }

    fn change_location(
        &mut self,
        bucket: &str,
        key: &str,
        removed: Option<Location>,
        inserted: Option<Location>,
    ) {
        let hash = self.hash.of(bucket, key);
        match (removed, inserted) {
            (Some(old), Some(new)) if self.locations.replace(hash, old.0, new.0) => {}
            (_, Some(new)) => self.locations.insert(hash, new.0),
            (Some(old), None) => drop(self.locations.remove(hash, old.0)),
            (None, None) => {}
        }
        if let Some(changes) = &mut self.location_changes {
            changes.push(LocationChange { hash, removed, inserted });
        }
    }

    fn create_bucket(&mut self, head: Head, at: Position) {
        let bucket = self.buckets.entry(head.bucket.into_boxed_str()).or_default();
        self.volumes.add_live(at);
        if bucket.created > head.version {
            self.volumes.retire(at);
            return;
        }
        bucket.created = head.version;
        let old = bucket.at.replace(at);
        if let Some(old) = old {
            self.volumes.retire(old);
        }
    }

    /// Deletes a bucket, which must be empty: during recovery, the caller first deletes objects
    /// whose tombstones were lost to damage.
    fn delete_bucket(&mut self, head: &Head) {
        let Some((name, mut bucket)) = self.buckets.remove_entry(head.bucket.as_str()) else {
            return;
        };
        if bucket.created < head.version {
            bucket.created = Version::default();
            if let Some(at) = bucket.at.take() {
                self.volumes.retire(at);
            }
        }
        if bucket.at.is_some() || bucket.objects > 0 {
            self.buckets.insert(name, bucket);
        }
    }

    fn start_upload(&mut self, head: &Head, at: Position) {
        self.buckets.entry(head.bucket.as_str().into()).or_default();
        let upload = self.uploads.entry(UploadName::of(head)).or_default();
        let old = upload.at.replace(at);
        upload.started = head.version;
        self.volumes.add_live(at);
        if let Some(old) = old {
            self.volumes.retire(old);
        }
    }

    fn put_part(&mut self, head: &Head, at: Position) {
        let (number, name) = (head.part, UploadName::of(head));
        if !self.replaying && !self.uploads.contains_key(&name) {
            // The upload was completed or aborted before the part was durable.
            self.files.free(&head.files);
            return;
        }
        // Compaction may move the start of an upload behind its parts.
        let upload = self.uploads.entry(name).or_default();
        self.volumes.add_live(at);
        if upload.parts.get(&number).is_some_and(|current| current.version > head.version) {
            self.volumes.retire(at);
            return;
        }
        let entry = Entry::of(head, at);
        self.files.hold(&entry.files);
        if let Some(old) = upload.parts.insert(number, entry) {
            self.forget_part(&old);
        }
    }

    fn end_upload(&mut self, name: &UploadName) {
        let Some(upload) = self.uploads.remove(name) else { return };
        if let Some(at) = upload.at {
            self.volumes.retire(at);
        }
        for part in upload.parts.values() {
            self.forget_part(part);
        }
    }

    fn forget_part(&mut self, part: &Entry) {
        self.volumes.retire(part.at);
        self.files.release(&part.files);
    }

    /// Completes the replay: removes parts whose upload was never started, or ended before them.
    pub(crate) fn end_replay(&mut self) {
        self.replaying = false;
        let ended: Vec<UploadName> = self
            .uploads
            .iter()
            .filter(|(_, upload)| upload.at.is_none())
            .map(|(name, _)| name.clone())
            .collect();
        for name in &ended {
            self.end_upload(name);
        }
        drop(self.files.take_freed());
    }
}
