//! An object's random key: it encrypts the content, and is stored sealed by a master key.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};

use crate::errors::{S3Error, S3ErrorCode, refuse};

/// The length of every key, in bytes: AES-256 needs 32.
pub(super) const KEY_BYTES: usize = 32;

const SALT_BYTES: usize = 32;
const TAG_BYTES: usize = 16;

/// The length of a sealed data key, in bytes: a salt, the encrypted key, and a tag.
pub(super) const SEALED_BYTES: usize = SALT_BYTES + KEY_BYTES + TAG_BYTES;

/// The labels of a key's uses. The keys derived for different uses are independent of each other.
const SEAL_DATA_KEY: &[u8] = b"haul-encryption-1 data key";
const SEAL_SEGMENTS: &[u8] = b"haul-encryption-1 segments of part ";
const HASH_ETAG: &[u8] = b"haul-encryption-1 etag";

/// The random key for an object or upload.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DataKey([u8; KEY_BYTES]);

impl DataKey {
    pub(super) fn generate() -> Result<Self, Unspecified> {
        Ok(Self(random()?))
    }

    /// Encrypts the key with a master key, so that only [`Self::open`] with the same master key and
    /// context decrypts it. The encryption key is derived from the master key and a random salt, so
    /// a master key can seal any number of data keys.
    pub(super) fn seal(
        &self,
        master: &[u8; KEY_BYTES],
        context: &[u8],
    ) -> Result<[u8; SEALED_BYTES], Unspecified> {
        let salt: [u8; SALT_BYTES] = random()?;
        self.seal_with(master, &salt, context)
    }

    fn seal_with(
        &self,
        master: &[u8; KEY_BYTES],
        salt: &[u8; SALT_BYTES],
        context: &[u8],
    ) -> Result<[u8; SEALED_BYTES], Unspecified> {
        let cipher = cipher(&derive(master, salt, &[SEAL_DATA_KEY])?)?;
        let mut key = self.0;
        let tag = cipher.seal_in_place_separate_tag(first_nonce(), Aad::from(context), &mut key)?;
        let mut sealed = [0; SEALED_BYTES];
        sealed[..SALT_BYTES].copy_from_slice(salt);
        sealed[SALT_BYTES..SALT_BYTES + KEY_BYTES].copy_from_slice(&key);
        sealed[SALT_BYTES + KEY_BYTES..].copy_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Decrypts a sealed key; `None` if it was sealed by another master key or with another
    /// context, or was changed since.
    pub(super) fn open(
        sealed: &[u8; SEALED_BYTES],
        master: &[u8; KEY_BYTES],
        context: &[u8],
    ) -> Option<Self> {
        let (salt, encrypted) = sealed.split_at(SALT_BYTES);
        let cipher = cipher(&derive(master, salt, &[SEAL_DATA_KEY]).ok()?).ok()?;
        let mut key = encrypted.to_vec();
        let key = cipher.open_in_place(first_nonce(), Aad::from(context), &mut key).ok()?;
        <[u8; KEY_BYTES]>::try_from(&*key).ok().map(Self)
    }

    /// Returns the cipher for the segments in a body with this salt. Another salt or part number
    /// results in another key.
    pub(super) fn segment_cipher(
        &self,
        salt: &[u8],
        part: u16,
    ) -> Result<LessSafeKey, Unspecified> {
        cipher(&derive(&self.0, salt, &[SEAL_SEGMENTS, &part.to_be_bytes()])?)
    }

    /// Returns an `ETag` hash that reveals nothing about the content with this MD5 without the key.
    /// The same content in the same upload always has the same hash.
    pub(super) fn etag(&self, md5: &[u8; 16]) -> Result<[u8; 16], Unspecified> {
        let key = derive(&self.0, &[], &[HASH_ETAG])?;
        let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, &key), md5);
        let mut hash = [0; 16];
        hash.copy_from_slice(&tag.as_ref()[..16]);
        Ok(hash)
    }
}

#[cfg(test)]
impl DataKey {
    pub(super) fn for_test(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataKey").finish_non_exhaustive()
    }
}

/// Returns random bytes from the kernel.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Unspecified> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(bytes)
}

/// Derives a key with HKDF-SHA-256 (RFC 5869).
pub(super) fn derive(
    key: &[u8; KEY_BYTES],
    salt: &[u8],
    info: &[&[u8]],
) -> Result<[u8; KEY_BYTES], Unspecified> {
    let mut derived = [0; KEY_BYTES];
    Salt::new(HKDF_SHA256, salt).extract(key).expand(info, HKDF_SHA256)?.fill(&mut derived)?;
    Ok(derived)
}

/// Returns the error for a failure of the cryptographic library, which reports no cause.
pub(super) fn failed(_unspecified: Unspecified) -> S3Error {
    refuse(S3ErrorCode::InternalError, "The content cannot be encrypted")
}

fn cipher(key: &[u8; KEY_BYTES]) -> Result<LessSafeKey, Unspecified> {
    UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new)
}

/// Returns the nonce for a key that encrypts only one message.
fn first_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encryption::lengths;

    const MASTER: [u8; KEY_BYTES] = [7; KEY_BYTES];

    // Computed with another implementation, the Python library cryptography.
    const SEALED: &str = "f495d50aa16a4a1165f5231754ece1efac8b036a98ce5882e6d272a9f1beb8a9\
                          ac6433e8a0f269897a4190744382e496";
    const ETAG: &str = "c7450461cfa16212cfe840832b573005";

    #[test]
    fn salts_of_bodies_and_data_keys_have_the_lengths_of_the_format() {
        assert_eq!(lengths::SALT_BYTES, SALT_BYTES as u64);
        assert_eq!(lengths::TAG_BYTES, TAG_BYTES as u64);
        assert_eq!(SEALED_BYTES, 80);
    }

    #[test]
    fn data_key_is_opened_by_its_master_key_and_context_only() {
        let key = DataKey::generate().unwrap();
        let sealed = key.seal(&MASTER, b"context").unwrap();
        assert_eq!(DataKey::open(&sealed, &MASTER, b"context"), Some(key.clone()));
        assert_eq!(DataKey::open(&sealed, &MASTER, b"contexts"), None);
        assert_eq!(DataKey::open(&sealed, &[8; KEY_BYTES], b"context"), None);
        for at in 0..SEALED_BYTES {
            let mut changed = sealed;
            changed[at] ^= 1;
            assert_eq!(DataKey::open(&changed, &MASTER, b"context"), None, "{at}");
        }
        assert_ne!(key.seal(&MASTER, b"context").unwrap(), sealed, "a salt of its own");
        assert!(!format!("{key:?}").contains(&format!("{:?}", key.0[0])));
    }

    #[test]
    fn sealed_key_and_etag_are_those_of_the_format() {
        let key = DataKey([1; KEY_BYTES]);
        let sealed = key.seal_with(&MASTER, &[2; SALT_BYTES], b"bucket\0key\x0048").unwrap();
        assert_eq!(hex(&sealed[SALT_BYTES..]), SEALED);
        assert_eq!(hex(&key.etag(&[3; 16]).unwrap()), ETAG);
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
