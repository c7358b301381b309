//! Reading objects.

use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::{self as log, Position};
use parking_lot::Mutex;

use crate::big_files::file::BigReader;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::{FilePart, Needle, NotANeedle};
use crate::index::Entry;
use crate::index::list::list;
use crate::inner::Inner;
use crate::object::{Attributes, ListPage, ListRequest, ObjectInfo};
use crate::store::Store;

/// How much of a needle is read for its head alone: enough for all but very long attributes.
const HEAD_READ_BYTES: usize = 4096;

/// How often a look-up is repeated when compaction moves the needle away under it.
const LOOKUPS_MAX: usize = 16;

/// An object opened for reading. It can be read to its end as it was, also when it is
/// overwritten or deleted meanwhile.
#[derive(Debug)]
pub struct Object {
    /// What is known of it.
    pub info: ObjectInfo,
    /// What was stored with it.
    pub attributes: Attributes,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Only the head was asked for; part lengths for an object in files.
    Head(Box<[FilePart]>),
    Memory(Bytes),
    Files(Files),
}

/// The files of a big object, held until this is dropped.
struct Files {
    inner: Arc<Inner>,
    /// The bucket and the key, to name what is damaged.
    name: (String, String),
    parts: Box<[FilePart]>,
    /// The file read last, and its number.
    open: Mutex<Option<(usize, Arc<BigReader>)>>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let freed = self.inner.index.write().release(&self.parts);
        self.inner.remove_files(&freed);
    }
}

impl Store {
    /// What is known of an object, from memory.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchKey`]; [`Error::Damaged`] where the newest state of
    /// the key may be in a damaged place.
    pub fn stat(&self, bucket: &str, key: &str) -> Result<ObjectInfo> {
        Ok(self.inner.entry(bucket, key)?.info(key))
    }

    /// An object without its content, with one read of a few KiB.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn head(&self, bucket: &str, key: &str) -> Result<Object> {
        Counters::count(&self.inner.counters.gets);
        let (entry, attributes) = self
            .inner
            .look_up(bucket, key, |entry| self.inner.read_attributes(entry, bucket, key))?;
        let info = entry.info(key);
        Ok(Object { info, attributes, content: Content::Head(entry.files) })
    }

    /// An object: a small one whole, with one read; a big one ready to be read.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchKey`]; [`Error::Damaged`] when the medium does not
    /// return what was written.
    pub fn get(&self, bucket: &str, key: &str) -> Result<Object> {
        let inner = &self.inner;
        Counters::count(&inner.counters.gets);
        loop {
            let (entry, (attributes, bytes)) = inner.look_up(bucket, key, |entry| {
                if entry.files.is_empty() {
                    inner.read_needle(entry, bucket, key)
                } else {
                    Ok((inner.read_attributes(entry, bucket, key)?, Bytes::new()))
                }
            })?;
            let info = entry.info(key);
            if entry.files.is_empty() {
                return Ok(Object { info, attributes, content: Content::Memory(bytes) });
            }
            let mut index = inner.index.write();
            // Unless it was overwritten since: then its files may be gone.
            if index.object(bucket, key) == Some(&entry) {
                index.hold(&entry.files);
                drop(index);
                let (inner, open) = (Arc::clone(inner), Mutex::new(None));
                let name = (bucket.to_owned(), key.to_owned());
                let files = Files { inner, name, parts: entry.files, open };
                return Ok(Object { info, attributes, content: Content::Files(files) });
            }
        }
    }

    /// One page of a listing, from memory.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] while damage may hide keys.
    pub fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<ListPage> {
        Counters::count(&self.inner.counters.lists);
        let index = self.inner.index.read();
        if let Some(error) = index.doubt_all() {
            return Err(error);
        }
        match index.buckets.get(bucket) {
            Some(bucket) => Ok(list(&bucket.objects, request)),
            None => Err(Error::NoSuchBucket { bucket: bucket.to_owned() }),
        }
    }
}

impl Object {
    /// Up to `bytes_max` bytes at `offset`, checked; none at the end. Of a big object it may be
    /// fewer, and it reads whole blocks past the page cache.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the medium does not return what was written; [`Error::Invalid`] of
    /// an object opened with [`Store::head`].
    pub fn read(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        match &self.content {
            Content::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(from..from.saturating_add(bytes_max).min(bytes.len())))
            }
            Content::Files(files) => files.read(offset, bytes_max),
            Content::Head(_) => {
                Err(Error::Invalid { what: "only the head of this object was read".to_owned() })
            }
        }
    }

    /// The lengths of the parts it was uploaded in; one for an object stored in one piece.
    #[must_use]
    pub fn part_bytes(&self) -> Vec<u64> {
        let files = self.files();
        if files.is_empty() {
            return vec![self.info.bytes];
        }
        files.iter().map(|file| file.bytes).collect()
    }

    /// Whether all of its content is in memory already.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.in_memory().is_some()
    }

    pub(crate) fn in_memory(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Memory(bytes) => Some(bytes),
            Content::Head(_) | Content::Files(_) => None,
        }
    }

    pub(crate) fn files(&self) -> &[FilePart] {
        match &self.content {
            Content::Memory(_) => &[],
            Content::Head(files) => files,
            Content::Files(files) => &files.parts,
        }
    }
}

impl Files {
    fn read(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        let read = self.read_part(offset, bytes_max);
        if let Err(error) = &read {
            self.inner.damage.note(&self.name.0, &self.name.1, error);
        }
        read
    }

    fn read_part(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        let mut start = 0;
        for (number, part) in self.parts.iter().enumerate() {
            if offset < start + part.bytes {
                return self.reader(number, *part)?.read(offset - start, bytes_max);
            }
            start += part.bytes;
        }
        Ok(Bytes::new())
    }

    fn reader(&self, number: usize, part: FilePart) -> Result<Arc<BigReader>> {
        let mut open = self.open.lock();
        match &*open {
            Some((last, reader)) if *last == number => Ok(Arc::clone(reader)),
            _ => {
                let reader = Arc::new(BigReader::open(&self.inner.objects, part)?);
                *open = Some((number, Arc::clone(&reader)));
                Ok(reader)
            }
        }
    }
}

impl Inner {
    fn entry(&self, bucket: &str, key: &str) -> Result<Entry> {
        let index = self.index.read();
        let Some(found) = index.buckets.get(bucket) else {
            let missing = || Error::NoSuchBucket { bucket: bucket.to_owned() };
            return Err(index.doubt_bucket(bucket).unwrap_or_else(missing));
        };
        if let Some(error) = index.doubt(bucket, key) {
            return Err(error);
        }
        let missing = || Error::NoSuchKey { bucket: bucket.to_owned(), key: key.to_owned() };
        found.objects.get(key).cloned().ok_or_else(missing)
    }

    /// Looks an object up and reads its needle, again when compaction moved it in between.
    fn look_up<T>(
        &self,
        bucket: &str,
        key: &str,
        read: impl Fn(&Entry) -> Result<T>,
    ) -> Result<(Entry, T)> {
        let mut looks = 0;
        loop {
            let entry = self.entry(bucket, key)?;
            looks += 1;
            match read(&entry) {
                Err(Error::Log(log::Error::Invalid(_))) if looks < LOOKUPS_MAX => {}
                Ok(read) => return Ok((entry, read)),
                Err(error) => {
                    let error = self.explain(entry.at, error);
                    self.damage.note(bucket, key, &error);
                    return Err(error);
                }
            }
        }
    }

    /// Makes damage of the error that a missing volume gives.
    pub(crate) fn explain(&self, at: Position, error: Error) -> Error {
        if !matches!(error, Error::Log(log::Error::Invalid(_))) {
            return error;
        }
        let file = self.volumes.root().join(log::segment_name(at.lsn.segment()));
        let what = "the volume is missing or cannot be opened".to_owned();
        Error::Damaged { file, offset: at.lsn.offset().into(), what }
    }

    /// Reads a whole needle with one request.
    pub(crate) fn read_needle(
        &self,
        entry: &Entry,
        bucket: &str,
        key: &str,
    ) -> Result<(Attributes, Bytes)> {
        let (record, payload_at) = self.log.read(entry.at)?.into_bytes();
        self.counters.needle_read(record.len());
        let needle = Needle::decode(&record[payload_at..]);
        let needle = self.check(needle, entry, bucket, key)?;
        let from = record.len() - needle.rest.len();
        let attributes = needle.attributes;
        let data = Bytes::from(record).slice(from..);
        Ok((attributes, data))
    }

    /// Reads the head of a needle, with one request unless its attributes are very long.
    pub(crate) fn read_attributes(
        &self,
        entry: &Entry,
        bucket: &str,
        key: &str,
    ) -> Result<Attributes> {
        let payload_bytes = entry.at.payload_bytes as usize;
        let mut front = vec![0; HEAD_READ_BYTES.min(payload_bytes)];
        loop {
            self.log.read_front(entry.at, &mut front)?;
            self.counters.needle_read(front.len());
            match Needle::decode(&front) {
                Err(NotANeedle::Needs(bytes)) if bytes <= payload_bytes => front.resize(bytes, 0),
                decoded => return Ok(self.check(decoded, entry, bucket, key)?.attributes),
            }
        }
    }

    /// Makes sure that this is the needle the index means.
    fn check<'a>(
        &self,
        decoded: std::result::Result<Needle<'a>, NotANeedle>,
        entry: &Entry,
        bucket: &str,
        key: &str,
    ) -> Result<Needle<'a>> {
        let what = match decoded {
            Ok(needle)
                if needle.head.version == entry.version
                    && needle.head.bucket == bucket
                    && needle.head.key == key =>
            {
                return Ok(needle);
            }
            Ok(_) => "this is the needle of another object",
            Err(NotANeedle::Malformed(what)) => what,
            Err(NotANeedle::Needs(_)) => "the needle is cut short",
        };
        let lsn = entry.at.lsn;
        let file = self.volumes.root().join(log::segment_name(lsn.segment()));
        Err(Error::Damaged { file, offset: u64::from(lsn.offset()), what: what.to_owned() })
    }
}
