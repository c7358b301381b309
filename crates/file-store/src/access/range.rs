//! Reads ranges from objects in volumes.

use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::Position;

use crate::access::block_data::BlockData;
use crate::access::lookup::{Read, is_object};
use crate::access::object::{Content, Object};
use crate::error::Result;
use crate::format::Needle;
use crate::index::addresses::Candidate;
use crate::index::entry::Entry;
use crate::inner::Inner;
use crate::object::Attributes;
use crate::store::Store;

impl Store {
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

impl Inner {
    /// Reads a needle's head. Also reads its data, unless that can be read block by block.
    fn open_content(
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
    pub(super) fn blocks(
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
