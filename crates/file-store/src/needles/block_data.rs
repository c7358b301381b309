//! An object's data in a volume, read block by block.

use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::PinnedRecord;

use crate::error::{Error, Result};
use crate::format::BLOCK_BYTES;
use crate::inner::Inner;

/// An object's data in a volume, read block by block. The data stays readable as long as this value
/// exists.
pub(crate) struct BlockData {
    pub(crate) inner: Arc<Inner>,
    /// The bucket and the key, for error messages.
    pub(crate) name: (String, String),
    pub(crate) record: PinnedRecord,
    /// The data's offset in the record's payload.
    pub(crate) data_at: u32,
    pub(crate) bytes: u32,
    /// One checksum per block.
    pub(crate) blocks: Box<[u32]>,
}

impl std::fmt::Debug for BlockData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockData").field("record", &self.record).finish_non_exhaustive()
    }
}

impl BlockData {
    /// Reads up to `bytes_max` bytes at `offset` with one request, and verifies their blocks.
    pub(crate) fn read(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        let all = self.bytes as usize;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(all);
        let to = from.saturating_add(bytes_max).min(all);
        if from == to {
            return Ok(Bytes::new());
        }
        let read = self.read_blocks(from / BLOCK_BYTES, to.div_ceil(BLOCK_BYTES));
        match read {
            Ok(blocks) => {
                let start = from - from % BLOCK_BYTES;
                Ok(Bytes::from(blocks).slice(from - start..to - start))
            }
            Err(error) => {
                let error = self.inner.map_missing_volume(self.record.position().lsn, error);
                self.inner.volumes.damage.note(&self.name.0, &self.name.1, &error);
                Err(error)
            }
        }
    }

    /// Reads the blocks `first..end`.
    fn read_blocks(&self, first: usize, end: usize) -> Result<Vec<u8>> {
        let start = first * BLOCK_BYTES;
        let mut bytes = vec![0; (end * BLOCK_BYTES).min(self.bytes as usize) - start];
        let payload_at = self.data_at + u32::try_from(start).unwrap_or(u32::MAX);
        self.record.read_payload_at(payload_at, &mut bytes)?;
        self.inner.counters.local().needle_read(bytes.len());
        for (number, block) in (first..end).zip(bytes.chunks(BLOCK_BYTES)) {
            if self.blocks.get(number) != Some(&haul_crc::crc32c(block)) {
                return Err(self.damaged(number));
            }
        }
        Ok(bytes)
    }

    fn damaged(&self, number: usize) -> Error {
        let what = format!("the checksum of block {number} of the object does not match");
        self.inner.damaged(self.record.position().lsn, &what)
    }
}
