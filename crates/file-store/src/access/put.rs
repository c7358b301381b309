//! Storing and deleting objects.

use std::collections::HashMap;
use std::sync::Arc;

use haul_append_log::{Position, Room, Ticket};

use crate::access::written::{Content, NamelessFile, ObjectWriter, Written};
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::{Head, Kind, block_checksums};
use crate::index::entry::{Change, Entry, Replaced};
use crate::inner::Inner;
use crate::keys::{check_attributes, check_key};
use crate::object::{Attributes, ObjectInfo, Precondition};
use crate::store::Store;

/// What an object is to be made of.
pub(crate) enum Source<'a> {
    /// Bytes that go into its needle.
    Bytes(&'a [u8]),
    /// A file that no needle refers to yet.
    NewFile(NamelessFile),
    /// Files that something else refers to and holds.
    Shared,
}

impl Source<'_> {
    /// Returns the bytes that go into the needle.
    fn data(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::NewFile(_) | Self::Shared => &[],
        }
    }
}

impl Store {
    /// Stores a whole object under a key, in place of the one that was there.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::InvalidKey`], [`Error::PreconditionFailed`],
    /// [`Error::Full`]; after a failed sync [`Error::Log`], and whether the object is there is
    /// known when the store is opened again.
    ///
    /// # Durability
    /// It survives a power cut when this returns.
    pub fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: &[u8],
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        if bytes.len() as u64 >= self.inner.options.big_object_bytes {
            let mut writer = self.object_writer(Some(bytes.len() as u64))?;
            writer.write(bytes)?;
            return self.put_written(bucket, key, writer.finish()?, attributes, precondition);
        }
        let mut head = self.inner.head(Kind::Object, bucket, key);
        head.bytes = bytes.len() as u64;
        head.etag.md5 = self.inner.md5.digest(bytes);
        self.store(head, attributes, precondition, Source::Bytes(bytes))
    }

    /// A writer for content that comes piece by piece. With `expected` the space for a big
    /// object is set aside at once.
    ///
    /// # Errors
    /// [`Error::Full`], or the kernel's refusal to make a file.
    pub fn object_writer(&self, expected: Option<u64>) -> Result<ObjectWriter> {
        let big_bytes = self.inner.options.big_object_bytes;
        self.new_writer(big_bytes, expected)
    }

    /// A writer of content that goes to a file from `big_bytes` bytes on.
    pub(crate) fn new_writer(&self, big_bytes: u64, expected: Option<u64>) -> Result<ObjectWriter> {
        let inner = &*self.inner;
        let of_file = expected.map_or(big_bytes == 0, |bytes| bytes >= big_bytes);
        inner.with_space(|| {
            if of_file {
                inner.check_space_for_file(expected.unwrap_or(0))?;
            }
            ObjectWriter::new(Arc::clone(&inner.objects), big_bytes, expected)
        })
    }

    /// Stores what a writer took under a key, in place of the object that was there.
    ///
    /// # Errors
    /// As [`Store::put`].
    ///
    /// # Durability
    /// It survives a power cut when this returns.
    pub fn put_written(
        &self,
        bucket: &str,
        key: &str,
        written: Written,
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        let mut head = self.inner.head(Kind::Object, bucket, key);
        head.bytes = written.bytes();
        head.etag.md5 = written.md5();
        match written.into_content() {
            Content::Memory(bytes) => {
                self.store(head, attributes, precondition, Source::Bytes(&bytes))
            }
            Content::File(file) => {
                head.files.extend(file.part());
                self.store(head, attributes, precondition, Source::NewFile(file))
            }
        }
    }

    /// Stores an object: delayed where compaction is behind, and repeated where the disk is full and
    /// compaction frees space.
    pub(crate) fn store(
        &self,
        mut head: Head,
        attributes: &Attributes,
        precondition: &Precondition,
        mut source: Source<'_>,
    ) -> Result<ObjectInfo> {
        check_key(&head.key)?;
        check_attributes(attributes)?;
        if let Source::Bytes(data) = source {
            head.blocks = block_checksums(data);
        }
        let inner = &*self.inner;
        inner.admission.admit((head.head_bytes() + source.data().len()) as u64);
        inner.with_space(|| self.try_store(head.clone(), attributes, precondition, &mut source))
    }

    /// Stores an object.
    ///
    /// 1. The key is locked, its present object is looked up, and the precondition is tested.
    /// 2. The needle is appended to the log. After a crash the log has it or not; a new file to
    ///    which it refers is durable already, and is removed on opening if the log has no needle.
    /// 3. The needle is durable: it is applied to the index, and only now is it visible.
    /// 4. Files of the replaced object are removed; after a crash before this, opening the store
    ///    removes them.
    fn try_store(
        &self,
        mut head: Head,
        attributes: &Attributes,
        precondition: &Precondition,
        source: &mut Source<'_>,
    ) -> Result<ObjectInfo> {
        let inner = &*self.inner;
        let _entered = inner.enter(&head.bucket)?;
        let _turn = inner.keys.lock(&head.bucket, &head.key);
        let data = source.data();
        let (replaces, ticket) = inner.append_object(&mut head, attributes, precondition, data)?;
        if let Source::NewFile(file) = source {
            // The needle may become durable from here on, also if the wait fails.
            file.keep();
        }
        let at = ticket.wait()?;
        let info = head.info();
        self.apply(vec![Change { head, replaces }], at);
        Counters::count(&inner.counters.puts);
        Ok(info)
    }

    /// Deletes an object, and says whether there was one, or may have been one in a damaged place.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]. On a full disk it succeeds, or waits for compaction to free space:
    /// [`Error::Stalled`] when that takes too long, [`Error::Full`] when it cannot.
    ///
    /// # Durability
    /// It is gone for good when this returns.
    pub fn delete(&self, bucket: &str, key: &str) -> Result<bool> {
        self.delete_many(bucket, &[key]).pop().unwrap_or(Ok(false))
    }

    /// Deletes objects, with one sync for all, and says for each whether there was one.
    ///
    /// # Errors
    /// As [`Store::delete`], for each.
    ///
    /// # Durability
    /// They are gone for good when this returns.
    pub fn delete_many(&self, bucket: &str, keys: &[&str]) -> Vec<Result<bool>> {
        let mut outcomes = self.try_delete_many(bucket, keys);
        let is_full = |outcome: &Result<bool>| matches!(outcome, Err(Error::Full { .. }));
        for (key, outcome) in keys.iter().zip(&mut outcomes).filter(|(_, o)| is_full(o)) {
            let again = || self.try_delete_many(bucket, &[key]).pop().unwrap_or(Ok(false));
            *outcome = self.inner.with_space(again);
        }
        outcomes
    }

    fn try_delete_many(&self, bucket: &str, keys: &[&str]) -> Vec<Result<bool>> {
        let inner = &*self.inner;
        let _entered = match inner.enter(bucket) {
            Ok(entered) => entered,
            Err(_) => return keys.iter().map(|_| Err(inner.missing_bucket(bucket))).collect(),
        };
        // Whoever takes several keys takes them in order, and none twice.
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let _turns: Vec<_> = sorted.iter().map(|key| inner.keys.lock(bucket, key)).collect();
        let tickets: Vec<_> = sorted.iter().map(|key| self.append_tombstone(bucket, key)).collect();
        let deleted = sorted.into_iter().zip(tickets).map(|(key, appended)| {
            let outcome = appended.and_then(|appended| match appended {
                Some((change, ticket)) => self.deleted(change, ticket.wait()?),
                None => Ok(false),
            });
            (key, outcome)
        });
        let mut outcomes: HashMap<_, _> = deleted.collect();
        // Named a second time, it is not there any more.
        keys.iter().map(|key| outcomes.remove(key).unwrap_or(Ok(false))).collect()
    }

    /// Appends the tombstone of an object that exists, or may exist in a damaged place.
    fn append_tombstone(&self, bucket: &str, key: &str) -> Result<Option<(Change, Ticket)>> {
        let inner = &*self.inner;
        let current = inner.find(bucket, key)?;
        if current.is_none() && inner.index.read().doubt(bucket, key, None).is_none() {
            return Ok(None);
        }
        let mut head = inner.head(Kind::Tombstone, bucket, key);
        head.version = inner.clock.next();
        let ticket = inner.append(&head.encode(&Attributes::new()), &[], Room::Reserve)?;
        Ok(Some((Change { head, replaces: current.map(Replaced::from) }, ticket)))
    }

    fn deleted(&self, change: Change, at: Position) -> Result<bool> {
        self.apply(vec![change], at);
        Counters::count(&self.inner.counters.deletes);
        Ok(true)
    }

    /// Stores what is under one key under another, too. Files of a big object are shared, not
    /// copied. Without `attributes` the copy has those of the source.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`] for the source, and those of [`Store::put`].
    ///
    /// # Durability
    /// It survives a power cut when this returns.
    pub fn copy(
        &self,
        from: (&str, &str),
        to: (&str, &str),
        attributes: Option<&Attributes>,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        // The object holds on to its files until the copy refers to them, too.
        let object = self.get(from.0, from.1)?;
        let big_bytes = self.inner.options.big_object_bytes;
        let mut head = self.inner.head(Kind::Object, to.0, to.1);
        head.bytes = object.info.bytes;
        head.etag = object.info.etag;
        let attributes = attributes.unwrap_or(&object.attributes);
        match object.in_memory() {
            // It was stored when objects of its size were small ones.
            Some(bytes) if bytes.len() as u64 >= big_bytes => {
                self.put(to.0, to.1, bytes, attributes, precondition)
            }
            Some(bytes) => self.store(head, attributes, precondition, Source::Bytes(bytes)),
            None => {
                head.files = object.files().to_vec();
                self.store(head, attributes, precondition, Source::Shared)
            }
        }
    }
}

impl Inner {
    /// Looks up the current object of a key, which the caller has locked, tests the precondition,
    /// and appends the needle of the new object, whose version it sets. Returns the object that
    /// the needle replaces.
    pub(crate) fn append_object(
        &self,
        head: &mut Head,
        attributes: &Attributes,
        precondition: &Precondition,
        data: &[u8],
    ) -> Result<(Option<Replaced>, Ticket)> {
        let current = self.find(&head.bucket, &head.key)?;
        self.test(&head.bucket, &head.key, current.as_ref(), precondition)?;
        head.version = self.clock.next();
        let ticket = self.append(&head.encode(attributes), data, Room::Ordinary)?;
        Ok((current.map(Replaced::from), ticket))
    }

    /// Tests the precondition of a write against the current object of the key, which the caller
    /// has locked.
    pub(crate) fn test(
        &self,
        bucket: &str,
        key: &str,
        current: Option<&Entry>,
        precondition: &Precondition,
    ) -> Result<()> {
        let newest = current.map(|entry| entry.at.lsn);
        if *precondition != Precondition::None
            && let Some(error) = self.index.read().doubt(bucket, key, newest)
        {
            return Err(error);
        }
        let holds = match precondition {
            Precondition::None => true,
            Precondition::Absent => current.is_none(),
            Precondition::Present => current.is_some(),
            Precondition::Matches(etag) => current.is_some_and(|entry| entry.etag == *etag),
        };
        if holds { Ok(()) } else { Err(Error::PreconditionFailed) }
    }
}
