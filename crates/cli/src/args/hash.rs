//! Defines the names of hash functions on the command line.

use clap::ValueEnum;
use haul_bulk_read::digest::HashKind;

/// A hash function that can identify duplicates.
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

/// A hash function of checksum lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SumHash {
    /// BLAKE3: the fastest cryptographic hash; one large file is hashed on all cores
    Blake3,
    /// XXH3, 128 bits: the fastest, not cryptographic
    #[value(name = "xxh3-128", aliases = ["xxh3", "xxh128", "xxhash"])]
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
    /// SHA-1, for old lists; not collision resistant
    Sha1,
    /// XXH64, for lists of xxhsum; not cryptographic
    Xxh64,
    /// CRC-32, for SFV lists; detects accidental changes only
    Crc32,
}

impl SumHash {
    /// Returns the name of a hash function on the command line.
    pub(crate) fn name(kind: HashKind) -> String {
        let hash = Self::value_variants().iter().find(|hash| HashKind::from(**hash) == kind);
        let value = hash.and_then(ValueEnum::to_possible_value);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl From<SumHash> for HashKind {
    fn from(hash: SumHash) -> Self {
        match hash {
            SumHash::Blake3 => Self::Blake3,
            SumHash::Xxh3 => Self::Xxh3,
            SumHash::Sha256 => Self::Sha256,
            SumHash::Sha512 => Self::Sha512,
            SumHash::Sha3_256 => Self::Sha3_256,
            SumHash::Sha3_512 => Self::Sha3_512,
            SumHash::Md5 => Self::Md5,
            SumHash::Sha1 => Self::Sha1,
            SumHash::Xxh64 => Self::Xxh64,
            SumHash::Crc32 => Self::Crc32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_function_has_a_name() {
        for kind in HashKind::ALL {
            let hash = SumHash::from_str(&SumHash::name(kind), false).map(HashKind::from);
            assert_eq!(hash, Ok(kind));
        }
    }
}
