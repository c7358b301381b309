//! The names of users and keys.

use crate::acl::owner::ADMINISTRATOR;
use crate::error::{Error, Result};

/// The alphabet for generated access keys: 32 characters, as in Base32 (RFC 4648).
pub(super) const ACCESS_KEY_CHARACTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The maximum length of a user name, in bytes.
const USER_BYTES_MAX: usize = 64;

/// The user name that stands for requests without a signature.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// Fails if `user` is no valid user name.
pub(super) fn check_user(user: &str) -> Result<()> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte);
    if user.is_empty() || user.len() > USER_BYTES_MAX || !user.bytes().all(is_valid) {
        let text = "a user name has 1 to 64 letters, digits or characters of . _ @ + -";
        return Err(invalid(format!("\"{user}\" cannot be a user: {text}")));
    }
    if [ADMINISTRATOR, ANONYMOUS].contains(&user) {
        return Err(invalid(format!("\"{user}\" cannot be a user: the name is reserved")));
    }
    Ok(())
}

/// Returns bytes in Base32, without padding.
pub(super) fn base32(bytes: &[u8]) -> String {
    let (mut text, mut buffer, mut bits) = (String::new(), 0_u32, 0);
    for byte in bytes {
        (buffer, bits) = (buffer << 8 | u32::from(*byte), bits + 8);
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ACCESS_KEY_CHARACTERS[(buffer >> bits & 31) as usize]));
        }
    }
    if bits > 0 {
        text.push(char::from(ACCESS_KEY_CHARACTERS[(buffer << (5 - bits) & 31) as usize]));
    }
    text
}

fn invalid(why: String) -> Error {
    Error::Keys { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_is_that_of_rfc_4648() {
        for (text, encoded) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(text.as_bytes()), encoded);
        }
    }
}
