//! Content in individually encrypted and authenticated segments, as in the construction STREAM
//! (docs/sources.md, STREAM).
//!
//! A segment's nonce has the segment's number, and one byte that is 1 for the last segment. A
//! segment is therefore accepted only at its own index, the last segment only at the end, and any
//! other segment only before the end. The key is derived from a random salt, so no two bodies have
//! the same key, and nonces never repeat with a key.

use std::fmt;

use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};
use ring::error::Unspecified;

use crate::encryption::data_key::{DataKey, failed, random};
use crate::errors::S3Result;

/// The lengths in [`lengths`](super::lengths), for buffers.
const SALT: usize = 32;
const SEGMENT: usize = 64 << 10;
const TAG: usize = 16;

/// The cipher for one body's segments.
pub(crate) struct SegmentCipher(LessSafeKey);

impl SegmentCipher {
    /// Returns the cipher for the body that begins with `salt` and is this part of an object; 0 for
    /// an object that was not uploaded in parts.
    pub(crate) fn new(key: &DataKey, salt: &[u8], part: u16) -> Result<Self, Unspecified> {
        key.segment_cipher(salt, part).map(Self)
    }

    fn seal(&self, index: u64, is_last: bool, segment: &mut Vec<u8>) -> Result<(), Unspecified> {
        self.0.seal_in_place_append_tag(nonce(index, is_last), Aad::empty(), segment)
    }

    /// Decrypts a segment in place. Returns the length of its content, which is at the beginning.
    /// Fails if this is another segment, or was modified.
    pub(crate) fn open(
        &self,
        index: u64,
        is_last: bool,
        segment: &mut [u8],
    ) -> Result<usize, Unspecified> {
        let opened = self.0.open_in_place(nonce(index, is_last), Aad::empty(), segment)?;
        Ok(opened.len())
    }
}

impl fmt::Debug for SegmentCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentCipher").finish_non_exhaustive()
    }
}

fn nonce(index: u64, is_last: bool) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[3..11].copy_from_slice(&index.to_be_bytes());
    nonce[11] = u8::from(is_last);
    Nonce::assume_unique_for_key(nonce)
}

/// Encrypts a body of any length. Holds back at most one segment, because the last segment is
/// encrypted differently.
pub(crate) struct Sealer {
    cipher: SegmentCipher,
    /// Written before the first segment; `None` after that.
    salt: Option<[u8; SALT]>,
    index: u64,
    segment: Vec<u8>,
}

impl Sealer {
    /// Creates the sealer for a body that is this part of an object.
    pub(crate) fn new(key: &DataKey, part: u16) -> Result<Self, Unspecified> {
        Self::with_salt(key, random()?, part)
    }

    fn with_salt(key: &DataKey, salt: [u8; SALT], part: u16) -> Result<Self, Unspecified> {
        let cipher = SegmentCipher::new(key, &salt, part)?;
        Ok(Self { cipher, salt: Some(salt), index: 0, segment: Vec::with_capacity(SEGMENT + TAG) })
    }

    /// Encrypts the next bytes of the content, and passes encrypted bytes to `write`.
    pub(crate) fn write(
        &mut self,
        mut bytes: &[u8],
        write: &mut impl FnMut(&[u8]) -> S3Result<()>,
    ) -> S3Result<()> {
        while !bytes.is_empty() {
            if self.segment.len() == SEGMENT {
                self.emit(false, write)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(SEGMENT - self.segment.len()));
            self.segment.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Encrypts and writes the last segment.
    pub(crate) fn finish(mut self, write: &mut impl FnMut(&[u8]) -> S3Result<()>) -> S3Result<()> {
        self.emit(true, write)
    }

    fn emit(
        &mut self,
        is_last: bool,
        write: &mut impl FnMut(&[u8]) -> S3Result<()>,
    ) -> S3Result<()> {
        if let Some(salt) = self.salt.take() {
            write(&salt)?;
        }
        self.cipher.seal(self.index, is_last, &mut self.segment).map_err(failed)?;
        write(&self.segment)?;
        self.segment.clear();
        self.index += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ring::digest::{SHA256, digest};

    use super::*;
    use crate::encryption::lengths::{
        SALT_BYTES, SEGMENT_BYTES, TAG_BYTES, content_bytes, segment_offset, segments, stored_bytes,
    };

    const PART: u16 = 3;

    fn key() -> DataKey {
        DataKey::generate().unwrap()
    }

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect()
    }

    fn seal(sealer: Sealer, content: &[u8], piece: usize) -> Vec<u8> {
        let (mut sealer, mut stored) = (sealer, Vec::new());
        let mut write = |bytes: &[u8]| {
            stored.extend_from_slice(bytes);
            Ok(())
        };
        for piece in content.chunks(piece.max(1)) {
            sealer.write(piece, &mut write).unwrap();
        }
        sealer.finish(&mut write).unwrap();
        stored
    }

    /// Decrypts a whole body; fails if any part of it was modified.
    fn open(key: &DataKey, part: u16, stored: &[u8]) -> Option<Vec<u8>> {
        let bytes = content_bytes(stored.len() as u64)?;
        let (salt, rest) = stored.split_at(SALT);
        let cipher = SegmentCipher::new(key, salt, part).ok()?;
        let mut content = Vec::new();
        for (index, segment) in (0..).zip(rest.chunks(SEGMENT + TAG)) {
            let mut segment = segment.to_vec();
            let is_last = index + 1 == segments(bytes);
            let length = cipher.open(index, is_last, &mut segment).ok()?;
            content.extend_from_slice(&segment[..length]);
        }
        Some(content)
    }

    #[test]
    fn body_of_any_length_is_opened_as_it_was_sealed() {
        let key = key();
        for bytes in [0, 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, 3 * SEGMENT + 5] {
            let content = content(bytes);
            for piece in [1 << 20, SEGMENT, SEGMENT + 1, 4096] {
                let stored = seal(Sealer::new(&key, PART).unwrap(), &content, piece);
                assert_eq!(stored.len() as u64, stored_bytes(bytes as u64));
                assert_eq!(open(&key, PART, &stored).unwrap(), content, "{bytes} {piece}");
            }
        }
    }

    #[test]
    fn every_change_of_a_body_is_detected() {
        let (key, other) = (key(), key());
        let content = content(2 * SEGMENT + 9);
        let stored = seal(Sealer::new(&key, PART).unwrap(), &content, SEGMENT);
        let again = seal(Sealer::new(&key, PART).unwrap(), &content, SEGMENT);
        let at = |index| usize::try_from(segment_offset(index)).unwrap();
        let detected = |changed: &[u8], change: &str| {
            assert_eq!(open(&key, PART, changed), None, "{change}");
        };
        for byte in (0..stored.len()).step_by(997).chain([31, 32, stored.len() - 1]) {
            let mut changed = stored.clone();
            changed[byte] ^= 0x10;
            detected(&changed, &format!("bit of byte {byte}"));
        }
        for length in (0..stored.len()).rev().step_by(501).chain([at(0), at(1), at(2)]) {
            detected(&stored[..length], &format!("cut to {length}"));
        }
        let (salt, rest) = stored.split_at(at(0));
        let segments: Vec<_> = rest.chunks(SEGMENT + TAG).collect();
        detected(&[salt, segments[1], segments[0], segments[2]].concat(), "swapped segments");
        detected(&[&stored[..at(1)], &stored[at(2)..]].concat(), "removed segment");
        detected(&[&stored[..at(2)], &stored[at(1)..]].concat(), "repeated segment");
        detected(&[&stored[..], &stored[at(2)..]].concat(), "appended last segment");
        detected(&[&stored[..], &[0; 40]].concat(), "appended bytes");
        detected(&[&stored[..at(1)], &again[at(1)..]].concat(), "segments of another body");
        detected(&[&again[..at(0)], &stored[at(0)..]].concat(), "salt of another body");
        assert_eq!(open(&key, PART + 1, &stored), None, "another part");
        assert_eq!(open(&other, PART, &stored), None, "another key");
    }

    #[test]
    fn bodies_are_those_of_the_format() {
        assert_eq!(
            (SALT_BYTES, SEGMENT_BYTES, TAG_BYTES),
            (SALT as u64, SEGMENT as u64, TAG as u64)
        );
        let key = DataKey::for_test([1; 32]);
        // Computed with another implementation, the Python library cryptography.
        for (bytes, part, expected) in [
            (0, 0, "4534af22b6872eea6e9ced951ffdeb2a"),
            (5, 1, "aedf8efa48fc527b26b50dda753dbc7cbfd9d483d0"),
            // The SHA-256 of the body.
            (SEGMENT + 1, 1, "6f40ac833a263fcf5541f0e4027dd7b143314ee764b34857b38a42dae4343099"),
        ] {
            let sealer = Sealer::with_salt(&key, [2; SALT], part).unwrap();
            let stored = seal(sealer, &content(bytes), 100);
            let found = match bytes {
                0..=5 => hex(&stored[SALT..]),
                _ => hex(digest(&SHA256, &stored).as_ref()),
            };
            assert_eq!(found, expected, "{bytes}");
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
