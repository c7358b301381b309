//! What is where: all buckets, objects and uploads in memory, so that a read needs one request.

pub(crate) mod hidden;
pub(crate) mod list;
pub(crate) mod volumes;

use std::collections::{BTreeMap, HashMap};

use haul_append_log::{Lsn, Position};

use crate::clock::Version;
use crate::error::Error;
use crate::format::{FilePart, Head, Kind};
use crate::index::hidden::{Hidden, HiddenRange};
use crate::index::volumes::Volumes;
use crate::object::{BucketInfo, Etag, ObjectInfo};

/// An object, without its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) version: Version,
    pub(crate) at: Position,
    pub(crate) bytes: u64,
    pub(crate) etag: Etag,
    /// Empty for an object whose bytes are in its needle.
    pub(crate) files: Box<[FilePart]>,
}

impl Entry {
    pub(crate) fn info(&self, key: &str) -> ObjectInfo {
        ObjectInfo {
            key: key.to_owned(),
            bytes: self.bytes,
            modified: self.version.time(),
            etag: self.etag,
        }
    }

    fn of(head: Head, at: Position) -> Self {
        let Head { version, bytes, etag, files, .. } = head;
        Self { version, at, bytes, etag, files: files.into_boxed_slice() }
    }
}

/// A bucket and its objects.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    pub(crate) created: Version,
    /// Where its needle is; `None` if that was lost to damage.
    pub(crate) at: Option<Position>,
    pub(crate) objects: BTreeMap<Box<str>, Entry>,
    pub(crate) bytes: u64,
}

impl Bucket {
    pub(crate) fn info(&self, name: &str) -> BucketInfo {
        BucketInfo {
            name: name.to_owned(),
            created: self.created.time(),
            objects: self.objects.len() as u64,
            bytes: self.bytes,
        }
    }
}

/// An upload that is going on.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) started: Version,
    /// Where its needle is; `None` if that was lost to damage.
    pub(crate) at: Option<Position>,
    pub(crate) parts: BTreeMap<u16, Entry>,
}

/// Everything.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) buckets: BTreeMap<Box<str>, Bucket>,
    pub(crate) uploads: HashMap<u128, Upload>,
    pub(crate) volumes: Volumes,
    /// Objects of all buckets.
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    /// The greatest version seen.
    pub(crate) newest: Version,
    pub(crate) files: HashMap<u128, FileUse>,
    /// Bytes of objects in all files.
    pub(crate) file_bytes: u64,
    freed: Vec<u128>,
    /// What damaged places may hide.
    pub(crate) hidden: Hidden,
    /// While a store is being opened, parts may come before the start of their upload.
    pub(crate) replaying: bool,
}

/// A file of big objects: copies share it, and so does a reader that is not done with it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileUse {
    pub(crate) bytes: u64,
    pub(crate) uses: u32,
}

impl Index {
    pub(crate) fn object(&self, bucket: &str, key: &str) -> Option<&Entry> {
        self.buckets.get(bucket)?.objects.get(key)
    }

    /// Takes in a needle that is on the medium at `at`; of two for the same thing the one with
    /// the greater version stands, and of equals the later. Returns the files nobody refers to
    /// any more.
    ///
    /// Recovery and every write go through here, so that a store that was opened again is the
    /// store that was closed.
    pub(crate) fn apply(&mut self, head: Head, at: Position) -> Vec<u128> {
        self.newest = self.newest.max(head.version);
        if head.ends_something() {
            self.volumes.end(at, head.head_bytes());
        }
        if matches!(head.kind, Kind::Tombstone | Kind::BucketDeleted) {
            self.hidden.settle_absent(&head.bucket, &head.key);
        }
        match head.kind {
            Kind::Object => self.put_object(head, at),
            Kind::Tombstone => self.delete_object(&head),
            Kind::BucketCreated => self.create_bucket(head, at),
            Kind::BucketDeleted => self.delete_bucket(&head),
            Kind::UploadStarted => self.start_upload(head, at),
            Kind::Part => self.put_part(head, at),
            Kind::UploadEnded => self.end_upload(head.upload),
        }
        std::mem::take(&mut self.freed)
    }

    /// Ends the replay: parts whose upload never started, or ended before them, go.
    pub(crate) fn end_replay(&mut self) {
        self.replaying = false;
        let ended: Vec<u128> = self
            .uploads
            .iter()
            .filter(|(_, upload)| upload.at.is_none())
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            self.end_upload(id);
        }
        self.freed.clear();
    }

    /// Keeps files from being freed, for a reader or on behalf of a needle.
    pub(crate) fn hold(&mut self, files: &[FilePart]) {
        for file in files {
            let held = self.files.entry(file.id).or_default();
            held.uses += 1;
            if held.uses == 1 {
                held.bytes = file.bytes;
                self.file_bytes += file.bytes;
            }
        }
    }

    /// Undoes one `hold` and returns the files nobody refers to any more.
    pub(crate) fn release(&mut self, files: &[FilePart]) -> Vec<u128> {
        self.let_go(files);
        std::mem::take(&mut self.freed)
    }

    fn let_go(&mut self, files: &[FilePart]) {
        for file in files {
            let Some(held) = self.files.get_mut(&file.id) else { continue };
            held.uses -= 1;
            if held.uses == 0 {
                self.file_bytes -= held.bytes;
                self.files.remove(&file.id);
                self.freed.push(file.id);
            }
        }
    }

    fn put_object(&mut self, head: Head, at: Position) {
        let (name, key, version) = (head.bucket.clone(), head.key.clone(), head.version);
        let current = self.object(&name, &key).map(|entry| entry.version);
        if current.is_some_and(|current| current > version) {
            self.volumes.bear(at);
            self.volumes.bury(at);
            return;
        }
        let entry = Entry::of(head, at);
        self.volumes.bear(at);
        self.hold(&entry.files);
        // A bucket whose own needle was lost to damage comes back with its objects.
        let bucket = self.buckets.entry(name.into_boxed_str()).or_default();
        bucket.bytes += entry.bytes;
        self.bytes += entry.bytes;
        self.objects += 1;
        if let Some(old) = bucket.objects.insert(key.into_boxed_str(), entry) {
            bucket.bytes -= old.bytes;
            self.forget_object(&old);
        }
    }

    fn delete_object(&mut self, head: &Head) {
        let Some(bucket) = self.buckets.get_mut(head.bucket.as_str()) else { return };
        if bucket.objects.get(head.key.as_str()).is_some_and(|old| old.version < head.version)
            && let Some(old) = bucket.objects.remove(head.key.as_str())
        {
            bucket.bytes -= old.bytes;
            self.forget_object(&old);
        }
    }

    fn forget_object(&mut self, old: &Entry) {
        self.objects -= 1;
        self.bytes -= old.bytes;
        self.forget(old);
    }

    fn forget(&mut self, old: &Entry) {
        self.volumes.bury(old.at);
        self.let_go(&old.files);
    }

    fn create_bucket(&mut self, head: Head, at: Position) {
        let bucket = self.buckets.entry(head.bucket.into_boxed_str()).or_default();
        self.volumes.bear(at);
        if bucket.created > head.version {
            self.volumes.bury(at);
            return;
        }
        bucket.created = head.version;
        let old = bucket.at.replace(at);
        if let Some(old) = old {
            self.volumes.bury(old);
        }
    }

    fn delete_bucket(&mut self, head: &Head) {
        let Some((name, mut bucket)) = self.buckets.remove_entry(head.bucket.as_str()) else {
            return;
        };
        // Only an empty bucket is deleted. An older object still in it comes from damage, and
        // newer ones are of a bucket created again whose needle comes later or was lost.
        for (_, old) in bucket.objects.extract_if(.., |_, entry| entry.version < head.version) {
            bucket.bytes -= old.bytes;
            self.forget_object(&old);
        }
        if bucket.created < head.version {
            bucket.created = Version::default();
            if let Some(at) = bucket.at.take() {
                self.volumes.bury(at);
            }
        }
        if bucket.at.is_some() || !bucket.objects.is_empty() {
            self.buckets.insert(name, bucket);
        }
    }

    fn start_upload(&mut self, head: Head, at: Position) {
        self.buckets.entry(head.bucket.as_str().into()).or_default();
        let upload = self.uploads.entry(head.upload).or_default();
        let old = upload.at.replace(at);
        (upload.bucket, upload.key, upload.started) = (head.bucket, head.key, head.version);
        self.volumes.bear(at);
        if let Some(old) = old {
            self.volumes.bury(old);
        }
    }

    fn put_part(&mut self, head: Head, at: Position) {
        let (number, id) = (head.part, head.upload);
        if !self.replaying && !self.uploads.contains_key(&id) {
            // The upload ended while this part was on its way.
            self.freed.extend(head.files.iter().map(|file| file.id));
            return;
        }
        // A compacted volume may hold the start of an upload behind its parts.
        let upload = self.uploads.entry(id).or_default();
        self.volumes.bear(at);
        if upload.parts.get(&number).is_some_and(|current| current.version > head.version) {
            self.volumes.bury(at);
            return;
        }
        let entry = Entry::of(head, at);
        let files = entry.files.clone();
        let old = upload.parts.insert(number, entry);
        self.hold(&files);
        if let Some(old) = old {
            self.forget(&old);
        }
    }

    fn end_upload(&mut self, id: u128) {
        let Some(upload) = self.uploads.remove(&id) else { return };
        if let Some(at) = upload.at {
            self.volumes.bury(at);
        }
        for part in upload.parts.values() {
            self.forget(part);
        }
    }

    /// The error for a key whose newest state may be in a damaged place.
    pub(crate) fn doubt(&self, bucket: &str, key: &str) -> Option<Error> {
        let newest = self.object(bucket, key).map(|entry| entry.at.lsn);
        self.hidden.behind(bucket, key, newest).map(HiddenRange::error)
    }

    /// The error for a bucket whose creation or deletion may be in a damaged place.
    pub(crate) fn doubt_bucket(&self, bucket: &str) -> Option<Error> {
        let found = self.buckets.get(bucket);
        let newest = found.map(|bucket| bucket.at.map_or(Lsn::default(), |at| at.lsn));
        self.hidden.behind(bucket, "", newest).map(HiddenRange::error)
    }

    /// The error for what depends on all keys, if any may be hidden.
    pub(crate) fn doubt_all(&self) -> Option<Error> {
        self.hidden.any().map(HiddenRange::error)
    }

    /// `true` if a needle says what is the state of something now.
    pub(crate) fn matters(&self, head: &Head, at: Position) -> bool {
        match head.kind {
            Kind::Tombstone => self.object(&head.bucket, &head.key).is_none(),
            Kind::BucketDeleted => !self.buckets.contains_key(head.bucket.as_str()),
            Kind::UploadEnded => true,
            _ => self.is_live(head, at),
        }
    }

    /// Whether the needle at this place is the one that stands.
    pub(crate) fn is_live(&self, head: &Head, at: Position) -> bool {
        let found = match head.kind {
            Kind::Object => self.object(&head.bucket, &head.key).map(|entry| entry.at),
            Kind::BucketCreated => self.buckets.get(head.bucket.as_str()).and_then(|b| b.at),
            Kind::UploadStarted => self.uploads.get(&head.upload).and_then(|upload| upload.at),
            Kind::Part => self
                .uploads
                .get(&head.upload)
                .and_then(|upload| upload.parts.get(&head.part))
                .map(|part| part.at),
            Kind::Tombstone | Kind::BucketDeleted | Kind::UploadEnded => None,
        };
        found == Some(at)
    }
}
