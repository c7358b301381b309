//! The entries in a run's block, and their encoding. Pure.
//!
//! Keys and values are stored separately, because similar bytes compress better next to each other,
//! and a search reads only the keys.

use std::ops::Range;

use crate::index::runs::format::{KEY_BYTES_MAX, Malformed, number, push_number, shared_prefix};

/// The maximum length of the numbers before an entry.
const ENTRY_NUMBERS_BYTES_MAX: usize = 2 + 2 + 3;

/// A block's entries in ascending key order.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// For each entry, three numbers and the suffix in which its key differs from the previous key.
    pub(super) keys: Vec<u8>,
    /// The concatenated values.
    pub(super) values: Vec<u8>,
}

/// A position before an entry, or at the end of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BlockPosition {
    key: usize,
    value: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryAt {
    /// The length of the prefix that the key shares with the preceding key.
    pub(crate) shared: usize,
    suffix: Range<usize>,
    /// The position of the value; `None` for a tombstone.
    pub(crate) value: Option<Range<usize>>,
    /// The position after the entry.
    pub(crate) end: BlockPosition,
}

impl Block {
    /// Removes all entries but keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity() + self.values.capacity()
    }

    /// Returns the maximum length of the block after this entry is appended.
    pub(crate) fn bytes_with(&self, suffix_bytes: usize, value_bytes: usize) -> usize {
        let entry = ENTRY_NUMBERS_BYTES_MAX + suffix_bytes + value_bytes;
        self.keys.len() + self.values.len() + entry
    }

    /// Appends an entry. `previous` is the block's previous key, or empty.
    pub(crate) fn push(&mut self, previous: &[u8], key: &[u8], value: Option<&[u8]>) {
        let shared = shared_prefix(previous, key);
        push_number(&mut self.keys, shared);
        push_number(&mut self.keys, key.len() - shared);
        push_number(&mut self.keys, value.map_or(0, |value| value.len() + 1));
        self.keys.extend_from_slice(&key[shared..]);
        self.values.extend_from_slice(value.unwrap_or_default());
    }

    /// Returns `true` if there is no entry after this position.
    #[inline]
    pub(crate) fn is_end(&self, position: BlockPosition) -> bool {
        position.key >= self.keys.len()
    }

    /// Decodes the entry after this position.
    #[inline]
    pub(crate) fn decode(&self, position: BlockPosition) -> Result<EntryAt, Malformed> {
        let mut at = position.key;
        let shared = number(&self.keys, &mut at)?;
        let suffix_bytes = number(&self.keys, &mut at)?;
        let value_bytes = number(&self.keys, &mut at)?;
        let suffix = at..at + suffix_bytes;
        let value_end = position.value + value_bytes.saturating_sub(1);
        if suffix.end > self.keys.len()
            || value_end > self.values.len()
            || shared + suffix_bytes > KEY_BYTES_MAX
        {
            return Err(Malformed);
        }
        let value = (value_bytes > 0).then_some(position.value..value_end);
        let end = BlockPosition { key: suffix.end, value: value_end };
        Ok(EntryAt { shared, suffix, value, end })
    }

    /// Returns the suffix in which an entry's key differs from the previous key.
    #[inline]
    pub(crate) fn suffix(&self, entry: &EntryAt) -> &[u8] {
        &self.keys[entry.suffix.clone()]
    }

    /// Returns the value at a position that [`Self::decode`] returned.
    #[inline]
    pub(crate) fn value(&self, value: Range<usize>) -> &[u8] {
        &self.values[value]
    }

    /// Finds the first entry at or after `position` whose key is not less than `target`; `None` if
    /// the block has none. The entry's key is `target[..shared]` followed by the suffix.
    ///
    /// The key before `position` must be less than `target` and share its first `matched` bytes. An
    /// entry that shares more bytes with its previous key is less than `target`, too, and is
    /// skipped without a comparison. An entry that shares fewer bytes is greater.
    pub(crate) fn seek(
        &self,
        mut position: BlockPosition,
        mut matched: usize,
        target: &[u8],
    ) -> Result<Option<EntryAt>, Malformed> {
        while !self.is_end(position) {
            let entry = self.decode(position)?;
            position = entry.end;
            if entry.shared > matched {
                continue;
            }
            let (suffix, rest) = (self.suffix(&entry), &target[entry.shared..]);
            if suffix >= rest {
                return Ok(Some(entry));
            }
            matched = entry.shared + shared_prefix(suffix, rest);
        }
        Ok(None)
    }
}
