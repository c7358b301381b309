//! Applies needles to the index.

use haul_append_log::Position;

use crate::clock::Version;
use crate::format::{Head, Kind};
use crate::index::addresses::Location;
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::uploads::UploadName;
use crate::index::version_names::event_queue;
use crate::index::volumes::subtract;
use crate::index::{Index, LocationChange, needle_position};

impl Index {
    /// Applies a durable needle at `at`. Returns the big files that are no longer referenced.
    ///
    /// Recovery and every write call this function, so reopening a store changes no content. The
    /// log has a key's needles in the order of the key's states.
    pub(crate) fn apply(&mut self, change: Change, at: Position) -> Vec<u128> {
        let Change { head, replaces, reserved, event: _ } = change;
        debug_assert!(at.payload_bytes as usize >= head.head_bytes(), "a needle is in its record");
        debug_assert!(
            replaces.is_none() || matches!(head.kind, Kind::Object | Kind::Tombstone),
            "{head:?} replaces no object"
        );
        self.newest = self.newest.max(head.version);
        self.change_count += 1;
        if head.is_tombstone() {
            self.volumes.add_tombstone(at, head.head_bytes());
        }
        if matches!(head.kind, Kind::Tombstone | Kind::BucketDeleted) {
            self.hidden.mark_absent(&head.bucket, &head.key);
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
        // The totals have it now. The caller holds the lock of the index, with which the next write
        // reads them: it counts twice at no time, and never not at all.
        reserved.applied();
        self.files.take_freed()
    }

    fn put_object(&mut self, head: &Head, at: Position, replaces: Option<Replaced>) {
        let at = needle_position(head, at);
        let is_event = event_queue(&head.bucket).is_some();
        match is_event {
            true => self.volumes.add_event(at),
            false => self.volumes.add_live(at),
        }
        if replaces.as_ref().is_some_and(|old| old.at.lsn > at.lsn) {
            match is_event {
                true => self.volumes.retire_event(at),
                false => self.volumes.retire(at),
            }
            return;
        }
        let entry = Entry::of(head, at);
        debug_assert!(
            replaces.as_ref().is_none_or(|old| old.at.lsn != at.lsn),
            "it replaces itself"
        );
        self.files.hold(&entry.files);
        // Damage may have lost the bucket's needle. The bucket's objects then restore the bucket.
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

    /// Removes an object that has no tombstone, because a later needle deletes its bucket.
    pub(crate) fn forget(&mut self, bucket: &str, key: &str, old: Replaced) {
        let removed = self.forget_object(bucket, &old);
        self.change_location(bucket, key, removed, None);
        self.keys.insert(bucket, key, None);
    }

    /// Subtracts an object from the counters. Returns its former location.
    fn forget_object(&mut self, bucket: &str, old: &Replaced) -> Option<Location> {
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            subtract(&mut bucket.objects, 1, "objects of a bucket");
            subtract(&mut bucket.bytes, old.bytes, "bytes of a bucket");
            debug_assert!(bucket.objects > 0 || bucket.bytes == 0, "{bucket:?}");
        }
        match event_queue(bucket).is_some() {
            true => self.volumes.retire_event(old.at),
            false => self.volumes.retire(old.at),
        }
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
        let old = bucket.position.replace(at);
        if let Some(old) = old {
            self.volumes.retire(old);
        }
    }

    /// Deletes a bucket, which must be empty: during recovery, the caller first deletes objects
    /// whose tombstones damage has lost.
    fn delete_bucket(&mut self, head: &Head) {
        let Some((name, mut bucket)) = self.buckets.remove_entry(head.bucket.as_str()) else {
            return;
        };
        if bucket.created < head.version {
            bucket.created = Version::default();
            if let Some(at) = bucket.position.take() {
                self.volumes.retire(at);
            }
        }
        if bucket.position.is_some() || bucket.objects > 0 {
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
        // Compaction may move an upload's start behind its parts.
        let upload = self.uploads.entry(name).or_default();
        self.volumes.add_live(at);
        if upload.parts.get(&number).is_some_and(|current| current.version > head.version) {
            self.volumes.retire(at);
            return;
        }
        let entry = Entry::of(head, at);
        self.files.hold(&entry.files);
        let old = upload.parts.insert(number, entry);
        self.add_part_bytes(&head.bucket, head.bytes);
        if let Some(old) = old {
            self.forget_part(&head.bucket, &old);
        }
    }

    fn end_upload(&mut self, name: &UploadName) {
        let Some(upload) = self.uploads.remove(name) else { return };
        if let Some(at) = upload.at {
            self.volumes.retire(at);
        }
        let (bucket, _) = name.bucket_and_key();
        for part in upload.parts.values() {
            self.forget_part(bucket, part);
        }
    }

    fn forget_part(&mut self, bucket: &str, part: &Entry) {
        self.subtract_part_bytes(bucket, part.bytes);
        self.volumes.retire(part.at);
        self.files.release(&part.files);
    }

    /// Asserts, in tests, that the totals match the index: a location for each object, and a live
    /// needle for each object, bucket, upload and part. Asserts nothing while damage hides needles,
    /// because the totals may count them.
    pub(crate) fn check_totals(&self) {
        if cfg!(not(debug_assertions)) || self.hidden.any().is_some() {
            return;
        }
        let uploads = self.uploads.values();
        let upload_needles = uploads.map(|it| it.parts.len() as u64 + u64::from(it.at.is_some()));
        let bucket_needles =
            self.buckets.values().filter(|bucket| bucket.position.is_some()).count() as u64;
        let expected = self.objects() + bucket_needles + upload_needles.sum::<u64>();
        let live: u64 = self.volumes.iter().map(|(_, volume)| volume.live_needles).sum();
        debug_assert_eq!(live, expected, "live needles");
        debug_assert_eq!(self.locations.len(), self.objects(), "locations of objects");
        debug_assert_eq!(self.part_bytes, self.count_part_bytes(), "bytes of parts");
        debug_assert!(self.buckets.values().all(|bucket| bucket.created <= self.newest));
        if self.event_queues().next().is_some() {
            // The bytes of an event also count as those of its change.
            return;
        }
        for (number, volume) in self.volumes.iter().filter(|(_, volume)| volume.live_needles > 0) {
            let range = self.addresses.range(number);
            let used = volume.live_bytes + volume.dead_bytes;
            debug_assert!(range.is_none_or(|range| used <= range.bytes), "{number}: {volume:?}");
        }
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
