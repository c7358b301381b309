//! Reading objects and ranges of them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::{self as log};

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::index::addresses::Candidate;
use crate::index::list::list;
use crate::inner::Inner;
use crate::memory::locked::DataLocation;
use crate::needles::block_data::BlockData;
use crate::needles::lookup::{HEAD_READ_BYTES, Read};
use crate::needles::object::{Content, Object};
use crate::object::{Attributes, ListPage, ListRequest, ObjectInfo, ObjectLocation};
use crate::store::Store;

/// The bytes that a listing reads ahead in a run: a page of 1,000 keys takes about 60 KB.
const LIST_READAHEAD_BYTES: usize = 64 << 10;

impl Store {
    /// Returns the metadata of an object: from memory if it was stored recently, otherwise with one
    /// read of a few KiB.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchKey`]; [`Error::Damaged`] if the newest state of the
    /// key may be in a damaged place.
    pub fn stat(&self, bucket: &str, key: &str) -> Result<ObjectInfo> {
        Ok(self.inner.entry(bucket, key)?.info(key))
    }

    /// Returns the maximum number of bytes that [`Store::get`] buffers for an object, without I/O;
    /// 0 if the object does not exist.
    #[must_use]
    pub fn open_bytes_max(&self, bucket: &str, key: &str) -> u64 {
        let candidates = self.inner.keyspace.index.read().candidates(bucket, key);
        candidates.iter().map(|candidate| self.buffered_bytes(candidate)).max().unwrap_or(0)
    }

    /// Returns an object without its content, with one read of a few KiB.
    ///
    /// # Errors
    /// Fails like [`Store::get`].
    pub fn head(&self, bucket: &str, key: &str) -> Result<Object> {
        let inner = &self.inner;
        Counters::count(&inner.counters.local().gets);
        let read = |candidate| inner.read_head(candidate, bucket, key);
        let (entry, attributes) = inner.look_up(bucket, key, read)?;
        let info = entry.info(key);
        Ok(Object { info, attributes, content: Content::Head(entry.files) })
    }

    /// Returns an object: a small one completely, with one read; a big one opened for reading.
    ///
    /// Small objects have up to [`crate::Options::big_object_bytes`], 4 MiB by default. To read a
    /// part of an object, call [`Store::get_range`]; to read several parts, call
    /// [`Store::open_object`]. Both read only the blocks of 64 KiB that contain the parts. To read
    /// many objects, call [`Store::get_many`].
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchKey`]; [`Error::Damaged`] if the bytes read fail
    /// their checksum.
    pub fn get(&self, bucket: &str, key: &str) -> Result<Object> {
        self.get_with(bucket, key, |inner, candidate| inner.read_content(candidate, bucket, key))
    }

    /// Returns the location of an object's newest state, without I/O. As long as this returns the
    /// same location, the object is unchanged, so a caller can cache the object and validate its
    /// copy with this call. Compaction also changes an object's location.
    ///
    /// Returns `None` if the object does not exist, or if only a read can determine the location.
    #[must_use]
    pub fn location(&self, bucket: &str, key: &str) -> Option<ObjectLocation> {
        let index = self.inner.keyspace.index.read();
        if index.hidden.any().is_some() {
            return None;
        }
        let candidates = index.candidates(bucket, key);
        let mut found = candidates.iter();
        let first = found.next().filter(|_| found.next().is_none());
        let member = self.inner.options.member;
        first.map(|Candidate { lsn, bytes_hint }| ObjectLocation { lsn, bytes_hint, member })
    }

    /// Returns the maximum number of bytes that [`Store::get`] buffers for an object at a location.
    #[must_use]
    pub fn open_bytes_max_at(&self, location: ObjectLocation) -> u64 {
        self.buffered_bytes(candidate_at(location))
    }

    /// Returns an object like [`Store::get_cached`], in the state for which [`Store::location`]
    /// returned this location, without another lookup. Also returns `None` if the object has since
    /// been moved or removed.
    #[must_use]
    pub fn get_cached_at(
        &self,
        bucket: &str,
        key: &str,
        location: ObjectLocation,
    ) -> Option<Object> {
        let inner = &self.inner;
        let read = inner.read_content_cached(candidate_at(location), bucket, key);
        let Ok(Some(Read::Found(entry, opened))) = read else { return None };
        Counters::count(&inner.counters.local().gets);
        inner.object(bucket, key, entry, opened).ok()?
    }

    /// Returns the object at a location like [`Store::get_cached_at`], with its bytes locked in the
    /// page cache and verified: [`Object::locked`]. Copies nothing, and waits for no disk.
    ///
    /// Returns `None` if the object has at most 64 KiB or a length outside `lengths`, is stored in
    /// an encoded form, is not in a volume or not wholly in the page cache, if the log still writes
    /// near it, or if [`crate::Options::locked_bytes_max`] or the system forbids it. The caller
    /// then uses another function.
    #[must_use]
    pub fn get_locked_at(
        &self,
        bucket: &str,
        key: &str,
        location: ObjectLocation,
        lengths: RangeInclusive<u64>,
    ) -> Option<Object> {
        let inner = &self.inner;
        let mut buffer = [0; log::RECORD_HEADER_BYTES + HEAD_READ_BYTES];
        let candidate = candidate_at(location);
        let (at, front) =
            inner.volumes.log.read_front_hinted_cached(candidate.lsn, &mut buffer).ok()??;
        inner.counters.local().needle_read(front.len());
        let (entry, attributes, data) = inner.blocks(at, front, bucket, key).ok()??;
        if entry.etag.is_encoded() || !lengths.contains(&data.bytes.into()) {
            return None;
        }
        let BlockData { record, data_at, bytes, blocks: checksums, .. } = &data;
        let data = DataLocation { record, data_at: *data_at, bytes: *bytes, checksums };
        let locked = inner.volumes.locked.lock(&inner.volumes.log, &data)?;
        Counters::count(&inner.counters.local().gets);
        let content = Content::Locked(Arc::new(locked));
        Some(Object { info: entry.info(key), attributes, content })
    }

    /// Returns the number of volumes that were removed while objects in them were locked in the page
    /// cache ([`crate::LockedObject`]). Their space is freed when these are dropped: after an
    /// increase, drop those whose [`crate::LockedObject::is_volume_removed`] is `true`.
    #[must_use]
    pub fn locked_removals(&self) -> u64 {
        self.inner.volumes.log.locked_removals()
    }

    fn buffered_bytes(&self, candidate: Candidate) -> u64 {
        match candidate.is_long() {
            true => self.inner.options.big_object_bytes,
            false => candidate.bytes_hint.into(),
        }
    }

    /// Returns an object like [`Store::get`] if it has up to 1 MiB and is in a volume and in the
    /// page cache. Returns `None` if it is longer or not cached, or if the system cannot tell: then
    /// call [`Store::get`]. Never waits for the disk, so a thread that must not block can call it.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchKey`].
    pub fn get_cached(&self, bucket: &str, key: &str) -> Result<Option<Object>> {
        let inner = &self.inner;
        let read = |candidate| inner.read_content_cached(candidate, bucket, key);
        let found = inner.look_up_cached(bucket, key, read)?;
        let Some((entry, opened)) = found else { return Ok(None) };
        inner.object(bucket, key, entry, opened)
    }

    /// Returns an object without its content like [`Store::head`] if its head is in the page cache;
    /// `None` if it is not, or if the system cannot tell. Never waits for the disk.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchKey`].
    pub fn head_cached(&self, bucket: &str, key: &str) -> Result<Option<Object>> {
        let inner = &self.inner;
        let read = |candidate| inner.read_head_cached(candidate, bucket, key);
        let found = inner.look_up_cached(bucket, key, read)?;
        Ok(found.map(|(entry, attributes)| {
            let info = entry.info(key);
            Object { info, attributes, content: Content::Head(entry.files) }
        }))
    }

    /// Opens an object. `open` returns the content of an object whose bytes are in its needle.
    pub(super) fn get_with(
        &self,
        bucket: &str,
        key: &str,
        open: impl Fn(&Arc<Inner>, Candidate) -> Result<Read<(Attributes, Content)>>,
    ) -> Result<Object> {
        let inner = &self.inner;
        Counters::count(&inner.counters.local().gets);
        loop {
            let (entry, opened) = inner.look_up(bucket, key, |candidate| open(inner, candidate))?;
            if let Some(object) = inner.object(bucket, key, entry, opened)? {
                return Ok(object);
            }
        }
    }

    /// Returns one page of a listing.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] while damage may hide keys.
    pub fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<ListPage> {
        Counters::count(&self.inner.counters.local().lists);
        let index = self.inner.keyspace.index.read();
        if let Some(error) = index.any_possible_corruption() {
            return Err(error);
        }
        if !index.has_bucket(bucket) {
            return Err(Error::NoSuchBucket { bucket: bucket.to_owned() });
        }
        let keys = index.keys.snapshot();
        drop(index);
        let page = list(&mut keys.merged(LIST_READAHEAD_BYTES), bucket, request);
        page.map_err(|error| self.inner.note_index_damage(error))
    }

    /// Reads up to `bytes_max` bytes of an object at `offset`; none at its end. If the object has
    /// more than 128 KiB, reads and verifies only its head and the blocks of 64 KiB (128 KiB if it
    /// is in files) that contain these bytes. To read several ranges, open the object once with
    /// [`Store::open_object`].
    ///
    /// May return fewer bytes of an object in files, like [`Object::read`].
    ///
    /// # Errors
    /// Fails like [`Store::get`].
    pub fn get_range(
        &self,
        bucket: &str,
        key: &str,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Bytes> {
        self.open_object(bucket, key)?.read(offset, bytes_max)
    }

    /// Opens an object to read ranges from it. If the object has more than 128 KiB and is in a
    /// volume, reads only its head. [`Object::read`] then reads the 64 KiB blocks that contain the
    /// requested bytes with one request, and verifies them. Reads other objects, and objects that a
    /// Haul version without block checksums stored, like [`Store::get`].
    ///
    /// While the object is open, its volume's file cannot be reused. On a nearly full disk this can
    /// delay compaction, so drop the object soon after it is read.
    ///
    /// # Errors
    /// Fails like [`Store::get`].
    pub fn open_object(&self, bucket: &str, key: &str) -> Result<Object> {
        self.get_with(bucket, key, |inner, candidate| inner.open_content(candidate, bucket, key))
    }
}

fn candidate_at(ObjectLocation { lsn, bytes_hint, .. }: ObjectLocation) -> Candidate {
    Candidate { lsn, bytes_hint }
}
