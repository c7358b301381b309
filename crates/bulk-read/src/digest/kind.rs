//! Defines the hash functions, their incremental hashers and their digests.

use std::fmt;

use haul_crc::{crc32, crc32_append};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use sha3::{Sha3_256, Sha3_512};
use xxhash_rust::xxh3::Xxh3;
use xxhash_rust::xxh64::Xxh64;

use super::hex::to_hex;

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum HashKind {
    /// BLAKE3, 32 bytes: the fastest cryptographic function of this list; several threads can hash
    /// one file.
    #[default]
    Blake3,
    /// XXH3, 16 bytes: faster than BLAKE3, but collisions can be constructed.
    Xxh3,
    /// SHA-256, 32 bytes.
    Sha256,
    /// SHA-512, 64 bytes.
    Sha512,
    /// SHA3-256, 32 bytes: unrelated in construction to SHA-2, in case SHA-2 is broken.
    Sha3_256,
    /// SHA3-512, 64 bytes.
    Sha3_512,
    /// MD5, 16 bytes: broken; for existing checksum files only.
    Md5,
    /// SHA-1, 20 bytes: broken; for existing checksum files only.
    Sha1,
    /// XXH64, 8 bytes: for existing checksum files only.
    Xxh64,
    /// CRC-32 (IEEE 802.3), 4 bytes: for existing checksum files only.
    Crc32,
}

impl HashKind {
    /// All hash functions.
    pub const ALL: [Self; 10] = [
        Self::Blake3,
        Self::Xxh3,
        Self::Sha256,
        Self::Sha512,
        Self::Sha3_256,
        Self::Sha3_512,
        Self::Md5,
        Self::Sha1,
        Self::Xxh64,
        Self::Crc32,
    ];

    /// Returns the digest length, in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Blake3 | Self::Sha256 | Self::Sha3_256 => 32,
            Self::Sha512 | Self::Sha3_512 => 64,
            Self::Xxh3 | Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Xxh64 => 8,
            Self::Crc32 => 4,
        }
    }

    /// Creates a hasher.
    #[must_use]
    pub fn hasher(self) -> Hasher {
        Hasher(match self {
            Self::Blake3 => Inner::Blake3(Box::default()),
            Self::Xxh3 => Inner::Xxh3(Box::default()),
            Self::Sha256 => Inner::Sha256(Box::default()),
            Self::Sha512 => Inner::Sha512(Box::default()),
            Self::Sha3_256 => Inner::Sha3_256(Box::default()),
            Self::Sha3_512 => Inner::Sha3_512(Box::default()),
            Self::Md5 => Inner::Md5(Box::default()),
            Self::Sha1 => Inner::Sha1(Box::default()),
            Self::Xxh64 => Inner::Xxh64(Box::new(Xxh64::new(0))),
            Self::Crc32 => Inner::Crc32(0),
        })
    }

    /// Returns the digest of `bytes`.
    #[must_use]
    pub fn of(self, bytes: &[u8]) -> Digest {
        match self {
            Self::Blake3 => Digest::new(blake3::hash(bytes).as_bytes()),
            Self::Xxh3 => Digest::new(&xxhash_rust::xxh3::xxh3_128(bytes).to_be_bytes()),
            Self::Crc32 => Digest::new(&crc32(bytes).to_be_bytes()),
            _ => {
                let mut hasher = self.hasher();
                hasher.update(bytes);
                hasher.finish()
            }
        }
    }
}

/// An incremental hasher.
#[derive(Clone)]
pub struct Hasher(Inner);

#[derive(Clone)]
enum Inner {
    Blake3(Box<blake3::Hasher>),
    Xxh3(Box<Xxh3>),
    Sha256(Box<Sha256>),
    Sha512(Box<Sha512>),
    Sha3_256(Box<Sha3_256>),
    Sha3_512(Box<Sha3_512>),
    Md5(Box<Md5>),
    Sha1(Box<Sha1>),
    Xxh64(Box<Xxh64>),
    Crc32(u32),
}

impl Hasher {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Inner::Blake3(hasher) => drop(hasher.update(bytes)),
            Inner::Xxh3(hasher) => hasher.update(bytes),
            Inner::Sha256(hasher) => hasher.update(bytes),
            Inner::Sha512(hasher) => hasher.update(bytes),
            Inner::Sha3_256(hasher) => hasher.update(bytes),
            Inner::Sha3_512(hasher) => hasher.update(bytes),
            Inner::Md5(hasher) => hasher.update(bytes),
            Inner::Sha1(hasher) => hasher.update(bytes),
            Inner::Xxh64(hasher) => hasher.update(bytes),
            Inner::Crc32(crc) => *crc = crc32_append(*crc, bytes),
        }
    }

    /// Returns the digest of all bytes added.
    #[must_use]
    pub fn finish(self) -> Digest {
        match self.0 {
            Inner::Blake3(hasher) => Digest::new(hasher.finalize().as_bytes()),
            // Big-endian, as printed by `xxhsum`.
            Inner::Xxh3(hasher) => Digest::new(&hasher.digest128().to_be_bytes()),
            Inner::Sha256(hasher) => Digest::new(&hasher.finalize()),
            Inner::Sha512(hasher) => Digest::new(&hasher.finalize()),
            Inner::Sha3_256(hasher) => Digest::new(&hasher.finalize()),
            Inner::Sha3_512(hasher) => Digest::new(&hasher.finalize()),
            Inner::Md5(hasher) => Digest::new(&hasher.finalize()),
            Inner::Sha1(hasher) => Digest::new(&hasher.finalize()),
            Inner::Xxh64(hasher) => Digest::new(&hasher.digest().to_be_bytes()),
            Inner::Crc32(crc) => Digest::new(&crc.to_be_bytes()),
        }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

/// A digest of up to 64 bytes, displayed in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    bytes: [u8; 64],
    length: u8,
}

impl Digest {
    pub(super) fn new(sum: &[u8]) -> Self {
        let mut bytes = [0; 64];
        bytes[..sum.len()].copy_from_slice(sum);
        Self { bytes, length: u8::try_from(sum.len()).unwrap_or(64) }
    }

    /// Creates a digest from its bytes; returns `None` if `sum` is longer than 64 bytes.
    #[must_use]
    pub fn from_bytes(sum: &[u8]) -> Option<Self> {
        (sum.len() <= 64).then(|| Self::new(sum))
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(self.as_bytes()))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digests of "abc" from the published test vectors.
    const ABC: [(HashKind, &str); 10] = [
        (HashKind::Blake3, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
        (HashKind::Xxh3, "06b05ab6733a618578af5f94892f3950"),
        (HashKind::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            HashKind::Sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
        (HashKind::Sha3_256, "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        (
            HashKind::Sha3_512,
            "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e\
             10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
        ),
        (HashKind::Md5, "900150983cd24fb0d6963f7d28e17f72"),
        (HashKind::Sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (HashKind::Xxh64, "44bc2cf5ad770999"),
        (HashKind::Crc32, "352441c2"),
    ];

    #[test]
    fn digests_match_published_test_vectors() {
        assert_eq!(ABC.map(|(kind, _)| kind), HashKind::ALL);
        for (kind, expected) in ABC {
            assert_eq!(kind.of(b"abc").to_string(), expected, "{kind:?}");
            let digest = kind.of(b"abc");
            assert_eq!(digest.as_bytes().len(), kind.bytes());
            assert_eq!(Digest::from_bytes(digest.as_bytes()), Some(digest));
            let mut hasher = kind.hasher();
            hasher.update(b"a");
            hasher.update(b"");
            hasher.update(b"bc");
            assert_eq!(hasher.finish(), kind.of(b"abc"));
        }
        assert_eq!(Digest::from_bytes(&[0; 65]), None);
    }
}
