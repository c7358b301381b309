//! Parses the attribute of encrypted objects, and files with encryption keys.

use haul_s3_server::{EncryptionKey, EncryptionKeys, reformat_encryption_attribute};

/// Checks one input. The attribute has only one text, so that its seal covers all of it.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Some(attribute) = reformat_encryption_attribute(text) {
        assert_eq!(attribute, text);
    }
    if let Ok(keys) = EncryptionKeys::parse(text) {
        let lines: String = keys.keys().map(EncryptionKey::to_text).collect();
        let again = EncryptionKeys::parse(&lines).map(|keys| keys.keys().count());
        assert_eq!(again.ok(), Some(keys.keys().count()));
    }
}
