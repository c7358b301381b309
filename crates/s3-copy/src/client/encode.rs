//! Encodes bytes, paths and queries as requests and signatures need them. Pure.

/// Appends a text, percent-encoded as in the canonical requests of signatures. A slash stays if
/// `is_path` is true.
pub(super) fn push_encoded(out: &mut String, text: &str, is_path: bool) {
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"_-~.".contains(&byte);
        match is_plain || byte == b'/' && is_path {
            true => out.push(char::from(byte)),
            false => *out += &format!("%{byte:02X}"),
        }
    }
}

/// Returns bytes in lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let digits = [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]);
        out.extend(digits.map(char::from));
    }
    out
}

/// Returns the 16 bytes of an MD5 in hexadecimal digits, or `None` if the text is another one.
pub(crate) fn md5_from_hex(text: &str) -> Option<[u8; 16]> {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit();
    if text.len() != 32 || !text.bytes().all(is_digit) {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Returns a query: names and values, encoded and sorted, as it is sent and signed.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    let encoded = |text: &str| {
        let mut out = String::new();
        push_encoded(&mut out, text, false);
        out
    };
    let mut pairs: Vec<_> =
        pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.sort_unstable();
    pairs.join("&")
}

/// Returns the path of a key as it is sent. Libraries for URLs remove the segments `.` and `..`, so
/// that the slashes of a key with such a segment are encoded, too.
pub(super) fn sent_path(bucket: &str, key: &str) -> String {
    let has_dots = key.split('/').any(|segment| matches!(segment, "." | ".."));
    let mut path = format!("/{bucket}");
    if !key.is_empty() {
        path.push('/');
        push_encoded(&mut path, key, !has_dots);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_are_encoded() {
        assert_eq!(sent_path("b", "a b/\u{e4}+%/"), "/b/a%20b/%C3%A4%2B%25/");
        assert_eq!(sent_path("b", "a/../c"), "/b/a%2F..%2Fc");
        assert_eq!(sent_path("b", ""), "/b");
        assert_eq!(
            query(&[("prefix", "a/b c"), ("list-type", "2")]),
            "list-type=2&prefix=a%2Fb%20c"
        );
    }

    #[test]
    fn digits_are_those_of_an_md5() {
        let text = "d41d8cd98f00b204e9800998ecf8427e";
        assert_eq!(hex(&md5_from_hex(text).unwrap()), text);
        for text in ["", "d41d8cd98f00b204e9800998ecf8427", "d41d8cd98f00b204e9800998ecf8427e-2"] {
            assert_eq!(md5_from_hex(text), None, "{text}");
        }
    }
}
