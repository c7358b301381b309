//! The keys of the operator, with which the server encrypts objects itself (SSE-S3).

use std::fmt;
use std::sync::Arc;

use base64_simd::STANDARD as BASE64;

use crate::encryption::data_key::{KEY_BYTES, derive, random};
use crate::error::{Error, Result};

/// The first word of the text of a key.
const TEXT_PREFIX: &str = "haul-encryption-key-1";

/// The derived key of which the ID of a key is the beginning.
const KEY_ID: &[u8] = b"haul-encryption-1 key id";

/// The length of the ID of a key, in bytes.
const ID_BYTES: usize = 8;

/// A key with which the server encrypts objects.
#[derive(Clone)]
pub struct EncryptionKey {
    pub(super) bytes: [u8; KEY_BYTES],
    id: String,
}

impl EncryptionKey {
    /// Creates a random key.
    ///
    /// # Errors
    /// [`Error::EncryptionKeys`] if the kernel has no random bytes.
    pub fn generate() -> Result<Self> {
        let bytes = random().map_err(|_unspecified| invalid("no random bytes are available"))?;
        Self::of(bytes)
    }

    fn of(bytes: [u8; KEY_BYTES]) -> Result<Self> {
        let hash = derive(&bytes, &[], &[KEY_ID]);
        let hash = hash.map_err(|_unspecified| invalid("the ID of a key cannot be computed"))?;
        let id = hash[..ID_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { bytes, id })
    }

    /// Returns the ID, 16 hexadecimal digits. It follows from the key.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the key as a line of text.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{TEXT_PREFIX} {}\n", BASE64.encode_to_string(self.bytes))
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The keys with which the server encrypts objects. The last one encrypts new objects; the others
/// decrypt earlier ones.
#[derive(Debug, Clone)]
pub struct EncryptionKeys(Vec<Arc<EncryptionKey>>);

impl EncryptionKeys {
    /// Parses a text with one key in each line, as [`EncryptionKey::to_text`] returns it. Empty
    /// lines, and lines that begin with `#`, are ignored.
    ///
    /// # Errors
    /// [`Error::EncryptionKeys`] if a line is not a key, or if there is no key.
    pub fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let key = |(number, line): (usize, &str)| {
            let encoded = line.strip_prefix(TEXT_PREFIX).map(str::trim).unwrap_or_default();
            let bytes = BASE64.decode_to_vec(encoded).ok().and_then(|bytes| bytes.try_into().ok());
            let number = number + 1;
            let malformed = || Error::EncryptionKeys { why: format!("line {number} is not a key") };
            EncryptionKey::of(bytes.ok_or_else(malformed)?).map(Arc::new)
        };
        let keys: Vec<_> = lines.map(key).collect::<Result<_>>()?;
        if keys.is_empty() {
            return Err(invalid("it has no key"));
        }
        Ok(Self(keys))
    }

    /// Returns the keys; the last one encrypts new objects.
    pub fn keys(&self) -> impl Iterator<Item = &EncryptionKey> {
        self.0.iter().map(|key| &**key)
    }

    /// Returns the key for new objects.
    pub(super) fn newest(&self) -> Option<Arc<EncryptionKey>> {
        self.0.last().cloned()
    }

    /// Returns the key with this ID.
    pub(super) fn find(&self, id: &str) -> Option<Arc<EncryptionKey>> {
        self.0.iter().find(|key| key.id == id).cloned()
    }
}

fn invalid(why: &str) -> Error {
    Error::EncryptionKeys { why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written() {
        let generate = || EncryptionKey::generate().unwrap();
        let (first, second) = (generate(), generate());
        let text = format!("# keys\n\n{}  {}", first.to_text(), second.to_text());
        let keys = EncryptionKeys::parse(&text).unwrap();
        assert_eq!(keys.newest().unwrap().bytes, second.bytes);
        assert_eq!(keys.find(first.id()).unwrap().bytes, first.bytes);
        assert!(keys.find("0123456789abcdef").is_none());
        let ids: Vec<_> = keys.keys().map(EncryptionKey::id).collect();
        assert_eq!(ids, [first.id(), second.id()]);
        assert!(!format!("{keys:?}").contains(first.to_text().split(' ').nth(1).unwrap().trim()));
    }

    #[test]
    fn id_follows_from_the_key() {
        // Computed by another implementation, the Python library cryptography.
        let key = EncryptionKey::of([7; KEY_BYTES]).unwrap();
        assert_eq!(key.id(), "b4f2fdb675b0e2c1");
    }

    #[test]
    fn text_that_is_no_key_is_refused() {
        let text = EncryptionKey::generate().unwrap().to_text();
        for text in ["", "# none", "haul-encryption-key-1", &text[..40], &text[1..], "x\n"] {
            assert!(EncryptionKeys::parse(text).is_err(), "{text}");
        }
        let second = EncryptionKeys::parse(&format!("{text}\nx")).unwrap_err().to_string();
        assert!(second.contains("line 3"), "{second}");
    }
}
