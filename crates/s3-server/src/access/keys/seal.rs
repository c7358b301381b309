//! The key that seals key files: it encrypts the secrets in them and authenticates the whole file,
//! with AES-256-GCM.

use std::fmt;

use base64_simd::STANDARD as BASE64;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use crate::access::keys::session::{SessionSecret, session_secret};
use crate::error::{Error, Result};

/// The first word of a sealing key's text.
const TEXT_PREFIX: &str = "haul-sealing-key-1";

/// The key that seals a key file.
#[derive(Clone)]
pub struct SealingKey([u8; 32]);

impl SealingKey {
    /// Creates a random key.
    ///
    /// # Errors
    /// [`Error::Keys`] if the kernel has no random bytes.
    pub fn generate() -> Result<Self> {
        let mut bytes = [0; 32];
        fill_random(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Parses the text that [`Self::to_text`] returns.
    ///
    /// # Errors
    /// [`Error::SealingKey`] if the text is not a sealing key.
    pub fn parse(text: &str) -> Result<Self> {
        let encoded = text.trim().strip_prefix(TEXT_PREFIX).map(str::trim).unwrap_or_default();
        let bytes = BASE64.decode_to_vec(encoded).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(Error::SealingKey)
    }

    /// Returns the key as a line of text.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{TEXT_PREFIX} {}\n", BASE64.encode_to_string(self.0))
    }

    /// Returns the server's secret for sessions, which is the same in all servers with this key.
    pub(super) fn session_secret(&self) -> SessionSecret {
        session_secret(&self.0)
    }

    /// Encrypts `secret`, so that only [`Self::open`] with the same `context` decrypts it.
    pub(super) fn seal(&self, secret: &[u8], context: &str) -> Result<String> {
        let mut nonce = [0; NONCE_LEN];
        fill_random(&mut nonce)?;
        let mut bytes = secret.to_vec();
        let aad = Aad::from(context.as_bytes());
        let nonced = Nonce::assume_unique_for_key(nonce);
        if self.cipher()?.seal_in_place_append_tag(nonced, aad, &mut bytes).is_err() {
            return Err(Error::Keys { why: "a secret cannot be sealed".to_owned() });
        }
        Ok(BASE64.encode_to_string([&nonce[..], &bytes].concat()))
    }

    /// Decrypts a secret; `None` if it was sealed by another key or with another context, or was
    /// changed since.
    pub(super) fn open(&self, sealed: &str, context: &str) -> Option<Vec<u8>> {
        let bytes = BASE64.decode_to_vec(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let aad = Aad::from(context.as_bytes());
        let cipher = self.cipher().ok()?;
        cipher.open_in_place(nonce, aad, &mut sealed).ok().map(|secret| secret.to_vec())
    }

    fn cipher(&self) -> Result<LessSafeKey> {
        let key = UnboundKey::new(&AES_256_GCM, &self.0);
        key.map(LessSafeKey::new).or(Err(Error::SealingKey))
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").finish_non_exhaustive()
    }
}

fn fill_random(bytes: &mut [u8]) -> Result<()> {
    let fail = |_unspecified| Error::Keys { why: "no random bytes are available".to_owned() };
    SystemRandom::new().fill(bytes).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_opened_by_its_key_and_context_only() {
        let (key, other) = (SealingKey::generate().unwrap(), SealingKey::generate().unwrap());
        let sealed = key.seal(b"secret", "context").unwrap();
        assert_eq!(key.open(&sealed, "context").unwrap(), b"secret");
        assert_eq!(key.open(&sealed, "contexts"), None);
        assert_eq!(other.open(&sealed, "context"), None);
        assert_ne!(key.seal(b"secret", "context").unwrap(), sealed, "a nonce of its own");
        let bytes = BASE64.decode_to_vec(&sealed).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(key.open(&BASE64.encode_to_string(changed), "context"), None, "{at}");
            assert_eq!(key.open(&BASE64.encode_to_string(&bytes[..at]), "context"), None);
        }
        assert_eq!(key.open("?", "context"), None);
    }

    #[test]
    fn sealing_key_is_read_as_it_was_written() {
        let key = SealingKey::generate().unwrap();
        assert_eq!(SealingKey::parse(&key.to_text()).unwrap().0, key.0);
        assert!(!format!("{key:?}").contains(key.to_text().split(' ').nth(1).unwrap().trim()));
        let text = key.to_text();
        for text in ["", "haul-sealing-key-1", "haul-sealing-key-1 AAAA", &text[..40], &text[1..]] {
            assert!(SealingKey::parse(text).is_err(), "{text}");
        }
    }
}
