//! Digests of content, and the functions that make them.

use std::fmt;

use sha2::Digest as _;
use twox_hash::XxHash3_128;

/// The bytes of the longest digest.
const BYTES_MAX: usize = 64;

/// How contents are told apart before anything is compared byte by byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HashFn {
    /// XXH3 of 128 bits, as fast as memory: equal by chance never, by malice possibly. What acts
    /// on duplicates compares them byte by byte anyway.
    #[default]
    Xxh3,
    /// BLAKE3, nobody can make two contents of one digest.
    Blake3,
    /// SHA-256, as `sha256sum` tells it.
    Sha256,
    /// SHA-512, as `sha512sum` tells it.
    Sha512,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-512.
    Sha3_512,
}

impl HashFn {
    /// All of them, with the names they have in reports and command lines.
    pub const ALL: [(&'static str, Self); 6] = [
        ("xxh3", Self::Xxh3),
        ("blake3", Self::Blake3),
        ("sha256", Self::Sha256),
        ("sha512", Self::Sha512),
        ("sha3-256", Self::Sha3_256),
        ("sha3-512", Self::Sha3_512),
    ];

    /// A number for files on disk; it never changes its meaning.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Xxh3 => 1,
            Self::Blake3 => 2,
            Self::Sha256 => 3,
            Self::Sha512 => 4,
            Self::Sha3_256 => 5,
            Self::Sha3_512 => 6,
        }
    }

    pub(crate) fn digest_bytes(self) -> usize {
        match self {
            Self::Xxh3 => 16,
            Self::Blake3 | Self::Sha256 | Self::Sha3_256 => 32,
            Self::Sha512 | Self::Sha3_512 => 64,
        }
    }
}

/// What became of some content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    bytes: [u8; BYTES_MAX],
    len: u8,
}

impl Digest {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let len = bytes.len().min(BYTES_MAX);
        let mut all = [0; BYTES_MAX];
        all[..len].copy_from_slice(&bytes[..len]);
        Self { bytes: all, len: u8::try_from(len).unwrap_or(0) }
    }

    /// Its bytes, as many as the function makes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A digest being made.
pub(crate) enum Hasher {
    Xxh3(Box<XxHash3_128>),
    Blake3(Box<blake3::Hasher>),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
    Sha3_256(Box<sha3::Sha3_256>),
    Sha3_512(Box<sha3::Sha3_512>),
}

impl Hasher {
    pub(crate) fn new(hash: HashFn) -> Self {
        match hash {
            HashFn::Xxh3 => Self::Xxh3(Box::new(XxHash3_128::new())),
            HashFn::Blake3 => Self::Blake3(Box::default()),
            HashFn::Sha256 => Self::Sha256(sha2::Sha256::new()),
            HashFn::Sha512 => Self::Sha512(sha2::Sha512::new()),
            HashFn::Sha3_256 => Self::Sha3_256(Box::default()),
            HashFn::Sha3_512 => Self::Sha3_512(Box::default()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Xxh3(hasher) => hasher.write(bytes),
            Self::Blake3(hasher) => {
                hasher.update(bytes);
            }
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
            Self::Sha3_256(hasher) => hasher.update(bytes),
            Self::Sha3_512(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Digest {
        match self {
            Self::Xxh3(hasher) => Digest::new(&hasher.finish_128().to_be_bytes()),
            Self::Blake3(hasher) => Digest::new(hasher.finalize().as_bytes()),
            Self::Sha256(hasher) => Digest::new(&hasher.finalize()),
            Self::Sha512(hasher) => Digest::new(&hasher.finalize()),
            Self::Sha3_256(hasher) => Digest::new(&hasher.finalize()),
            Self::Sha3_512(hasher) => Digest::new(&hasher.finalize()),
        }
    }
}

/// The digest of content that is in memory whole.
pub(crate) fn digest(hash: HashFn, bytes: &[u8]) -> Digest {
    match hash {
        // Without a hasher: small files are many, and its start costs more than their bytes.
        HashFn::Xxh3 => Digest::new(&XxHash3_128::oneshot(bytes).to_be_bytes()),
        HashFn::Blake3 => Digest::new(blake3::hash(bytes).as_bytes()),
        _ => {
            let mut hasher = Hasher::new(hash);
            hasher.update(bytes);
            hasher.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_usual_tools() {
        for (hash, text) in [
            (HashFn::Xxh3, "06b05ab6733a618578af5f94892f3950"),
            (HashFn::Blake3, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
            (HashFn::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (HashFn::Sha3_256, "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        ] {
            assert_eq!(digest(hash, b"abc").to_string(), text);
        }
        assert!(digest(HashFn::Sha512, b"abc").to_string().starts_with("ddaf35a193617aba"));
        assert!(digest(HashFn::Sha3_512, b"abc").to_string().starts_with("b751850b1a57168a"));
    }

    #[test]
    fn pieces_and_the_whole_have_one_digest() {
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        for (name, hash) in HashFn::ALL {
            let mut hasher = Hasher::new(hash);
            for piece in bytes.chunks(7001) {
                hasher.update(piece);
            }
            let (pieces, whole) = (hasher.finish(), digest(hash, &bytes));
            assert_eq!(pieces, whole, "{name}");
            assert_eq!(whole.bytes().len(), hash.digest_bytes(), "{name}");
        }
    }
}
