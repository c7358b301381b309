//! An open run: its block index in memory, and reads of its blocks.

use std::path::PathBuf;
use std::sync::Arc;

use haul_disk::{Disk, File, Open, read_full};
use haul_sync::Mutex;

use crate::error::{Error, Result};
use crate::index::runs::block::{Block, BlockPosition};
use crate::index::runs::block_index::BlockIndex;
use crate::index::runs::format::{BLOCK_BYTES, FOOTER_BYTES, Footer, Malformed, checked_block};
use crate::index::runs::packed::unpack;
use crate::index::runs::writer::RunInfo;

/// The maximum number of unpacked blocks that a run keeps: one for each of as many listings.
pub(crate) const KEPT_BLOCKS_MAX: usize = 8;

/// The maximum memory of a kept block. Only a block with a single entry can need more.
const KEPT_BLOCK_BYTES_MAX: usize = 2 * BLOCK_BYTES;

/// A run that is open for reading. Cursors share it.
#[derive(Debug)]
pub(crate) struct Run {
    file: Arc<dyn File>,
    path: PathBuf,
    info: RunInfo,
    index: BlockIndex,
    /// The unpacked blocks in which cursors ended, with their numbers, from oldest to newest: the
    /// next page of a listing starts where the last one ended.
    kept: Mutex<Vec<(usize, Block)>>,
}

/// Reusable memory for lookups.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    packed: Vec<u8>,
    block: Block,
}

impl Run {
    /// Opens a complete run and verifies its footer and its block index.
    ///
    /// # Errors
    /// `Damaged` if the file is not a complete run; the error of a failed system call.
    pub(crate) fn open(disk: &dyn Disk, name: &str) -> Result<Self> {
        let file = disk.open(name, Open { read_only: true, random: true, ..Open::default() })?;
        let path = disk.root().join(name);
        let bytes = file.bytes()?;
        let damaged = |offset, what: &str| Error::Damaged {
            file: path.clone(),
            offset,
            what: what.to_owned(),
        };
        let Some(footer_offset) = bytes.checked_sub(FOOTER_BYTES as u64) else {
            return Err(damaged(0, "the file is too short for a run"));
        };
        let mut footer = [0; FOOTER_BYTES];
        let read = read_full(&*file, &mut footer, footer_offset)?;
        if read < FOOTER_BYTES {
            return Err(damaged(footer_offset, "the file ends within the footer"));
        }
        let footer = Footer::decode(&footer, bytes).map_err(|what| damaged(footer_offset, what))?;
        let mut index = vec![0; usize::try_from(footer.index_bytes).unwrap_or(usize::MAX)];
        let read = read_full(&*file, &mut index, footer.index_offset)?;
        if read < index.len() || haul_crc::crc32c(&index) != footer.index_checksum {
            return Err(damaged(
                footer.index_offset,
                "the checksum of the block index does not match",
            ));
        }
        let index = BlockIndex::decode(&index, &footer)
            .map_err(|Malformed| damaged(footer.index_offset, "the block index is malformed"))?;
        let info = RunInfo {
            name: name.to_owned(),
            id: footer.id,
            entries: footer.entries,
            deletions: footer.deletions,
            bytes,
        };
        Ok(Self { file, path, info, index, kept: Mutex::default() })
    }

    pub(crate) fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Returns the memory that the block index and the kept blocks use.
    pub(crate) fn memory_bytes(&self) -> usize {
        let kept: usize = self.kept.lock().iter().map(|(_, block)| block.memory_bytes()).sum();
        size_of::<Self>() + self.index.memory_bytes() + kept
    }

    /// Keeps an unpacked block for the next cursor that seeks a key in it.
    pub(crate) fn keep_block(&self, number: usize, block: Block) {
        if block.memory_bytes() > KEPT_BLOCK_BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock();
        kept.retain(|(other, _)| *other != number);
        if kept.len() == KEPT_BLOCKS_MAX {
            kept.remove(0);
        }
        kept.push((number, block));
    }

    /// Removes a kept block and returns it. It has one user, so that it is neither shared nor
    /// copied; another listing that ended in the same block unpacks it again.
    pub(crate) fn take_kept_block(&self, number: usize) -> Option<Block> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|(other, _)| *other == number)?;
        Some(kept.remove(at).1)
    }

    /// Looks up a key with one read: `None` if the run has no entry, `Some(None)` if it has a
    /// tombstone. The value is a part of `buffers`.
    ///
    /// # Errors
    /// `Damaged` if the block is damaged; the error of a failed read.
    pub(crate) fn get<'a>(
        &self,
        key: &[u8],
        buffers: &'a mut Buffers,
    ) -> Result<Option<Option<&'a [u8]>>> {
        let Some(number) = self.index.find(key) else { return Ok(None) };
        let Buffers { packed, block } = buffers;
        self.read_blocks(number, number + 1, packed)?;
        self.unpack_block(number, number, packed, block)?;
        let found = block
            .seek(BlockPosition::default(), 0, key)
            .map_err(|Malformed| self.malformed(number))?;
        Ok(found.and_then(|entry| {
            let is_equal = *block.suffix(&entry) == key[entry.shared..];
            is_equal.then(|| entry.value.map(|value| block.value(value)))
        }))
    }

    pub(crate) fn index(&self) -> &BlockIndex {
        &self.index
    }

    /// Reads the blocks `first..end` to the start of `buffer`, which grows as needed.
    pub(crate) fn read_blocks(&self, first: usize, end: usize, buffer: &mut Vec<u8>) -> Result<()> {
        let offset = self.index.offset(first);
        let bytes = usize::try_from(self.index.offset(end) - offset).unwrap_or(usize::MAX);
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        let read = read_full(&*self.file, &mut buffer[..bytes], offset)?;
        if read < bytes {
            return Err(self.damaged(offset + read as u64, "the file ends within a block"));
        }
        Ok(())
    }

    /// Verifies and unpacks a block in a buffer that starts with the block `first`.
    pub(crate) fn unpack_block(
        &self,
        number: usize,
        first: usize,
        buffer: &[u8],
        block: &mut Block,
    ) -> Result<()> {
        let offset = self.index.offset(number);
        let bytes = &buffer[self.position(number, first)..self.position(number + 1, first)];
        let packed = checked_block(bytes, self.info.id, offset)
            .ok_or_else(|| self.damaged(offset, "the checksum of a block does not match"))?;
        unpack(packed, block).map_err(|Malformed| self.malformed(number))
    }

    /// Returns the start of a block in a buffer that starts with the block `first`.
    fn position(&self, block: usize, first: usize) -> usize {
        let bytes = self.index.offset(block) - self.index.offset(first);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Returns the error for a malformed block, which no writer produces.
    pub(crate) fn malformed(&self, block: usize) -> Error {
        self.damaged(self.index.offset(block), "a block is malformed")
    }

    fn damaged(&self, offset: u64, what: &str) -> Error {
        Error::Damaged { file: self.path.clone(), offset, what: what.to_owned() }
    }
}
