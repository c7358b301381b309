//! Stores the digests of pieces of files in a table, which several threads fill concurrently.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use haul_bulk_read::digest::Digest;

/// The length of a word, in bytes.
const WORD: usize = 8;
/// The length of the longest digest, in words.
const WORDS_MAX: usize = 8;

/// A table with a fixed number of slots for digests of equal length.
#[derive(Debug)]
pub(super) struct DigestTable {
    words: Vec<AtomicU64>,
    known: Vec<AtomicBool>,
    stride: usize,
}

/// A digest as words, padded with zeros, for comparison.
pub(super) type Key = [u64; WORDS_MAX];

impl DigestTable {
    /// Creates a table with `count` slots for digests of up to `bytes` bytes.
    pub(super) fn new(count: usize, bytes: usize) -> Self {
        let stride = bytes.div_ceil(WORD).min(WORDS_MAX);
        Self {
            words: (0..count * stride).map(|_| AtomicU64::new(0)).collect(),
            known: (0..count).map(|_| AtomicBool::new(false)).collect(),
            stride,
        }
    }

    /// Sets a slot. The caller sets each slot at most once, and before any thread reads it.
    pub(super) fn set(&self, slot: usize, digest: &Digest) {
        self.set_key(slot, &key_of(digest.as_bytes()));
    }

    pub(super) fn set_key(&self, slot: usize, key: &Key) {
        let words = &self.words[slot * self.stride..][..self.stride];
        for (word, value) in words.iter().zip(key) {
            word.store(*value, Ordering::Relaxed);
        }
        self.known[slot].store(true, Ordering::Release);
    }

    pub(super) fn get(&self, slot: usize) -> Option<Key> {
        self.known[slot].load(Ordering::Acquire).then(|| {
            let mut key = [0; WORDS_MAX];
            let words = &self.words[slot * self.stride..][..self.stride];
            for (to, word) in key.iter_mut().zip(words) {
                *to = word.load(Ordering::Relaxed);
            }
            key
        })
    }
}

/// Returns the bytes of a key, padded with zeros.
pub(super) fn key_bytes(key: &Key) -> [u8; WORDS_MAX * WORD] {
    let mut bytes = [0; WORDS_MAX * WORD];
    for (chunk, word) in bytes.chunks_mut(WORD).zip(key) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// Converts bytes to a key.
pub(super) fn key_of(bytes: &[u8]) -> Key {
    let mut key = [0; WORDS_MAX];
    for (word, bytes) in key.iter_mut().zip(bytes.chunks(WORD)) {
        let mut padded = [0; WORD];
        padded[..bytes.len()].copy_from_slice(bytes);
        // Big-endian words make keys sort like digests.
        *word = u64::from_be_bytes(padded);
    }
    key
}

#[cfg(test)]
mod tests {
    use haul_bulk_read::digest::HashKind;

    use super::*;

    #[test]
    fn digests_round_trip() {
        for kind in HashKind::ALL {
            let table = DigestTable::new(3, kind.bytes());
            let digest = kind.of(b"abc");
            table.set(1, &digest);
            let key = table.get(1).unwrap();
            assert_eq!(&key_bytes(&key)[..kind.bytes()], digest.as_bytes());
            assert_eq!(key_of(digest.as_bytes()), key);
            assert!(table.get(0).is_none() && table.get(2).is_none());
        }
    }
}
