//! Content that is written before it is stored under a key.

use std::sync::Arc;

use md5::{Digest, Md5};

use crate::big_files::directory::Objects;
use crate::big_files::file::{BigReader, BigWriter};
use crate::error::Result;
use crate::format::FilePart;
use crate::index::quotas::{Reserved, WriteGrant};
use crate::object::Etag;

/// A writer that collects an object's bytes: in memory while the object may be small, and in a file
/// once it is big. If it is dropped before [`ObjectWriter::finish`], nothing remains.
#[derive(Debug)]
pub struct ObjectWriter {
    objects: Arc<Objects>,
    /// The minimum length of a big object.
    big_bytes: u64,
    expected: Option<u64>,
    md5: Md5,
    bytes: u64,
    memory: Vec<u8>,
    file: Option<BigWriter>,
    grant: WriteGrant,
}

/// Complete content that is not stored under a key yet. Dropping it discards the content. It can be
/// stored in another store of a pool than the one that returned its writer; a file is then copied.
#[derive(Debug)]
pub struct WrittenContent {
    bytes: u64,
    etag: Etag,
    content: Content,
    reserved: Reserved,
}

#[derive(Debug)]
pub(crate) enum Content {
    Memory(Vec<u8>),
    File(UnreferencedFile),
}

/// A published file that no needle references. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct UnreferencedFile {
    objects: Arc<Objects>,
    part: Option<FilePart>,
}

impl UnreferencedFile {
    pub(crate) fn part(&self) -> Option<FilePart> {
        self.part
    }

    pub(crate) fn is_in(&self, objects: &Arc<Objects>) -> bool {
        Arc::ptr_eq(&self.objects, objects)
    }

    pub(crate) fn open(&self, part: FilePart) -> Result<BigReader> {
        BigReader::open(&self.objects, part)
    }

    /// Keeps the file when this value is dropped, because a needle may reference it.
    pub(crate) fn keep(&mut self) {
        self.part = None;
    }
}

impl Drop for UnreferencedFile {
    fn drop(&mut self) {
        if let Some(part) = self.part {
            self.objects.remove(part.id);
        }
    }
}

impl ObjectWriter {
    pub(crate) fn new(
        objects: Arc<Objects>,
        big_bytes: u64,
        expected: Option<u64>,
    ) -> Result<Self> {
        let mut writer = Self {
            objects,
            big_bytes,
            expected,
            md5: Md5::new(),
            bytes: 0,
            memory: Vec::new(),
            file: None,
            grant: WriteGrant::default(),
        };
        if expected.map_or(big_bytes == 0, |bytes| bytes >= big_bytes) {
            writer.go_to_file()?;
        }
        Ok(writer)
    }

    pub(crate) fn with_grant(self, grant: WriteGrant) -> Self {
        Self { grant, ..self }
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// [`crate::Error::Full`], or [`crate::Error::Disk`] if the kernel refuses the write;
    /// [`crate::Error::QuotaExceeded`] if the length was not declared, and becomes too long.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let length = self.bytes + bytes.len() as u64;
        if let Some(bytes_left) = &self.grant.bytes_left {
            bytes_left.check(length)?;
        }
        self.md5.update(bytes);
        self.bytes = length;
        if self.file.is_none() && self.bytes >= self.big_bytes {
            self.go_to_file()?;
        }
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => {
                self.memory.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn go_to_file(&mut self) -> Result<()> {
        let id = u128::from_le_bytes(haul_disk::random_bytes()?);
        let mut file = BigWriter::create(Arc::clone(&self.objects), id, self.expected)?;
        file.write(&std::mem::take(&mut self.memory))?;
        self.file = Some(file);
        Ok(())
    }

    /// Returns the number of bytes written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Completes the content.
    ///
    /// # Errors
    /// Fails like [`ObjectWriter::write`].
    ///
    /// # Durability
    /// The file of a big object is on stable storage. The object exists only when
    /// [`crate::Store::put_written`] has returned.
    pub fn finish(self) -> Result<WrittenContent> {
        let content = match self.file {
            Some(file) => {
                let part = Some(file.finish()?);
                Content::File(UnreferencedFile { objects: self.objects, part })
            }
            None => Content::Memory(self.memory),
        };
        let etag = Etag { md5: self.md5.finalize().into(), parts: 0 };
        Ok(WrittenContent { bytes: self.bytes, etag, content, reserved: self.grant.reserved })
    }
}

impl WrittenContent {
    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the MD5 of the bytes.
    #[must_use]
    pub fn md5(&self) -> [u8; 16] {
        self.etag.md5
    }

    /// Declares that the bytes are an encoded form of the content, such as an encrypted one, and
    /// sets the hash in the object's or part's [`Etag`]. The store reads and verifies the bytes as
    /// they were written; only the caller can decode them. If an upload has such a part, its
    /// object's content is encoded.
    #[must_use]
    pub fn encoded(self, md5: [u8; 16]) -> Self {
        Self { etag: Etag { md5, parts: Etag::ENCODED }, ..self }
    }

    pub(crate) fn with_etag(self, etag: Etag) -> Self {
        Self { etag, ..self }
    }

    pub(crate) fn etag(&self) -> Etag {
        self.etag
    }

    /// Returns the content and its reservation.
    pub(crate) fn into_content(self) -> (Content, Reserved) {
        (self.content, self.reserved)
    }
}
