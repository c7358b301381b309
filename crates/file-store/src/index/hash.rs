//! The keyed hash that locates a key in the location table. Pure.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// A store's hash function. Its secret prevents clients from choosing keys that collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash {
    pub(crate) secret: [u64; 2],
}

impl KeyHash {
    /// Returns the hash of a key in a bucket.
    pub(crate) fn of(self, bucket: &str, key: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret[0], self.secret[1]);
        hasher.write(bucket.as_bytes());
        // No bucket name contains this byte.
        hasher.write_u8(0);
        hasher.write(key.as_bytes());
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_depends_on_secret_bucket_and_key() {
        let hash = |secret, bucket, key| KeyHash { secret: [secret, 2] }.of(bucket, key);
        assert_eq!(hash(1, "bucket", "key"), hash(1, "bucket", "key"));
        let hashes = [
            hash(1, "bucket", "key"),
            hash(2, "bucket", "key"),
            hash(1, "bucketk", "ey"),
            hash(1, "bucket", "kex"),
        ];
        let distinct: std::collections::HashSet<u64> = hashes.into_iter().collect();
        assert_eq!(distinct.len(), 4);
    }
}
