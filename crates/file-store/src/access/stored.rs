//! Reads an object as it is stored, and stores it unchanged under another key.

use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::Room;

use crate::access::apply::AppendedRecord;
use crate::access::lookup::Read;
use crate::access::object::{Content, Object};
use crate::access::written::{Content as Written, ObjectWriter, UnreferencedFile};
use crate::counters::Counters;
use crate::error::Result;
use crate::format::{Kind, block_checksums};
use crate::index::addresses::Candidate;
use crate::index::entry::{Change, Entry, Replaced};
use crate::inner::Inner;
use crate::object::Attributes;
use crate::store::Store;

/// An object that was read whole, with its exact version. The data of a big object is in its files.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) entry: Entry,
    pub(crate) attributes: Attributes,
    data: Bytes,
}

impl Inner {
    /// Reads an object in any bucket, also an internal one. The caller has locked the key, so that
    /// a big object's files stay.
    ///
    /// # Errors
    /// Fails like [`Inner::look_up`], without the test of the bucket.
    pub(crate) fn read_stored(&self, bucket: &str, key: &str) -> Result<StoredObject> {
        let read = |candidate| self.read_content(candidate, bucket, key);
        let (entry, (attributes, content)) =
            self.look_up_in(self.keyspace.index.read(), bucket, key, read)?;
        let data = match content {
            Content::Memory(bytes) => bytes,
            Content::Head(_) | Content::Blocks(_) | Content::Locked(_) | Content::Files(_) => {
                Bytes::new()
            }
        };
        Ok(StoredObject { entry, attributes, data })
    }

    /// Stores an object unchanged, with its version, under another key: appends its needle. The
    /// caller has locked this key. `replaces` is the key's object. `ends` are tombstones in the
    /// same record.
    ///
    /// # Durability
    /// All changes survive a power cut once the record is durable, or none was made.
    pub(crate) fn append_stored(
        &self,
        stored: &StoredObject,
        (bucket, key): (&str, &str),
        replaces: Option<Replaced>,
        ends: Vec<Change>,
    ) -> Result<AppendedRecord> {
        let entry = &stored.entry;
        let mut head = self.head(Kind::Object, bucket, key);
        (head.version, head.is_versioned) = (entry.version, entry.is_versioned);
        (head.bytes, head.etag) = (entry.bytes, entry.etag);
        head.files = entry.files.to_vec();
        let mut data = &*stored.data;
        let mut file = self.file_of(data)?;
        if let Some(file) = &file {
            head.files.extend(file.part());
            data = &[];
        }
        head.blocks = block_checksums(data);
        let encoded = head.encode(&stored.attributes);
        let ticket = self.append_with_ends(&encoded, data, &ends, Room::Ordinary)?;
        self.maintenance.admission.admit_now((encoded.len() + data.len()) as u64);
        if let Some(file) = &mut file {
            file.keep();
        }
        let object = Change { head, replaces };
        Ok(AppendedRecord { changes: std::iter::once(object).chain(ends).collect(), ticket })
    }

    /// Writes data to a file if it was stored in a needle when `big_object_bytes` was larger.
    fn file_of(&self, data: &[u8]) -> Result<Option<UnreferencedFile>> {
        let bytes = data.len() as u64;
        if bytes < self.options.big_object_bytes {
            return Ok(None);
        }
        self.check_space_for_file(bytes)?;
        let mut writer = ObjectWriter::new(Arc::clone(&self.objects), 0, Some(bytes))?;
        writer.write(data)?;
        Ok(match writer.finish()?.into_content() {
            Written::File(file) => Some(file),
            Written::Memory(_) => None,
        })
    }
}

impl Store {
    /// Returns an object like [`Store::get`], from any bucket, also an internal one.
    pub(crate) fn get_stored(&self, bucket: &str, key: &str) -> Result<Object> {
        let inner = &self.inner;
        let read = |candidate| inner.read_content(candidate, bucket, key);
        self.open_stored(bucket, key, read)
    }

    /// Returns an object like [`Store::head`], from any bucket, also an internal one.
    pub(crate) fn head_stored(&self, bucket: &str, key: &str) -> Result<Object> {
        let inner = &self.inner;
        Counters::count(&inner.counters.local().gets);
        let read = |candidate| inner.read_head(candidate, bucket, key);
        let (entry, attributes) =
            inner.look_up_in(inner.keyspace.index.read(), bucket, key, read)?;
        let info = entry.info(key);
        Ok(Object { info, attributes, content: Content::Head(entry.files) })
    }

    /// Returns an object like [`Store::head_cached`], from any bucket, also an internal one.
    pub(crate) fn head_stored_cached(&self, bucket: &str, key: &str) -> Result<Option<Object>> {
        let inner = &self.inner;
        let read = |candidate| inner.read_head_cached(candidate, bucket, key);
        let found = inner.look_up_cached_in(inner.keyspace.index.read(), bucket, key, read)?;
        Ok(found.map(|(entry, attributes)| {
            let info = entry.info(key);
            Object { info, attributes, content: Content::Head(entry.files) }
        }))
    }

    fn open_stored(
        &self,
        bucket: &str,
        key: &str,
        read: impl Fn(Candidate) -> Result<Read<(Attributes, Content)>>,
    ) -> Result<Object> {
        let inner = &self.inner;
        Counters::count(&inner.counters.local().gets);
        loop {
            let index = inner.keyspace.index.read();
            let (entry, opened) = inner.look_up_in(index, bucket, key, &read)?;
            if let Some(object) = inner.object(bucket, key, entry, opened)? {
                return Ok(object);
            }
        }
    }
}
