//! The operator's keys: the server encrypts objects with them by itself (SSE-S3), or because
//! requests name them (SSE-KMS).

use std::fmt;
use std::sync::Arc;

use base64_simd::STANDARD as BASE64;

use crate::encryption::data_key::{KEY_BYTES, derive, random};
use crate::error::{Error, Result};

/// The first word of a key's text.
const TEXT_PREFIX: &str = "haul-encryption-key-1";

/// The label for deriving a key's ID from the key.
const KEY_ID: &[u8] = b"haul-encryption-1 key id";

/// The length of a key's ID, in bytes.
const ID_BYTES: usize = 8;

/// The maximum length of a key's name, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// A key with which the server encrypts objects.
#[derive(Clone)]
pub struct EncryptionKey {
    pub(super) bytes: [u8; KEY_BYTES],
    id: String,
    name: Option<String>,
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

    /// Gives the key a name, by which requests select it.
    /// # Errors
    /// [`Error::EncryptionKeyName`] if the name is empty, longer than 128 bytes, or has characters
    /// other than letters, digits, `.`, `_` and `-`.
    pub fn with_name(self, name: &str) -> Result<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_allowed) {
            return Err(Error::EncryptionKeyName { name: name.to_owned() });
        }
        Ok(Self { name: Some(name.to_owned()), ..self })
    }

    fn of(bytes: [u8; KEY_BYTES]) -> Result<Self> {
        let hash = derive(&bytes, &[], &[KEY_ID]);
        let hash = hash.map_err(|_unspecified| invalid("the ID of a key cannot be computed"))?;
        let id = hash[..ID_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { bytes, id, name: None })
    }

    /// Returns the ID, 16 hexadecimal digits. It is derived from the key.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name, if the key has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the key as a line of text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        format!("{TEXT_PREFIX} {}{name}\n", BASE64.encode_to_string(self.bytes))
    }

    /// Parses a line in the format of [`Self::to_text`].
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix(TEXT_PREFIX)?.split_whitespace();
        let bytes = BASE64.decode_to_vec(words.next()?).ok()?.try_into().ok()?;
        let key = Self::of(bytes).ok()?;
        let key = match words.next() {
            None => key,
            Some(name) => key.with_name(name).ok()?,
        };
        words.next().is_none().then_some(key)
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("EncryptionKey");
        shown.field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// The keys with which the server encrypts objects. The last key without a name encrypts new
/// objects. For requests that name a key, the last key with this name encrypts new objects. The
/// others decrypt earlier objects.
#[derive(Debug, Clone)]
pub struct EncryptionKeys(Vec<Arc<EncryptionKey>>);

impl EncryptionKeys {
    /// Parses a text with one key in each line, in the format of [`EncryptionKey::to_text`]. Empty
    /// lines, and lines that begin with `#`, are ignored.
    ///
    /// # Errors
    /// [`Error::EncryptionKeys`] if a line is not a key, or if there is no key.
    pub fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let key = |(number, line): (usize, &str)| {
            let number = number + 1;
            let malformed = || Error::EncryptionKeys { why: format!("line {number} is not a key") };
            EncryptionKey::parse(line).map(Arc::new).ok_or_else(malformed)
        };
        let keys: Vec<_> = lines.map(key).collect::<Result<_>>()?;
        if keys.is_empty() {
            return Err(invalid("it has no key"));
        }
        Ok(Self(keys))
    }

    /// Returns the keys, in line order.
    pub fn keys(&self) -> impl Iterator<Item = &EncryptionKey> {
        self.0.iter().map(|key| &**key)
    }

    /// Returns the key for new objects: the last one with this name, or without a name.
    pub(super) fn newest(&self, name: Option<&str>) -> Option<Arc<EncryptionKey>> {
        self.0.iter().rfind(|key| key.name.as_deref() == name).cloned()
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
        assert_eq!(keys.newest(None).unwrap().bytes, second.bytes);
        assert_eq!(keys.find(first.id()).unwrap().bytes, first.bytes);
        assert!(keys.find("0123456789abcdef").is_none());
        let ids: Vec<_> = keys.keys().map(EncryptionKey::id).collect();
        assert_eq!(ids, [first.id(), second.id()]);
        assert!(!format!("{keys:?}").contains(first.to_text().split(' ').nth(1).unwrap().trim()));
    }

    #[test]
    fn newest_key_of_a_name_is_found() {
        let key = |name: &str| EncryptionKey::generate().unwrap().with_name(name).unwrap();
        let (first, other, second) = (key("tax-2026"), key("other"), key("tax-2026"));
        let text = format!("{}{}{}", first.to_text(), other.to_text(), second.to_text());
        let keys = EncryptionKeys::parse(&text).unwrap();
        let newest = |name: Option<&str>| keys.newest(name).map(|key| key.bytes);
        assert_eq!(newest(Some("tax-2026")), Some(second.bytes));
        assert_eq!(newest(Some("other")), Some(other.bytes));
        assert_eq!((newest(Some("tax")), newest(None)), (None, None));
        assert_eq!(keys.find(first.id()).unwrap().name(), Some("tax-2026"));
        for name in ["", "a b", "a/b", "ü", &"x".repeat(129)] {
            assert!(EncryptionKey::generate().unwrap().with_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn id_follows_from_the_key() {
        // Computed with another implementation, the Python library cryptography.
        let key = EncryptionKey::of([7; KEY_BYTES]).unwrap();
        assert_eq!(key.id(), "b4f2fdb675b0e2c1");
    }

    #[test]
    fn text_that_is_no_key_is_refused() {
        let text = EncryptionKey::generate().unwrap().to_text();
        let line = text.trim();
        let (bad_name, words) = (format!("{line} a/b"), format!("{line} a b"));
        let others = ["", "# none", "haul-encryption-key-1", "x\n", &bad_name, &words];
        for text in others.into_iter().chain([&text[..40], &text[1..]]) {
            assert!(EncryptionKeys::parse(text).is_err(), "{text}");
        }
        let second = EncryptionKeys::parse(&format!("{text}\nx")).unwrap_err().to_string();
        assert!(second.contains("line 3"), "{second}");
    }
}
