//! Reads needles: whole, in blocks, or only their attributes.

use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::{self as log, Position, Record};
use haul_sync::Mutex;

use crate::error::Result;
use crate::format::{Head, Needle, NeedleError};
use crate::index::addresses::Candidate;
use crate::index::entry::Entry;
use crate::inner::Inner;
use crate::needles::block_data::BlockData;
use crate::needles::lookup::{HEAD_READ_BYTES, Read, is_object};
use crate::needles::object::{Content, Files, Object};
use crate::object::Attributes;

/// The longest record that [`Inner::read_content_cached`] reads. Copying and verifying it takes
/// about as long as a reactor thread may be busy.
const CACHED_BYTES_MAX: u32 = (1 << 20) + (64 << 10);

impl Inner {
    /// Returns the object whose needle was read; `None` if the object has files and was overwritten
    /// in the meantime, because these files may have been removed.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the files do not have the length that the needle declares.
    pub(crate) fn object(
        self: &Arc<Self>,
        bucket: &str,
        key: &str,
        entry: Entry,
        (attributes, content): (Attributes, Content),
    ) -> Result<Option<Object>> {
        let info = entry.info(key);
        if entry.files.is_empty() {
            return Ok(Some(Object { info, attributes, content }));
        }
        let file_bytes: u128 = entry.files.iter().map(|file| u128::from(file.bytes)).sum();
        if file_bytes != u128::from(info.bytes) {
            let what =
                format!("its files have {file_bytes} bytes, its head declares {}", info.bytes);
            let error = self.damaged(entry.at.lsn, &what);
            self.volumes.damage.note(bucket, key, &error);
            return Err(error);
        }
        let mut index = self.keyspace.index.write();
        if !index.is_object_at(bucket, key, entry.at) {
            return Ok(None);
        }
        index.files.pin(&entry.files);
        drop(index);
        let (inner, open) = (Arc::clone(self), Mutex::new(None));
        let name = (bucket.to_owned(), key.to_owned());
        let files = Files { inner, name, parts: entry.files, open };
        Ok(Some(Object { info, attributes, content: Content::Files(files) }))
    }

    /// Reads a whole needle, if it is in the page cache and not longer than [`CACHED_BYTES_MAX`].
    pub(crate) fn read_content_cached(
        &self,
        candidate: Candidate,
        bucket: &str,
        key: &str,
    ) -> Result<Option<Read<(Attributes, Content)>>> {
        let (lsn, hint) = (candidate.lsn, candidate.bytes_hint);
        let buffer = self.buffer_for(candidate);
        let record = self.volumes.log.read_hinted_cached(lsn, hint, CACHED_BYTES_MAX, buffer)?;
        let Some(record) = record else { return Ok(None) };
        self.counters.local().needle_read(log::RECORD_HEADER_BYTES + record.payload().len());
        self.content(record, bucket, key).map(Some)
    }

    /// Reads a whole needle with one request.
    pub(crate) fn read_content(
        &self,
        candidate: Candidate,
        bucket: &str,
        key: &str,
    ) -> Result<Read<(Attributes, Content)>> {
        let (lsn, hint) = (candidate.lsn, candidate.bytes_hint);
        let record = match self.volumes.log.read_hinted_into(lsn, hint, self.buffer_for(candidate))
        {
            Err(error @ log::Error::Damaged { .. }) => {
                // The needle of a big object is short, and enough of it may be intact.
                let salvaged = self.salvage(candidate, bucket, key);
                let big = salvaged.filter(|(entry, _)| !entry.files.is_empty());
                let (entry, attributes) = big.ok_or(error)?;
                return Ok(Read::Found(entry, (attributes, Content::Memory(Bytes::new()))));
            }
            read => read?,
        };
        self.counters.local().needle_read(log::RECORD_HEADER_BYTES + record.payload().len());
        self.content(record, bucket, key)
    }

    /// Returns the object in a record that was read whole.
    pub(crate) fn content(
        &self,
        record: Record,
        bucket: &str,
        key: &str,
    ) -> Result<Read<(Attributes, Content)>> {
        let at = record.position();
        let (record, payload_at) = record.into_bytes();
        let needle = self.check(Needle::decode(&record[payload_at..]), at)?;
        if !is_object(&needle, bucket, key) {
            return Ok(Read::Other);
        }
        let entry = Entry::of(&needle.head, at);
        let data_bytes = self.check(needle.data(), at)?.len();
        let from = record.len() - needle.rest.len();
        let attributes = needle.attributes;
        let content = Content::Memory(self.volumes.buffers.share(record, from..from + data_bytes));
        Ok(Read::Found(entry, (attributes, content)))
    }

    /// Returns a buffer to read a record into: a reused one for a long record.
    fn buffer_for(&self, candidate: Candidate) -> Vec<u8> {
        if candidate.is_long() { self.volumes.buffers.take() } else { Vec::new() }
    }

    /// Reads the attributes in an upload's or a part's needle.
    pub(crate) fn read_attributes(&self, at: Position) -> Result<Attributes> {
        self.read_head_at(at).map(|(_, attributes)| attributes)
    }

    /// Reads the head of the needle at the start of a record, without its data. The caller has
    /// locked the key, so that compaction does not remove the record.
    pub(crate) fn read_head_at(&self, at: Position) -> Result<(Head, Attributes)> {
        let mut front = vec![0; HEAD_READ_BYTES.min(at.payload_bytes as usize)];
        loop {
            self.volumes
                .log
                .read_front(at, &mut front)
                .map_err(|error| self.map_missing_volume(at.lsn, error.into()))?;
            self.counters.local().needle_read(front.len());
            match Needle::decode(&front) {
                Err(NeedleError::Needs(bytes)) if bytes <= at.payload_bytes as usize => {
                    front.resize(bytes, 0);
                }
                decoded => {
                    let needle = self.check(decoded, at)?;
                    return Ok((needle.head, needle.attributes));
                }
            }
        }
    }

    /// Reads a needle's head. Also reads its data, unless that can be read block by block.
    pub(crate) fn open_content(
        self: &Arc<Self>,
        candidate: Candidate,
        bucket: &str,
        key: &str,
    ) -> Result<Read<(Attributes, Content)>> {
        if candidate.is_long()
            && let Some((entry, attributes, data)) = self.open_blocks(candidate, bucket, key)?
        {
            return Ok(Read::Found(entry, (attributes, Content::Blocks(data))));
        }
        self.read_content(candidate, bucket, key)
    }

    /// Reads a needle's head; `None` if it has no block checksums or belongs to another object.
    fn open_blocks(
        self: &Arc<Self>,
        candidate: Candidate,
        bucket: &str,
        key: &str,
    ) -> Result<Option<(Entry, Attributes, BlockData)>> {
        let (at, front) = self.read_front(candidate)?;
        self.blocks(at, &front, bucket, key)
    }

    /// Returns the object in a record whose start was read; `None` if it has no block checksums or
    /// belongs to another object.
    pub(crate) fn blocks(
        self: &Arc<Self>,
        at: Position,
        front: &[u8],
        bucket: &str,
        key: &str,
    ) -> Result<Option<(Entry, Attributes, BlockData)>> {
        let needle = self.check(Needle::decode(front), at)?;
        let (data_at, bytes) = (front.len() - needle.rest.len(), needle.head.inline_bytes());
        let has_blocks = !needle.head.blocks.is_empty()
            && data_at.saturating_add(bytes) <= at.payload_bytes as usize;
        if !has_blocks || !is_object(&needle, bucket, key) {
            return Ok(None);
        }
        let Needle { head, attributes, .. } = needle;
        let entry = Entry::of(&head, at);
        let [data_at, bytes] = [data_at, bytes].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let (name, blocks) = ((bucket.to_owned(), key.to_owned()), head.blocks);
        let (inner, record) = (Arc::clone(self), self.volumes.log.pin(at)?);
        let data = BlockData { inner, name, record, data_at, bytes, blocks };
        Ok(Some((entry, attributes, data)))
    }
}
