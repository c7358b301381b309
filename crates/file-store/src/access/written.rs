//! Content on its way into the store: taken first, named afterwards.

use std::sync::Arc;

use md5::{Digest, Md5};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::big_files::directory::Objects;
use crate::big_files::file::BigWriter;
use crate::error::Result;
use crate::format::FilePart;

/// Takes the bytes of an object piece by piece: into memory while they may still be a small
/// object, into a file of their own from then on. Dropped before [`ObjectWriter::finish`], it
/// leaves nothing behind.
#[derive(Debug)]
pub struct ObjectWriter {
    objects: Arc<Objects>,
    /// From this many bytes on, the object is a big one.
    big_bytes: u64,
    expected: Option<u64>,
    md5: Md5,
    bytes: u64,
    memory: Vec<u8>,
    file: Option<BigWriter>,
}

/// Content that is complete, and has no name yet. Dropped, it is gone.
#[derive(Debug)]
pub struct Written {
    bytes: u64,
    md5: [u8; 16],
    content: Content,
}

/// Where the content is.
#[derive(Debug)]
pub(crate) enum Content {
    Memory(Vec<u8>),
    File(NamelessFile),
}

/// A published file no needle refers to; dropped so, it is removed.
#[derive(Debug)]
pub(crate) struct NamelessFile {
    objects: Arc<Objects>,
    part: Option<FilePart>,
}

impl NamelessFile {
    pub(crate) fn part(&self) -> Option<FilePart> {
        self.part
    }

    /// A needle may refer to the file from now on.
    pub(crate) fn keep(&mut self) {
        self.part = None;
    }
}

impl Drop for NamelessFile {
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
        };
        if expected.map_or(big_bytes == 0, |bytes| bytes >= big_bytes) {
            writer.go_to_file()?;
        }
        Ok(writer)
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`crate::Error::Full`], or the kernel's refusal to write.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.md5.update(bytes);
        self.bytes += bytes.len() as u64;
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
        let mut id = [0; 16];
        getrandom(&mut id, GetRandomFlags::empty()).map_err(|errno| {
            haul_disk::Error::new(haul_disk::Op::Read, "the kernel's random numbers", errno)
        })?;
        let id = u128::from_le_bytes(id);
        let mut file = BigWriter::create(Arc::clone(&self.objects), id, self.expected)?;
        file.write(&std::mem::take(&mut self.memory))?;
        self.file = Some(file);
        Ok(())
    }

    /// How many bytes were taken.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the content.
    ///
    /// # Errors
    /// As [`ObjectWriter::write`].
    ///
    /// # Durability
    /// A big object's file is on the medium; it is an object only when
    /// [`crate::Store::put_written`] has returned.
    pub fn finish(self) -> Result<Written> {
        let content = match self.file {
            Some(file) => {
                let part = Some(file.finish()?);
                Content::File(NamelessFile { objects: self.objects, part })
            }
            None => Content::Memory(self.memory),
        };
        Ok(Written { bytes: self.bytes, md5: self.md5.finalize().into(), content })
    }
}

impl Written {
    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Their MD5.
    #[must_use]
    pub fn md5(&self) -> [u8; 16] {
        self.md5
    }

    pub(crate) fn into_content(self) -> Content {
        self.content
    }
}
