//! The hashes by their names.

use clap::ValueEnum;
use haul_bulk_read::digest::HashKind;

/// A hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hash {
    /// The fastest of those that nobody can forge; one large file is hashed by all cores
    Blake3,
    /// XXH3 of 128 bits: the fastest, against accidents only
    #[value(name = "xxh3-128", aliases = ["xxh3", "xxhash", "metro"])]
    Xxh3,
    /// SHA-256
    Sha256,
    /// SHA-512
    Sha512,
    /// SHA-3 of 256 bits
    #[value(name = "sha3-256")]
    Sha3_256,
    /// SHA-3 of 512 bits
    #[value(name = "sha3-512")]
    Sha3_512,
    /// MD5, for old lists: it can be forged
    Md5,
}

impl From<Hash> for HashKind {
    fn from(hash: Hash) -> Self {
        match hash {
            Hash::Blake3 => Self::Blake3,
            Hash::Xxh3 => Self::Xxh3,
            Hash::Sha256 => Self::Sha256,
            Hash::Sha512 => Self::Sha512,
            Hash::Sha3_256 => Self::Sha3_256,
            Hash::Sha3_512 => Self::Sha3_512,
            Hash::Md5 => Self::Md5,
        }
    }
}
