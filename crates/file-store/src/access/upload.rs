//! Multipart uploads: creation, parts in any order, completion and abortion.

use haul_append_log::SpacePriority;
use md5::{Digest, Md5};

use crate::access::put::check_precondition;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::events::append::event_changes;
use crate::format::{Head, Kind};
use crate::index::Index;
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::quotas::Reserved;
use crate::index::uploads::list::{ListUploadsRequest, UploadListPage, list};
use crate::index::uploads::{Upload, UploadName, new_id, parse, print};
use crate::keys::{check_attributes, check_key};
use crate::needles::written::{Content, ObjectWriter, UnreferencedFile, WrittenContent};
use crate::object::{
    Attributes, Etag, ObjectInfo, PART_NUMBER_MAX, PartInfo, Precondition, TargetBucket,
    UploadInfo, Usage, Versioning,
};
use crate::object_lock::check::attributes_of_new;
use crate::replication::confirmation::acknowledge;
use crate::store::Store;
use crate::versions::retain::{next_version, retain_current};

impl Store {
    /// Starts an upload and returns its ID. IDs sort in the order in which the uploads started.
    ///
    /// # Errors
    /// Fails like [`Store::put`].
    ///
    /// # Durability
    /// The upload survives a power cut when this returns.
    pub fn start_upload(&self, bucket: &str, key: &str, attributes: &Attributes) -> Result<String> {
        check_key(key)?;
        check_attributes(attributes)?;
        let random = haul_disk::random_bytes()?;
        let inner = &*self.inner;
        acknowledge(
            inner,
            inner.with_space(|| {
                let _writer = inner.keyspace.enter(bucket)?;
                let mut head = Head::new(Kind::UploadStarted, bucket, key);
                head.version = inner.keyspace.clock.next();
                let id = new_id(head.version, u64::from_le_bytes(random));
                head.upload = id;
                self.commit(vec![(head.into(), attributes)], SpacePriority::Ordinary)?;
                Ok(print(id))
            }),
        )
    }

    /// Returns a writer for a part of an upload in a bucket. The content of a part always goes to a
    /// file.
    ///
    /// # Errors
    /// Fails like [`Store::object_writer`].
    pub fn part_writer(&self, bucket: &str, expected: Option<u64>) -> Result<ObjectWriter> {
        let added = Usage { bytes: expected.unwrap_or(0), objects: 0 };
        let grant = self.inner.keyspace.grant(bucket, expected, added)?;
        self.new_writer(0, expected, grant)
    }

    /// Stores a part, replacing an existing part with this number.
    ///
    /// # Errors
    /// [`Error::NoSuchUpload`], [`Error::InvalidPart`]; otherwise fails like [`Store::put`].
    ///
    /// # Durability
    /// The part survives a power cut when this returns.
    pub fn put_part(
        &self,
        bucket: &str,
        key: &str,
        upload: &str,
        number: u16,
        written: WrittenContent,
        attributes: &Attributes,
    ) -> Result<PartInfo> {
        if !(1..=PART_NUMBER_MAX).contains(&number) {
            return Err(Error::InvalidPart { number, why: "part numbers go from 1 to 10,000" });
        }
        check_attributes(attributes)?;
        let inner = &*self.inner;
        let mut head = Head::new(Kind::Part, bucket, key);
        head.part = number;
        head.bytes = written.bytes();
        head.etag = written.etag();
        let (Content::File(file), mut reserved) = written.into_content() else {
            let what = "a part must be written with a part writer".to_owned();
            return Err(Error::Invalid { what });
        };
        let mut file = self.own_file(file)?;
        head.files.extend(file.part());
        let put = || {
            let earlier = std::mem::take(&mut reserved);
            self.try_put_part(head.clone(), upload, &mut file, attributes, earlier)
        };
        acknowledge(inner, inner.with_space(put))
    }

    fn try_put_part(
        &self,
        mut head: Head,
        upload: &str,
        file: &mut UnreferencedFile,
        attributes: &Attributes,
        earlier: Reserved,
    ) -> Result<PartInfo> {
        let inner = &*self.inner;
        let (bucket, key) = (head.bucket.clone(), head.key.clone());
        let (bucket, key) = (bucket.as_str(), key.as_str());
        let _writer = inner.keyspace.enter(bucket)?;
        let added = Usage { bytes: head.bytes, objects: 0 };
        let reserved = inner.keyspace.claim(bucket, added, earlier)?;
        let _lock = inner.keyspace.keys.lock(bucket, key);
        head.upload = find_upload(&inner.keyspace.index.read(), bucket, key, upload)?.0;
        head.version = inner.keyspace.clock.next();
        let info = PartInfo {
            number: head.part,
            bytes: head.bytes,
            modified: head.version.time(),
            etag: head.etag,
            attributes: attributes.clone(),
        };
        let ticket = inner.append(&head.encode(attributes), &[], SpacePriority::Ordinary)?;
        file.keep();
        let at = ticket.wait()?;
        self.apply(vec![Change { head, replaces: None, reserved, event: None }], at);
        Ok(info)
    }

    /// Returns a page of a bucket's unfinished uploads. Reads nothing from the disk:
    /// [`Store::upload`] returns an upload's attributes.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] while damage may hide an upload or its end.
    pub fn list_uploads(
        &self,
        bucket: &str,
        request: &ListUploadsRequest<'_>,
    ) -> Result<UploadListPage> {
        self.bucket(bucket)?;
        let index = self.inner.keyspace.index.read();
        if let Some(error) = index.any_possible_corruption() {
            return Err(error);
        }
        Ok(list(&index.uploads, bucket, request))
    }

    /// Returns an upload.
    ///
    /// # Errors
    /// [`Error::NoSuchUpload`]; [`Error::Damaged`] if its attributes cannot be read.
    pub fn upload(&self, bucket: &str, key: &str, upload: &str) -> Result<UploadInfo> {
        let inner = &*self.inner;
        let _lock = inner.keyspace.keys.lock(bucket, key);
        let index = inner.keyspace.index.read();
        let (id, found) = find_upload(&index, bucket, key, upload)?;
        let (started, at) = (found.started, found.at);
        drop(index);
        let attributes = match at {
            Some(at) => inner.read_attributes(at)?,
            None => Attributes::new(),
        };
        Ok(UploadInfo { id: print(id), key: key.to_owned(), started: started.time(), attributes })
    }

    /// Returns an upload's parts, sorted by number.
    ///
    /// # Errors
    /// [`Error::NoSuchUpload`]; [`Error::Damaged`] if attributes cannot be read.
    pub fn parts(&self, bucket: &str, key: &str, upload: &str) -> Result<Vec<PartInfo>> {
        let inner = &*self.inner;
        // The lock prevents compaction from moving the needles in the meantime.
        let _lock = inner.keyspace.keys.lock(bucket, key);
        let entries: Vec<(u16, Entry)> = {
            let index = inner.keyspace.index.read();
            let (_, upload) = find_upload(&index, bucket, key, upload)?;
            upload.parts.iter().map(|(number, entry)| (*number, entry.clone())).collect()
        };
        let info = |(number, entry): (u16, Entry)| {
            Ok(PartInfo {
                number,
                bytes: entry.bytes,
                modified: entry.version.time(),
                etag: entry.etag,
                attributes: inner.read_attributes(entry.at)?,
            })
        };
        entries.into_iter().map(info).collect()
    }

    /// Completes an upload: the listed parts, in order, become an object, and other parts are
    /// removed. `extra` is added to the upload's attributes.
    ///
    /// The object's needle and the upload's end are one log record, so they are atomic. The parts'
    /// bytes are not copied.
    ///
    /// # Errors
    /// [`Error::NoSuchUpload`], [`Error::InvalidPart`]; otherwise fails like [`Store::put`].
    ///
    /// # Durability
    /// The object survives a power cut when this returns.
    pub fn complete_upload<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        upload: &str,
        parts: &[(u16, Etag)],
        extra: &Attributes,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        let bucket = bucket.into();
        let mut attributes = self.upload(bucket.name, key, upload)?.attributes;
        for (name, value) in extra.iter() {
            attributes.set(name, value);
        }
        check_attributes(&attributes)?;
        let complete = || self.try_complete(bucket, key, upload, parts, &attributes, precondition);
        acknowledge(&self.inner, self.inner.with_space(complete))
    }

    fn try_complete(
        &self,
        target: TargetBucket<'_>,
        key: &str,
        upload: &str,
        parts: &[(u16, Etag)],
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        let inner = &*self.inner;
        let _writer = inner.keyspace.enter(target)?;
        let bucket = target.name;
        // The bytes of the parts count already, and stop to count as parts in the same record.
        let reserved = inner.keyspace.reserve(bucket, Usage { bytes: 0, objects: 1 })?;
        let attributes = &*attributes_of_new(inner, bucket, attributes)?;
        let _lock = inner.keyspace.keys.lock(bucket, key);
        let current = inner.find(bucket, key)?;
        check_precondition(inner, bucket, key, current.as_ref(), precondition)?;
        let mut head = Head::new(Kind::Object, bucket, key);
        let mut end = Head::new(Kind::UploadEnded, bucket, key);
        {
            let index = inner.keyspace.index.read();
            let (id, upload) = find_upload(&index, bucket, key, upload)?;
            end.upload = id;
            assemble(&mut head, upload, parts)?;
        }
        let versioning = inner.keyspace.versioning(bucket)?;
        let tombstones =
            retain_current(inner, bucket, key, current.as_ref(), versioning, &reserved)?;
        head.version = next_version(inner, bucket, key, current.as_ref(), versioning)?;
        end.version = inner.keyspace.clock.next();
        head.is_versioned = versioning == Versioning::Enabled;
        let info = head.info();
        let events = event_changes(inner, target.event, bucket, || head.info());
        let replaces = current.map(Replaced::from);
        let change = Change { head, replaces, reserved, event: None };
        let others: Vec<Change> =
            std::iter::once(end.into()).chain(tombstones).chain(events).collect();
        let encoded = change.head.encode(attributes);
        let ticket = inner.append_with(&encoded, &[], &others, SpacePriority::Ordinary)?;
        let at = ticket.wait()?;
        self.apply(std::iter::once(change).chain(others).collect(), at);
        Counters::count(&inner.counters.local().puts);
        Ok(info)
    }

    /// Aborts an upload and removes its parts.
    ///
    /// # Errors
    /// [`Error::NoSuchUpload`]; otherwise fails like [`Store::delete`].
    ///
    /// # Durability
    /// The abortion survives a power cut when this returns.
    pub fn abort_upload(&self, bucket: &str, key: &str, upload: &str) -> Result<()> {
        acknowledge(&self.inner, self.inner.with_space(|| self.try_abort(bucket, key, upload)))
    }

    fn try_abort(&self, bucket: &str, key: &str, upload: &str) -> Result<()> {
        let inner = &*self.inner;
        let _writer = inner.keyspace.enter(bucket)?;
        let _lock = inner.keyspace.keys.lock(bucket, key);
        let mut end = Head::new(Kind::UploadEnded, bucket, key);
        end.upload = find_any_upload(&inner.keyspace.index.read(), bucket, key, upload)?.0;
        end.version = inner.keyspace.clock.next();
        self.commit(vec![(end.into(), &Attributes::new())], SpacePriority::Reserve)
    }

    /// Appends needles without data to the log as one record, waits until it is durable, and
    /// applies the needles to the index in one step.
    fn commit(&self, needles: Vec<(Change, &Attributes)>, priority: SpacePriority) -> Result<()> {
        let encode = |(change, attributes): &(Change, &Attributes)| change.head.encode(attributes);
        let record: Vec<u8> = needles.iter().flat_map(encode).collect();
        let at = self.inner.append(&record, &[], priority)?.wait()?;
        self.apply(needles.into_iter().map(|(change, _)| change).collect(), at);
        Ok(())
    }
}

fn find_upload<'a>(
    index: &'a Index,
    bucket: &str,
    key: &str,
    upload: &str,
) -> Result<(u128, &'a Upload)> {
    let (id, found) = find_any_upload(index, bucket, key, upload)?;
    match index.hidden.range_hiding_upload(found.started) {
        Some(range) => Err(range.error()),
        None => Ok((id, found)),
    }
}

/// Finds an upload that can be aborted, even if damage may hide its parts or its end.
fn find_any_upload<'a>(
    index: &'a Index,
    bucket: &str,
    key: &str,
    upload: &str,
) -> Result<(u128, &'a Upload)> {
    let missing = || Error::NoSuchUpload { id: upload.to_owned() };
    parse(upload)
        .and_then(|id| Some((id, index.uploads.get(&UploadName::new(bucket, key, id))?)))
        .ok_or_else(|| index.any_possible_corruption().unwrap_or_else(missing))
}

/// Sets the object's head: the parts' files in order, their total length, the MD5 of the parts'
/// MD5s, and the encoded flag if a part has it.
fn assemble(head: &mut Head, upload: &Upload, parts: &[(u16, Etag)]) -> Result<()> {
    let mut last = 0;
    let mut encoded = 0;
    let mut hashes = Md5::new();
    for (number, etag) in parts {
        let invalid = |why| Error::InvalidPart { number: *number, why };
        if *number <= last {
            return Err(invalid("parts must be listed in ascending order"));
        }
        last = *number;
        let part = upload.parts.get(number).ok_or_else(|| invalid("the part was not uploaded"))?;
        if !part.etag.has_text_of(etag) {
            return Err(invalid("the part has a different ETag"));
        }
        head.bytes += part.bytes;
        encoded |= part.etag.parts & Etag::ENCODED;
        head.files.extend_from_slice(&part.files);
        hashes.update(etag.md5);
    }
    if parts.is_empty() {
        return Err(Error::InvalidPart { number: 1, why: "at least one part must be listed" });
    }
    // At most PART_NUMBER_MAX, because the numbers ascend.
    let parts = u16::try_from(parts.len()).unwrap_or(PART_NUMBER_MAX);
    head.etag = Etag { md5: hashes.finalize().into(), parts: parts | encoded };
    Ok(())
}
