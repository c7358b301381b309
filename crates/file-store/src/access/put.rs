//! Storing objects.

use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::{SpacePriority, Ticket};

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::events::append::event_changes;
use crate::format::{FilePart, Head, Kind, block_checksums};
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::quotas::{Reserved, WriteGrant};
use crate::inner::Inner;
use crate::keys::{check_attributes, check_key};
use crate::needles::object::{Files, Object};
use crate::needles::written::{Content, ObjectWriter, UnreferencedFile, WrittenContent};
use crate::object::{
    Attributes, ObjectInfo, Precondition, StoredObject, TargetBucket, Usage, Versioning,
};
use crate::object_lock::check::attributes_of_new;
use crate::object_lock::lock::ObjectLock;
use crate::replication::confirmation::acknowledge;
use crate::store::Store;
use crate::versions::retain::{next_version, retain_current};

/// The bytes that are read at once from a file in another store.
const COPY_BYTES: usize = 1 << 20;

/// The content of a new object.
pub(crate) enum Source<'a> {
    /// Bytes that are stored in the needle.
    Bytes(&'a [u8]),
    /// Files that no needle references yet.
    NewFiles(Vec<UnreferencedFile>),
    /// Files that another object or an upload already references.
    Shared,
}

impl Source<'_> {
    /// Returns the bytes that are stored in the needle.
    fn data(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::NewFiles(_) | Self::Shared => &[],
        }
    }
}

impl Store {
    /// Stores an object under a key, replacing an existing object.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::InvalidKey`], [`Error::PreconditionFailed`],
    /// [`Error::Full`]; [`Error::Log`] after a failed sync: then only reopening the store
    /// determines whether the object was stored. [`Error::NotReplicated`] if the object was stored,
    /// but the store's copy has not confirmed it.
    ///
    /// # Durability
    /// The object survives a power cut when this returns.
    pub fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: &[u8],
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        self.put_located(bucket, key, bytes, attributes, precondition).map(|stored| stored.info)
    }

    /// Stores an object like [`Store::put`], and also returns its location.
    ///
    /// # Errors
    /// Fails like [`Store::put`].
    ///
    /// # Durability
    /// The object survives a power cut when this returns.
    pub fn put_located<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        bytes: &[u8],
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<StoredObject> {
        let stored = self.put_locally(bucket.into(), key, bytes, attributes, precondition);
        acknowledge(&self.inner, stored)
    }

    /// Stores an object like [`Store::put`], but does not wait for the store's copy.
    pub(crate) fn put_locally(
        &self,
        bucket: TargetBucket<'_>,
        key: &str,
        bytes: &[u8],
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<StoredObject> {
        if bytes.len() as u64 >= self.inner.options.big_object_bytes {
            let mut writer = self.object_writer(bucket.name, Some(bytes.len() as u64))?;
            writer.write(bytes)?;
            let written = writer.finish()?;
            return self.put_written_locally(bucket, key, written, attributes, precondition);
        }
        let mut head = Head::new(Kind::Object, bucket.name, key);
        head.bytes = bytes.len() as u64;
        head.etag.md5 = self.inner.md5.digest(bytes);
        let source = Source::Bytes(bytes);
        self.store(bucket, head, attributes, precondition, source, Reserved::nothing())
    }

    /// Returns a writer for an object's content, which arrives in pieces. `expected` is the
    /// content's length, if known: its quota is reserved at once, and a big object's disk space is
    /// allocated.
    ///
    /// # Errors
    /// [`Error::QuotaExceeded`], [`Error::Full`], or [`Error::Disk`] if the file cannot be created.
    pub fn object_writer(&self, bucket: &str, expected: Option<u64>) -> Result<ObjectWriter> {
        let big_bytes = self.inner.options.big_object_bytes;
        let added = Usage { bytes: expected.unwrap_or(0), objects: 1 };
        let grant = self.inner.keyspace.grant(bucket, expected, added)?;
        self.new_writer(big_bytes, expected, grant)
    }

    /// Creates a writer whose content goes to a file if it has `big_bytes` bytes or more.
    pub(crate) fn new_writer(
        &self,
        big_bytes: u64,
        expected: Option<u64>,
        grant: WriteGrant,
    ) -> Result<ObjectWriter> {
        let inner = &*self.inner;
        let is_big = expected.map_or(big_bytes == 0, |bytes| bytes >= big_bytes);
        let writer = inner.with_space(|| {
            if is_big {
                inner.check_space_for_file(expected.unwrap_or(0))?;
            }
            ObjectWriter::new(Arc::clone(&inner.objects), big_bytes, expected)
        })?;
        Ok(writer.with_grant(grant))
    }

    /// Stores written content under a key, replacing an existing object.
    ///
    /// # Errors
    /// Fails like [`Store::put`].
    ///
    /// # Durability
    /// The object survives a power cut when this returns.
    pub fn put_written<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        written: WrittenContent,
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        let bucket = bucket.into();
        let stored = self.put_written_locally(bucket, key, written, attributes, precondition);
        acknowledge(&self.inner, stored).map(|stored| stored.info)
    }

    fn put_written_locally(
        &self,
        bucket: TargetBucket<'_>,
        key: &str,
        written: WrittenContent,
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<StoredObject> {
        let mut head = Head::new(Kind::Object, bucket.name, key);
        head.bytes = written.bytes();
        head.etag = written.etag();
        let (content, reserved) = written.into_content();
        match content {
            Content::Memory(bytes) => {
                let source = Source::Bytes(&bytes);
                self.store(bucket, head, attributes, precondition, source, reserved)
            }
            Content::File(file) => {
                let file = self.own_file(file)?;
                head.files.extend(file.part());
                let source = Source::NewFiles(vec![file]);
                self.store(bucket, head, attributes, precondition, source, reserved)
            }
        }
    }

    /// Stores an object. Delays the call while compaction falls behind, and repeats it on a full
    /// disk when compaction has freed space. `reserved` is the reservation for the object's content.
    fn store(
        &self,
        bucket: TargetBucket<'_>,
        mut head: Head,
        attributes: &Attributes,
        precondition: &Precondition,
        mut source: Source<'_>,
        mut reserved: Reserved,
    ) -> Result<StoredObject> {
        check_key(&head.key)?;
        check_attributes(attributes)?;
        if let Source::Bytes(data) = source {
            head.blocks = block_checksums(data);
        }
        let inner = &*self.inner;
        inner.maintenance.admission.admit((head.head_bytes() + source.data().len()) as u64);
        inner.with_space(|| {
            let earlier = std::mem::take(&mut reserved);
            self.try_store(bucket, head.clone(), attributes, precondition, &mut source, earlier)
        })
    }

    /// Stores an object.
    ///
    /// 1. Reserves the object's quota, unless `earlier` covers it.
    /// 2. Locks the key, looks up its current object, and tests the precondition. In a bucket with
    ///    versions, retains the current object.
    /// 3. Appends the needle to the log, with those of the events. After a crash the log may or may
    ///    not have it. A new file that it references is already durable; if the log does not have
    ///    the needle, opening the store removes the file.
    /// 4. Once the needle is durable, applies it to the index, which makes it visible.
    /// 5. Removes the files of the replaced object. After a crash before this step, opening the
    ///    store removes them.
    fn try_store(
        &self,
        bucket: TargetBucket<'_>,
        mut head: Head,
        attributes: &Attributes,
        precondition: &Precondition,
        source: &mut Source<'_>,
        earlier: Reserved,
    ) -> Result<StoredObject> {
        let inner = &*self.inner;
        let _writer = inner.keyspace.enter(bucket)?;
        let added = Usage { bytes: head.bytes, objects: 1 };
        let reserved = inner.keyspace.claim(&head.bucket, added, earlier)?;
        // Before the key is locked, because this may lock the bucket.
        let attributes = &*attributes_of_new(inner, &head.bucket, attributes)?;
        let _lock = inner.keyspace.keys.lock(&head.bucket, &head.key);
        let data = source.data();
        let versioning = inner.keyspace.versioning(&head.bucket)?;
        let (replaces, others, ticket) = append_version(
            inner,
            &mut head,
            attributes,
            precondition,
            data,
            versioning,
            &reserved,
            bucket.event,
        )?;
        if let Source::NewFiles(files) = source {
            // From here on the needle may become durable, even if the wait fails.
            files.iter_mut().for_each(UnreferencedFile::keep);
        }
        let at = ticket.wait()?;
        let info = head.info();
        let object = Change { head, replaces, reserved, event: None };
        self.apply(std::iter::once(object).chain(others).collect(), at);
        Counters::count(&inner.counters.local().puts);
        Ok(StoredObject { info, location: inner.location(at) })
    }

    /// Stores one key's object under another key. A big object's files are shared, not copied.
    /// Without `attributes`, the copy has the source's attributes, without its lock.
    ///
    /// # Errors
    /// Fails like [`Store::get`] for the source, and like [`Store::put`] for the copy.
    ///
    /// # Durability
    /// The copy survives a power cut when this returns.
    pub fn copy(
        &self,
        from: (&str, &str),
        to: (&str, &str),
        attributes: Option<&Attributes>,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        let object = self.get(from.0, from.1)?;
        self.copy_object(&object, to.0, to.1, attributes, precondition)
    }

    /// Stores an object under another key like [`Store::copy`]. The object was opened with its
    /// content: it may be a version that [`Store::get_version`] returned, and it may be in another
    /// store of a pool, from which a big object's files are copied. The copy gets the ETag in
    /// `object`. A caller that sets another ETag there turns an object in parts into a copy in one
    /// piece.
    ///
    /// # Errors
    /// Fails like [`Store::put`]; [`Error::Invalid`] if only the object's head or some of its
    /// ranges were read.
    ///
    /// # Durability
    /// The copy survives a power cut when this returns.
    pub fn copy_object<'a>(
        &self,
        object: &Object,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        attributes: Option<&Attributes>,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        let copied = self.copy_locally(object, bucket.into(), key, attributes, precondition);
        acknowledge(&self.inner, copied).map(|stored| stored.info)
    }

    fn copy_locally(
        &self,
        object: &Object,
        bucket: TargetBucket<'_>,
        key: &str,
        attributes: Option<&Attributes>,
        precondition: &Precondition,
    ) -> Result<StoredObject> {
        // `object` keeps its files referenced until the copy references them, too.
        if !object.has_content() {
            let what = "the object to copy was not read with its content".to_owned();
            return Err(Error::Invalid { what });
        }
        let big_bytes = self.inner.options.big_object_bytes;
        let mut head = Head::new(Kind::Object, bucket.name, key);
        head.bytes = object.info.bytes;
        head.etag = object.info.etag;
        let mut source_attributes = object.attributes.clone();
        ObjectLock::remove_from(&mut source_attributes);
        let attributes = attributes.unwrap_or(&source_attributes);
        match object.in_memory() {
            // The object was stored when `big_object_bytes` was larger.
            Some(bytes) if bytes.len() as u64 >= big_bytes => {
                let mut writer = self.object_writer(bucket.name, Some(head.bytes))?;
                writer.write(bytes)?;
                let written = writer.finish()?.with_etag(head.etag);
                self.put_written_locally(bucket, key, written, attributes, precondition)
            }
            Some(bytes) => {
                let source = Source::Bytes(bytes);
                self.store(bucket, head, attributes, precondition, source, Reserved::nothing())
            }
            // The files count for each object that shares them.
            None if object.is_in(&self.inner) => {
                head.files = object.files().to_vec();
                let source = Source::Shared;
                self.store(bucket, head, attributes, precondition, source, Reserved::nothing())
            }
            None => {
                let added = Usage { bytes: head.bytes, objects: 1 };
                let reserved = self.inner.keyspace.reserve(bucket.name, added)?;
                let files = object.open_files().map(|files| self.copy_files(files));
                let files = files.unwrap_or_else(|| Ok(Vec::new()))?;
                head.files = files.iter().filter_map(UnreferencedFile::part).collect();
                let source = Source::NewFiles(files);
                self.store(bucket, head, attributes, precondition, source, reserved)
            }
        }
    }
}

impl Store {
    /// Copies files of another store, each to a file of its own. The caller holds no lock.
    pub(crate) fn copy_files(&self, files: &Files) -> Result<Vec<UnreferencedFile>> {
        let mut start = 0;
        let copy = |part: &FilePart| {
            let read = |offset, bytes_max| files.read(start + offset, bytes_max);
            let copied = self.copy_file(part.bytes, read);
            start += part.bytes;
            copied
        };
        files.parts.iter().map(copy).collect()
    }

    /// Returns a file in this store with the content of `file`, which may be in another one.
    pub(crate) fn own_file(&self, file: UnreferencedFile) -> Result<UnreferencedFile> {
        let Some(part) = file.part().filter(|_| !file.is_in(&self.inner.objects)) else {
            return Ok(file);
        };
        let reader = file.open(part)?;
        self.copy_file(part.bytes, |offset, bytes_max| reader.read(offset, bytes_max))
    }

    fn copy_file(
        &self,
        bytes: u64,
        read: impl Fn(u64, usize) -> Result<Bytes>,
    ) -> Result<UnreferencedFile> {
        let mut writer = self.new_writer(0, Some(bytes), WriteGrant::default())?;
        while writer.bytes() < bytes {
            let left = usize::try_from(bytes - writer.bytes()).unwrap_or(usize::MAX);
            let read = read(writer.bytes(), left.min(COPY_BYTES))?;
            if read.is_empty() {
                let what = format!("a file ends at byte {} of {bytes}", writer.bytes());
                return Err(Error::Invalid { what });
            }
            writer.write(&read)?;
        }
        match writer.finish()?.into_content().0 {
            Content::File(file) => Ok(file),
            Content::Memory(_) => {
                Err(Error::Invalid { what: "the writer of a file returned memory".to_owned() })
            }
        }
    }
}

/// Appends a new object's needle: looks up the key's current object, tests the precondition, and
/// sets the version. The caller has locked the key. Returns the object that the needle replaces.
pub(crate) fn append_object(
    inner: &Inner,
    head: &mut Head,
    attributes: &Attributes,
    precondition: &Precondition,
    data: &[u8],
) -> Result<(Option<Replaced>, Ticket)> {
    if ObjectLock::is_in(attributes) {
        return Err(Error::NoObjectLock { bucket: head.bucket.clone() });
    }
    let (versioning, reserved) = (Versioning::Off, &Reserved::nothing());
    let (replaces, _, ticket) =
        append_version(inner, head, attributes, precondition, data, versioning, reserved, None)?;
    Ok((replaces, ticket))
}

/// Appends a new object's needle like [`append_object`]. If the bucket has versions, first retains
/// the current object. Also returns the other needles that the same record contains: tombstones for
/// versions, and events.
#[expect(clippy::too_many_arguments, reason = "the inputs of one step, all of different types")]
fn append_version(
    inner: &Inner,
    head: &mut Head,
    attributes: &Attributes,
    precondition: &Precondition,
    data: &[u8],
    versioning: Versioning,
    reserved: &Reserved,
    event: Option<&Event>,
) -> Result<(Option<Replaced>, Vec<Change>, Ticket)> {
    let current = inner.find(&head.bucket, &head.key)?;
    check_precondition(inner, &head.bucket, &head.key, current.as_ref(), precondition)?;
    let (bucket, key) = (&head.bucket, &head.key);
    let mut others = retain_current(inner, bucket, key, current.as_ref(), versioning, reserved)?;
    head.is_versioned = versioning == Versioning::Enabled;
    head.version = next_version(inner, &head.bucket, &head.key, current.as_ref(), versioning)?;
    let encoded = head.encode(attributes);
    others.extend(event_changes(inner, event, &head.bucket, || head.info()));
    let ticket = inner.append_with(&encoded, data, &others, SpacePriority::Ordinary)?;
    Ok((current.map(Replaced::from), others, ticket))
}

/// Tests a write's precondition against the key's current object. The caller has locked the key.
pub(crate) fn check_precondition(
    inner: &Inner,
    bucket: &str,
    key: &str,
    current: Option<&Entry>,
    precondition: &Precondition,
) -> Result<()> {
    let newest = current.map(|entry| entry.at.lsn);
    if *precondition != Precondition::None
        && let Some(error) = inner.keyspace.index.read().possible_corruption(bucket, key, newest)
    {
        return Err(error);
    }
    let holds = match precondition {
        Precondition::None => true,
        Precondition::Absent => current.is_none(),
        Precondition::Present => current.is_some(),
        Precondition::Matches(etag) => current.is_some_and(|entry| entry.etag.has_text_of(etag)),
        Precondition::Differs(etag) => current.is_none_or(|entry| !entry.etag.has_text_of(etag)),
    };
    if holds { Ok(()) } else { Err(Error::PreconditionFailed) }
}
