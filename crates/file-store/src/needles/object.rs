//! An object that is open for reading.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use haul_disk::File;
use haul_sync::Mutex;

use crate::big_files::file::BigReader;
use crate::big_files::pinned::PinnedFile;
use crate::error::{Error, Result};
use crate::format::FilePart;
use crate::inner::Inner;
use crate::memory::locked::LockedObject;
use crate::needles::block_data::BlockData;
use crate::object::{Attributes, ObjectInfo};

/// An object that is open for reading. Its bytes stay readable even if it is overwritten or deleted
/// in the meantime.
#[derive(Debug)]
pub struct Object {
    /// The key, length, modification time and hash.
    pub info: ObjectInfo,
    /// The attributes that were stored with the object.
    pub attributes: Attributes,
    pub(crate) content: Content,
}

/// The maximum number of files in a pinned object. Each request counts and looks up all of them on
/// a reactor thread.
const PINNED_PARTS_MAX: usize = 256;

/// A range of a file in memory that belongs to an object.
#[derive(Debug)]
pub struct PinnedRange {
    /// The file.
    pub file: Arc<PinnedFile>,
    /// The first byte in the file.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The content of an object, as far as it was read.
#[derive(Debug)]
pub(crate) enum Content {
    /// Only the head was read. The lengths of the parts are known if the object is in files.
    Head(Box<[FilePart]>),
    Memory(Bytes),
    /// The object is in a volume. Its data is read block by block.
    Blocks(BlockData),
    /// The object is in a volume, and its data is locked in the page cache.
    Locked(Arc<LockedObject>),
    Files(Files),
}

/// The files of a big object, referenced until this value is dropped.
pub(crate) struct Files {
    pub(crate) inner: Arc<Inner>,
    /// The bucket and the key, for error messages.
    pub(crate) name: (String, String),
    pub(crate) parts: Box<[FilePart]>,
    /// The index and the reader of the file that was read last.
    pub(crate) open: Mutex<Option<(usize, Arc<BigReader>)>>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let mut index = self.inner.keyspace.index.write();
        index.files.unpin(&self.parts);
        let freed = index.files.take_freed();
        drop(index);
        self.inner.remove_files(&freed);
    }
}

impl Object {
    /// Returns `true` if the whole content is in memory or in files.
    pub(crate) fn has_content(&self) -> bool {
        matches!(self.content, Content::Memory(_) | Content::Files(_))
    }

    /// Returns `true` for a delete marker, which no caller of the store receives.
    pub(crate) fn is_delete_marker(&self) -> bool {
        self.info.bytes == 0 && self.info.etag.md5 == [0; 16]
    }

    /// Reads and verifies up to `bytes_max` bytes at `offset`; none at the end. May return fewer
    /// bytes of a big object, whose blocks are read with direct I/O.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes read fail their checksum; [`Error::Invalid`] for an object
    /// returned by [`crate::Store::head`].
    pub fn read(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        match &self.content {
            Content::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(from..from.saturating_add(bytes_max).min(bytes.len())))
            }
            Content::Blocks(data) => data.read(offset, bytes_max),
            Content::Locked(locked) => locked.read(offset, bytes_max),
            Content::Files(files) => files.read(offset, bytes_max),
            Content::Head(_) => {
                Err(Error::Invalid { what: "only the head of this object was read".to_owned() })
            }
        }
    }

    /// Returns the object's locked bytes, if [`crate::Store::get_locked_at`] returned it.
    #[must_use]
    pub fn locked(&self) -> Option<&Arc<LockedObject>> {
        match &self.content {
            Content::Locked(locked) => Some(locked),
            _ => None,
        }
    }

    /// Returns the pinned range of the object that starts at `offset`: locked in the page cache and
    /// verified. `None` if the byte at `offset` is not pinned.
    #[must_use]
    pub fn pinned(&self, offset: u64) -> Option<PinnedRange> {
        let Content::Files(files) = &self.content else { return None };
        let (number, start) = files.part_at(offset)?;
        let part = files.parts[number];
        let file = files.inner.objects.pinned.get(part.id)?;
        let offset = offset - start;
        Some(PinnedRange { file, offset, bytes: part.bytes - offset })
    }

    /// Counts a request for the whole object. Returns `true` if it is requested often enough that
    /// the caller should call [`Self::pin`].
    #[must_use]
    pub fn count_request(&self) -> bool {
        let Content::Files(files) = &self.content else { return false };
        if matches!(&*files.open.lock(), Some((_, reader)) if !reader.is_local()) {
            return false;
        }
        let (pinned, now) = (&files.inner.objects.pinned, Instant::now());
        if files.parts.len() > PINNED_PARTS_MAX || !pinned.can_hold(self.info.bytes) {
            return false;
        }
        // Each of its files is counted, so that none of them becomes idle.
        let due = files.parts.iter().map(|part| pinned.count(part.id, now));
        due.fold(false, |any, is_due| any | is_due)
    }

    /// Reads the files of a big object into the page cache, locks them there, and verifies them:
    /// all of them or, if [`crate::Options::pinned_bytes_max`] does not allow it, none. Blocks
    /// while it reads. Returns the number of bytes that were pinned.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes read fail their checksum; [`Error::Disk`] if memory cannot
    /// be locked: no object is pinned until the store is reopened.
    pub fn pin(&self) -> Result<u64> {
        let Content::Files(files) = &self.content else { return Ok(0) };
        let objects = &files.inner.objects;
        let reader = |number: usize| files.reader(number, files.parts[number]);
        let map = |number| reader(number)?.map(objects);
        let verify = |number, file: &dyn File| reader(number)?.verify_all(file);
        objects.pinned.pin(&files.parts, map, verify).map_err(|error| files.note(error))
    }

    /// Returns the length of each part of the upload; one length for an object that was not
    /// uploaded in parts.
    #[must_use]
    pub fn part_bytes(&self) -> Vec<u64> {
        let files = self.files();
        // A copy in one piece may share the files of an object in parts.
        if files.is_empty() || self.info.etag.parts == 0 {
            return vec![self.info.bytes];
        }
        files.iter().map(|file| file.bytes).collect()
    }

    /// Returns `true` if the whole content is in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.in_memory().is_some()
    }

    /// Returns `true` if the object is stored in a volume: [`Self::read`] then reads any range of
    /// it with at most one request.
    #[must_use]
    pub fn is_in_volume(&self) -> bool {
        self.files().is_empty()
    }

    /// Returns `true` if the object's files are in this store.
    pub(crate) fn is_in(&self, inner: &Arc<Inner>) -> bool {
        matches!(&self.content, Content::Files(files) if Arc::ptr_eq(&files.inner, inner))
    }

    /// Returns the files of a big object that was opened with its content.
    pub(crate) fn open_files(&self) -> Option<&Files> {
        match &self.content {
            Content::Files(files) => Some(files),
            _ => None,
        }
    }

    pub(crate) fn in_memory(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Memory(bytes) => Some(bytes),
            Content::Head(_) | Content::Blocks(_) | Content::Locked(_) | Content::Files(_) => None,
        }
    }

    pub(crate) fn files(&self) -> &[FilePart] {
        match &self.content {
            Content::Memory(_) | Content::Blocks(_) | Content::Locked(_) => &[],
            Content::Head(files) => files,
            Content::Files(files) => &files.parts,
        }
    }
}

impl Files {
    /// References files until the result is dropped. The caller has locked the key whose needles
    /// reference them.
    pub(crate) fn pin(inner: &Arc<Inner>, bucket: &str, key: &str, parts: &[FilePart]) -> Self {
        inner.keyspace.index.write().files.pin(parts);
        let name = (bucket.to_owned(), key.to_owned());
        Self { inner: Arc::clone(inner), name, parts: parts.into(), open: Mutex::new(None) }
    }

    /// Reads and verifies up to `bytes_max` bytes at `offset` in the files, one after another.
    pub(crate) fn read(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        let Some((number, start)) = self.part_at(offset) else { return Ok(Bytes::new()) };
        let reader = self.reader(number, self.parts[number]);
        let read = reader.and_then(|reader| reader.read(offset - start, bytes_max));
        read.map_err(|error| self.note(error))
    }

    /// Records damage to the object, and returns the error.
    fn note(&self, error: Error) -> Error {
        self.inner.volumes.damage.note(&self.name.0, &self.name.1, &error);
        error
    }

    /// Returns the index and the start of the part that contains `offset`.
    fn part_at(&self, offset: u64) -> Option<(usize, u64)> {
        let mut start = 0;
        for (number, part) in self.parts.iter().enumerate() {
            if offset < start + part.bytes {
                return Some((number, start));
            }
            start += part.bytes;
        }
        None
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
