//! A file whose bytes are only in the copy.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use haul_disk::{Allocation, Durability, File, Op};

use crate::error::{Error, Result};
use crate::tier::cache::{BlockCache, FileId};
use crate::tier::catalog::Catalog;

/// The object or the segment that has the bytes.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A complete segment.
    Segment { number: u32, nonce: u64 },
    /// A big object's file, by its name in the store and its identifier.
    Object { name: String, id: u128 },
}

/// A file whose bytes are read from the copy. It cannot be changed.
pub(crate) struct RemoteFile {
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
    /// The file length, in bytes.
    pub(crate) bytes: u64,
    /// The range that is in the copy.
    pub(crate) range: Range<u64>,
    /// A local file with the same length, which has the bytes outside `range`.
    pub(crate) stub: Option<Arc<dyn File>>,
    pub(crate) catalog: Arc<Catalog>,
    /// `None` if the bytes are read once, so that caching them would evict others.
    pub(crate) cache: Option<Arc<BlockCache>>,
}

impl fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RemoteFile {
    fn fetch(&self, range: &Range<u64>) -> Result<Bytes> {
        let fetched = match &self.content {
            Content::Segment { number, nonce } => {
                self.catalog.read_segment(*number, *nonce, range)?
            }
            Content::Object { name, .. } => self.catalog.read_object(name, range)?,
        };
        let wanted = range.end - range.start;
        if fetched.len() as u64 == wanted {
            return Ok(fetched);
        }
        let what = format!("the remote store sent {} bytes of {wanted}", fetched.len());
        Err(Error::Invalid(what))
    }

    /// Reads bytes within the range that is in the copy.
    fn read_remote(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let Some(cache) = &self.cache else {
            let fetched = self.fetch(&(offset..offset + buffer.len() as u64))?;
            buffer.copy_from_slice(&fetched);
            return Ok(());
        };
        let id = match self.content {
            Content::Segment { nonce, .. } => FileId::Segment(nonce),
            Content::Object { id, .. } => FileId::Object(id),
        };
        cache.read(id, self.range.end, buffer, offset, &|range| self.fetch(&range))
    }

    fn read_only_error<T>(&self, op: Op) -> haul_disk::Result<T> {
        let source = io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "it is only in the copy");
        Err(haul_disk::Error::new(op, &self.path, source))
    }
}

impl File for RemoteFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> haul_disk::Result<usize> {
        let end = self.bytes.min(offset.saturating_add(buffer.len() as u64));
        if end <= offset {
            return Ok(0);
        }
        let border = [self.range.start, self.range.end].into_iter().find(|at| *at > offset);
        let end = border.map_or(end, |border| end.min(border));
        let buffer = &mut buffer[..usize::try_from(end - offset).unwrap_or(usize::MAX)];
        match &self.stub {
            Some(stub) if !self.range.contains(&offset) => stub.read_some(buffer, offset),
            _ => {
                let read = self.read_remote(buffer, offset);
                let failed = |error| {
                    let source = io::Error::other(error);
                    haul_disk::Error::new(Op::Read, &self.path, source).at(offset, buffer.len())
                };
                read.map_err(failed)?;
                Ok(buffer.len())
            }
        }
    }

    fn write_some(&self, _bytes: &[u8], _offset: u64) -> haul_disk::Result<usize> {
        self.read_only_error(Op::Write)
    }

    fn bytes(&self) -> haul_disk::Result<u64> {
        Ok(self.bytes)
    }

    fn resize(&self, _bytes: u64) -> haul_disk::Result<()> {
        self.read_only_error(Op::Resize)
    }

    fn allocate(&self, _method: Allocation, _offset: u64, _bytes: u64) -> haul_disk::Result<()> {
        self.read_only_error(Op::Allocate)
    }

    /// Does nothing: the bytes are durable in the copy.
    fn sync(&self, _scope: Durability) -> haul_disk::Result<()> {
        Ok(())
    }

    fn is_local(&self) -> bool {
        false
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
