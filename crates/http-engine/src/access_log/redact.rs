//! Removes from logs what a reader could repeat a request with.

use std::borrow::Cow;

/// The parameters of a URL whose value is a secret: signatures of presigned URLs of S3 in versions
/// 4 and 2, tokens, and keys with which a client encrypts objects.
const SECRETS: [&[u8]; 6] = [
    b"x-amz-signature",
    b"x-amz-security-token",
    b"signature",
    b"access_token",
    b"x-amz-server-side-encryption-customer-key",
    b"x-amz-copy-source-server-side-encryption-customer-key",
];

/// What stands in place of a secret.
const REDACTED: &[u8] = b"=REDACTED";

/// Returns a target or a URL without the values of parameters with which a reader could repeat the
/// request. The name of a parameter may be in upper case or percent-encoded.
#[must_use]
pub fn without_secrets(url: &[u8]) -> Cow<'_, [u8]> {
    let Some(query) = url.iter().position(|byte| *byte == b'?') else { return Cow::Borrowed(url) };
    let pairs = || url[query + 1..].split(|byte| *byte == b'&');
    if !pairs().any(is_secret) {
        return Cow::Borrowed(url);
    }
    let mut text = url[..=query].to_vec();
    for (number, pair) in pairs().enumerate() {
        if number > 0 {
            text.push(b'&');
        }
        if is_secret(pair) {
            text.extend_from_slice(name(pair));
            text.extend_from_slice(REDACTED);
        } else {
            text.extend_from_slice(pair);
        }
    }
    Cow::Owned(text)
}

fn name(pair: &[u8]) -> &[u8] {
    pair.split(|byte| *byte == b'=').next().unwrap_or_default()
}

fn is_secret(pair: &[u8]) -> bool {
    // A name of a secret has at most three bytes for each of its characters.
    let name = name(pair);
    let longest = SECRETS.iter().map(|secret| 3 * secret.len()).max();
    Some(name.len()) <= longest
        && SECRETS.iter().any(|secret| decoded(name).eq(secret.iter().copied()))
}

/// Returns the bytes of a percent-encoded name, in lower case.
fn decoded(name: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let (first, behind) = rest.split_first()?;
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        let (byte, behind) = match behind {
            [high, low, behind @ ..] if *first == b'%' => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, behind),
                _ => (*first, &rest[1..]),
            },
            _ => (*first, behind),
        };
        rest = behind;
        Some(byte.to_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_and_tokens_are_removed_and_nothing_else() {
        for (url, expected) in [
            ("/b/k", "/b/k"),
            ("/b/k?", "/b/k?"),
            ("/b/k?a=b&&=&c", "/b/k?a=b&&=&c"),
            (
                "/b/k?X-Amz-SignedHeaders=host&signatures=1",
                "/b/k?X-Amz-SignedHeaders=host&signatures=1",
            ),
            ("/b/Signature=c", "/b/Signature=c"),
            ("/b/k?a=b&X-Amz-Signature=c&d", "/b/k?a=b&X-Amz-Signature=REDACTED&d"),
            ("/b/k?Signature=c%2B&Expires=1", "/b/k?Signature=REDACTED&Expires=1"),
            ("/b/k?x-amz-security-token=c=d", "/b/k?x-amz-security-token=REDACTED"),
            ("/b/k?X%2damz%2DSign%61ture=c", "/b/k?X%2damz%2DSign%61ture=REDACTED"),
            ("http://h/b/k?signature", "http://h/b/k?signature=REDACTED"),
            (
                "/b/k?X-Amz-Server-Side-Encryption-Customer-Key=a&\
                 x-amz-server-side-encryption-customer-key-MD5=b",
                "/b/k?X-Amz-Server-Side-Encryption-Customer-Key=REDACTED&\
                 x-amz-server-side-encryption-customer-key-MD5=b",
            ),
            (
                "/b/k?x-amz-copy-source-server-side-encryption-customer-key=a",
                "/b/k?x-amz-copy-source-server-side-encryption-customer-key=REDACTED",
            ),
            ("/b/k?%=1&%2&Signature=x?y&%zz", "/b/k?%=1&%2&Signature=REDACTED&%zz"),
        ] {
            let found = without_secrets(url.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected);
        }
    }
}
