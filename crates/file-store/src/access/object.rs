//! An object opened for reading.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::access::block_data::BlockData;
use crate::big_files::file::BigReader;
use crate::error::{Error, Result};
use crate::format::FilePart;
use crate::inner::Inner;
use crate::object::{Attributes, ObjectInfo};

/// An object opened for reading. It can be read to its end as it was, also when it is
/// overwritten or deleted meanwhile.
#[derive(Debug)]
pub struct Object {
    /// Its key, length, time and hash.
    pub info: ObjectInfo,
    /// The attributes stored with it.
    pub attributes: Attributes,
    pub(super) content: Content,
}

/// The content of an object, as far as it was read.
#[derive(Debug)]
pub(super) enum Content {
    /// Only the head was asked for; part lengths for an object in files.
    Head(Box<[FilePart]>),
    Memory(Bytes),
    /// The head of an object in a volume was read; its data is read block by block.
    Blocks(BlockData),
    Files(Files),
}

/// The files of a big object, held until this is dropped.
pub(super) struct Files {
    pub(super) inner: Arc<Inner>,
    /// The bucket and the key, to name what is damaged.
    pub(super) name: (String, String),
    pub(super) parts: Box<[FilePart]>,
    /// The file read last, and its number.
    pub(super) open: Mutex<Option<(usize, Arc<BigReader>)>>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let mut index = self.inner.index.write();
        index.files.unpin(&self.parts);
        let freed = index.files.take_freed();
        drop(index);
        self.inner.remove_files(&freed);
    }
}

impl Object {
    /// Up to `bytes_max` bytes at `offset`, checked; none at the end. Of a big object it may be
    /// fewer, and it reads whole blocks past the page cache.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the medium does not return what was written; [`Error::Invalid`] of
    /// an object opened with [`crate::Store::head`].
    pub fn read(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        match &self.content {
            Content::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(from..from.saturating_add(bytes_max).min(bytes.len())))
            }
            Content::Blocks(data) => data.read(offset, bytes_max),
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

    /// Returns `true` if all of its content is in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.in_memory().is_some()
    }

    /// Returns `true` if the object is stored in a volume, so that [`Self::read`] reads any range of
    /// it with one request at most.
    #[must_use]
    pub fn is_in_volume(&self) -> bool {
        self.files().is_empty()
    }

    pub(crate) fn in_memory(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Memory(bytes) => Some(bytes),
            Content::Head(_) | Content::Blocks(_) | Content::Files(_) => None,
        }
    }

    pub(crate) fn files(&self) -> &[FilePart] {
        match &self.content {
            Content::Memory(_) | Content::Blocks(_) => &[],
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
