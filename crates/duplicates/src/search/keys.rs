//! What is known of pieces that were read: a row of bytes for each, written from any thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use haul_bulk_read::digest::Digest;

/// The bytes of a word of a row.
const WORD: usize = 8;
/// The words of the longest digest.
const WORDS_MAX: usize = 8;

/// Digests of one length, in as many places as were asked for.
#[derive(Debug)]
pub(super) struct Keys {
    words: Vec<AtomicU64>,
    known: Vec<AtomicBool>,
    stride: usize,
}

/// A row, for comparing.
pub(super) type Key = [u64; WORDS_MAX];

impl Keys {
    /// Room for `count` digests of up to `bytes` bytes.
    pub(super) fn new(count: usize, bytes: usize) -> Self {
        let stride = bytes.div_ceil(WORD).min(WORDS_MAX);
        Self {
            words: (0..count * stride).map(|_| AtomicU64::new(0)).collect(),
            known: (0..count).map(|_| AtomicBool::new(false)).collect(),
            stride,
        }
    }

    /// Each place is written by one thread, once, before anybody reads it.
    pub(super) fn set(&self, place: usize, digest: &Digest) {
        self.set_key(place, &key_of(digest.as_bytes()));
    }

    pub(super) fn set_key(&self, place: usize, key: &Key) {
        let words = &self.words[place * self.stride..][..self.stride];
        for (word, value) in words.iter().zip(key) {
            word.store(*value, Ordering::Relaxed);
        }
        self.known[place].store(true, Ordering::Release);
    }

    pub(super) fn get(&self, place: usize) -> Option<Key> {
        self.known[place].load(Ordering::Acquire).then(|| {
            let mut key = [0; WORDS_MAX];
            let words = &self.words[place * self.stride..][..self.stride];
            for (to, word) in key.iter_mut().zip(words) {
                *to = word.load(Ordering::Relaxed);
            }
            key
        })
    }
}

/// The bytes a key was made of.
pub(super) fn key_bytes(key: &Key) -> [u8; WORDS_MAX * WORD] {
    let mut bytes = [0; WORDS_MAX * WORD];
    for (place, word) in bytes.chunks_mut(WORD).zip(key) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// The key those bytes make.
pub(super) fn key_of(bytes: &[u8]) -> Key {
    let mut key = [0; WORDS_MAX];
    for (word, bytes) in key.iter_mut().zip(bytes.chunks(WORD)) {
        let mut whole = [0; WORD];
        whole[..bytes.len()].copy_from_slice(bytes);
        // As it stands in the digest, so that keys sort as digests do.
        *word = u64::from_be_bytes(whole);
    }
    key
}

#[cfg(test)]
mod tests {
    use haul_bulk_read::digest::HashKind;

    use super::*;

    #[test]
    fn a_digest_comes_back_as_it_was() {
        for kind in HashKind::ALL {
            let keys = Keys::new(3, kind.bytes());
            let digest = kind.of(b"abc");
            keys.set(1, &digest);
            let key = keys.get(1).unwrap();
            assert_eq!(&key_bytes(&key)[..kind.bytes()], digest.as_bytes());
            assert_eq!(key_of(digest.as_bytes()), key);
            assert!(keys.get(0).is_none() && keys.get(2).is_none());
        }
    }
}
