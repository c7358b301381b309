//! Sorted sequences of entries, the inputs of a merge.

use crate::error::Result;

/// A position in a sorted sequence of entries with different keys.
///
/// A new source has no current entry; `advance` then moves to the first one. After an error it has
/// none either, and must be repositioned by `seek`.
pub(crate) trait Source {
    /// Moves to the first entry whose key is not less than `key`, or to the end.
    fn seek(&mut self, key: &[u8]) -> Result<()>;

    /// Moves to the next entry, or to the end. Has no effect at the end.
    fn advance(&mut self) -> Result<()>;

    /// Returns the key of the current entry; `None` at the end.
    fn key(&self) -> Option<&[u8]>;

    /// Returns the value of the current entry; `None` for a tombstone and at the end.
    fn value(&self) -> Option<&[u8]>;
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        (**self).seek(key)
    }

    fn advance(&mut self) -> Result<()> {
        (**self).advance()
    }

    fn key(&self) -> Option<&[u8]> {
        (**self).key()
    }

    fn value(&self) -> Option<&[u8]> {
        (**self).value()
    }
}

/// A sorted slice of keys, each with a value or a tombstone.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct SliceSource<'a, K, V> {
    entries: &'a [(K, Option<V>)],
    /// The number of the current entry plus one; 0 before the first entry.
    position: usize,
}

#[cfg(test)]
impl<'a, K, V> SliceSource<'a, K, V> {
    /// Creates a source of a slice, which must be sorted by key without duplicates.
    pub(crate) fn new(entries: &'a [(K, Option<V>)]) -> Self {
        Self { entries, position: 0 }
    }

    fn current(&self) -> Option<&'a (K, Option<V>)> {
        self.entries.get(self.position.checked_sub(1)?)
    }
}

#[cfg(test)]
impl<K: AsRef<[u8]>, V: AsRef<[u8]>> Source for SliceSource<'_, K, V> {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.position = 1 + self.entries.partition_point(|entry| entry.0.as_ref() < key);
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        self.position = (self.position + 1).min(self.entries.len() + 1);
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        self.current().map(|entry| entry.0.as_ref())
    }

    fn value(&self) -> Option<&[u8]> {
        self.current()?.1.as_ref().map(AsRef::as_ref)
    }
}
