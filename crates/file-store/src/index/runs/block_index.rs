//! A run's block index in memory: a separator and an offset for each block.

use crate::index::runs::format::{Footer, Malformed, decode_index_entry};

/// The separators and offsets of a run's blocks.
///
/// A block's keys are at least its separator and less than the next block's separator. All
/// separators are in one allocation, so that a block costs 12 bytes plus its separator.
#[derive(Debug)]
pub(crate) struct BlockIndex {
    separators: Box<[u8]>,
    /// The end of each separator.
    ends: Box<[u32]>,
    /// The offset of each block, and the end of the last one.
    offsets: Box<[u64]>,
}

impl BlockIndex {
    /// Decodes the block index of the run with this footer.
    pub(crate) fn decode(bytes: &[u8], footer: &Footer) -> Result<Self, Malformed> {
        let blocks = usize::try_from(footer.blocks).map_err(|_too_large| Malformed)?;
        // An entry has at least two bytes. This bounds the memory that a wrong number allocates.
        if blocks > bytes.len() / 2 {
            return Err(Malformed);
        }
        let mut separators = Vec::with_capacity(bytes.len() - 2 * blocks);
        let mut ends = Vec::with_capacity(blocks);
        let mut offsets = Vec::with_capacity(blocks + 1);
        let (mut at, mut offset, mut last) = (0, 0, 0..0);
        offsets.push(offset);
        for block in 0..blocks {
            let (separator, block_bytes) = decode_index_entry(bytes, &mut at)?;
            if block > 0 && separator <= &separators[last.clone()] {
                return Err(Malformed);
            }
            last = separators.len()..separators.len() + separator.len();
            separators.extend_from_slice(separator);
            ends.push(u32::try_from(separators.len()).map_err(|_too_large| Malformed)?);
            offset += block_bytes as u64;
            offsets.push(offset);
        }
        if at != bytes.len() || offset != footer.index_offset {
            return Err(Malformed);
        }
        Ok(Self {
            separators: separators.into_boxed_slice(),
            ends: ends.into_boxed_slice(),
            offsets: offsets.into_boxed_slice(),
        })
    }

    pub(crate) fn blocks(&self) -> usize {
        self.ends.len()
    }

    /// Returns a block's offset in the file, or the end of the last block.
    pub(crate) fn offset(&self, block: usize) -> u64 {
        self.offsets[block]
    }

    pub(crate) fn separator(&self, block: usize) -> &[u8] {
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        &self.separators[start as usize..self.ends[block] as usize]
    }

    /// Returns the only block that may contain `key`: the first block if `key` is less than all
    /// keys, `None` if there are no blocks.
    pub(crate) fn find(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.blocks());
        while low < high {
            let middle = low.midpoint(high);
            if self.separator(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == 0 && self.blocks() > 0 { Some(0) } else { low.checked_sub(1) }
    }

    /// Returns the end of the longest sequence of blocks that starts with `block` and has at most
    /// `bytes_max` bytes; at least one block.
    pub(crate) fn end_within(&self, block: usize, bytes_max: usize) -> usize {
        let end = self.offsets[block].saturating_add(bytes_max as u64);
        let fitting = self.offsets[block + 1..].iter().take_while(|offset| **offset <= end).count();
        block + fitting.max(1)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.separators.len() + size_of_val(&*self.ends) + size_of_val(&*self.offsets)
    }
}
