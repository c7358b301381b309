//! Computes checksums, using other crates' implementations. Pure.

use crc_fast::CrcAlgorithm;
use md5::{Digest as _, Md5};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512};
use xxhash_rust::xxh3::Xxh3Default;
use xxhash_rust::xxh64::Xxh64;

use crate::body::checksum::{Algorithm, Checksum};

/// A checksum under computation.
pub(crate) struct Hasher {
    algorithm: Algorithm,
    state: State,
}

enum State {
    Crc(crc_fast::Digest),
    Sha(Context),
    Md5(Md5),
    Xxh64(Xxh64),
    // Both widths of XXH3 have this state; it is boxed because it is long.
    Xxh3(Box<Xxh3Default>),
}

impl Hasher {
    /// Starts a checksum of no bytes.
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        let crc = |algorithm| State::Crc(crc_fast::Digest::new(algorithm));
        let sha = |algorithm| State::Sha(Context::new(algorithm));
        let state = match algorithm {
            Algorithm::Crc32 => crc(CrcAlgorithm::Crc32IsoHdlc),
            Algorithm::Crc32c => crc(CrcAlgorithm::Crc32Iscsi),
            Algorithm::Crc64Nvme => crc(CrcAlgorithm::Crc64Nvme),
            Algorithm::Sha1 => sha(&SHA1_FOR_LEGACY_USE_ONLY),
            Algorithm::Sha256 => sha(&SHA256),
            Algorithm::Sha512 => sha(&SHA512),
            Algorithm::Md5 => State::Md5(Md5::new()),
            Algorithm::Xxhash64 => State::Xxh64(Xxh64::new(0)),
            Algorithm::Xxhash3 | Algorithm::Xxhash128 => State::Xxh3(Box::default()),
        };
        Self { algorithm, state }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Crc(crc) => crc.update(bytes),
            State::Sha(sha) => sha.update(bytes),
            State::Md5(md5) => md5.update(bytes),
            State::Xxh64(xxh64) => xxh64.update(bytes),
            State::Xxh3(xxh3) => xxh3.update(bytes),
        }
    }

    /// Returns the checksum of all added bytes.
    pub(crate) fn finish(self) -> Checksum {
        let algorithm = self.algorithm;
        match (self.state, algorithm) {
            (State::Crc(crc), _) => Checksum::new(algorithm, &crc.finalize().to_be_bytes()),
            (State::Sha(sha), _) => Checksum::new(algorithm, sha.finish().as_ref()),
            (State::Md5(md5), _) => Checksum::new(algorithm, &md5.finalize()),
            (State::Xxh64(xxh64), _) => Checksum::new(algorithm, &xxh64.digest().to_be_bytes()),
            (State::Xxh3(xxh3), Algorithm::Xxhash128) => {
                Checksum::new(algorithm, &xxh3.digest128().to_be_bytes())
            }
            (State::Xxh3(xxh3), _) => Checksum::new(algorithm, &xxh3.digest().to_be_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_have_known_values() {
        const SHA512: &str = "1xakGIVptoqxtt+sF45XARTN8Oo6HMDjFIbD5BJBvGp2Qk6MN6sm8Jb8he+YhsjLY0GH\
                              9P3f9kX7CZ8f9UxrjA==";
        for (algorithm, value) in [
            (Algorithm::Crc32, "MSpqpg=="),
            (Algorithm::Crc32c, "5if0QQ=="),
            (Algorithm::Crc64Nvme, "SmzZ/LTp1CA="),
            (Algorithm::Sha1, "L7XhNBn8iSRoZeejJPR27GJOh0A="),
            (Algorithm::Sha256, "fRpUEnsiJQL1t5tfsIAwYRUqRPkrN+I8ZSe69mXU2po="),
            (Algorithm::Sha512, SHA512),
            (Algorithm::Md5, "esZsDxSN6VGbi9JkMSxNZA=="),
            (Algorithm::Xxhash64, "GGCUDikCgi0="),
            (Algorithm::Xxhash3, "WkDcP9RMBS8="),
            (Algorithm::Xxhash128, "Kq/YOGmlnDE/55jA7aptxg=="),
        ] {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(b"abc");
            hasher.update(b"defg");
            assert_eq!(hasher.finish().value, value, "{algorithm:?}");
        }
    }

    #[test]
    fn crcs_have_the_catalogued_check_values() {
        for (algorithm, value) in [
            (Algorithm::Crc32, "y/Q5Jg=="),
            (Algorithm::Crc32c, "4waSgw=="),
            (Algorithm::Crc64Nvme, "rosUhgp5mIg="),
        ] {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(b"123456789");
            assert_eq!(hasher.finish().value, value, "{algorithm:?}");
        }
    }
}
