//! Parses paths and the XML of errors. Pure.

use std::borrow::Cow;

/// Decodes a path; `None` if it is malformed.
pub(crate) fn decode(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(path.into());
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        decoded.push(match byte {
            b'%' => u8::try_from(digit()? << 4 | digit()?).ok()?,
            _ => byte,
        });
    }
    Some(String::from_utf8(decoded).ok()?.into())
}

/// Returns the text after the first `begin` and before the next `end`; empty if there is none.
pub(crate) fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = text.split_once(begin).map_or("", |(_, rest)| rest);
    rest.split_once(end).map_or("", |(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_and_malformed_ones_are_not() {
        assert_eq!(decode("/bucket/a+b").as_deref(), Some("/bucket/a+b"));
        assert_eq!(decode("/bucket/a%20b%2fc%C3%A4").as_deref(), Some("/bucket/a b/c\u{e4}"));
        for malformed in ["/%", "/%2", "/%zz", "/%FF"] {
            assert_eq!(decode(malformed), None, "{malformed}");
        }
    }
}
