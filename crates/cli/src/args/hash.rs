//! Defines the names of hash functions on the command line.

use clap::ValueEnum;
use haul_bulk_read::digest::HashKind;

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hash {
    /// BLAKE3: the fastest cryptographic hash; one large file is hashed on all cores
    Blake3,
    /// XXH3, 128 bits: the fastest, not cryptographic
    #[value(name = "xxh3-128", aliases = ["xxh3", "xxhash", "metro"])]
    Xxh3,
    /// SHA-256
    Sha256,
    /// SHA-512
    Sha512,
    /// SHA-3, 256 bits
    #[value(name = "sha3-256")]
    Sha3_256,
    /// SHA-3, 512 bits
    #[value(name = "sha3-512")]
    Sha3_512,
    /// MD5, for old lists; not collision resistant
    Md5,
}

impl Hash {
    /// Returns the name of a hash function on the command line.
    pub(crate) fn name(kind: HashKind) -> String {
        let hash = Self::value_variants().iter().find(|hash| HashKind::from(**hash) == kind);
        let value = hash.and_then(ValueEnum::to_possible_value);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
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
