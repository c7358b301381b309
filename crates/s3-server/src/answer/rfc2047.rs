//! Encoded words (RFC 2047), in which S3 returns metadata that is not ASCII. Pure.

use std::borrow::Cow;

use base64_simd::STANDARD as BASE64;

/// The maximum length of an encoded word's text before Base64, in bytes: a word has at most 75
/// characters.
const WORD_BYTES_MAX: usize = 45;

/// Returns a metadata value for a header: unchanged, or as encoded words if it is not printable
/// ASCII.
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        return text.into();
    }
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(WORD_BYTES_MAX);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (word, after) = rest.split_at(end);
        words.push(format!("=?UTF-8?B?{}?=", BASE64.encode_to_string(word)));
        rest = after;
    }
    words.join(" ").into()
}

/// Returns a metadata value from a header, with encoded words decoded. A word that is malformed, or
/// in a charset other than UTF-8 and ASCII, stays as it is.
pub(crate) fn decode(value: &str) -> Cow<'_, str> {
    if !value.contains("=?") {
        return value.into();
    }
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    let mut follows_word = false;
    while let Some(begin) = rest.find("=?") {
        let (before, from) = rest.split_at(begin);
        // Blanks between two words belong to neither.
        let is_gap = follows_word && before.trim().is_empty();
        match word(from) {
            Some((decoded, after)) => {
                if !is_gap {
                    text += before;
                }
                text += &decoded;
                (rest, follows_word) = (after, true);
            }
            None => {
                text += before;
                text += "=?";
                (rest, follows_word) = (&from[2..], false);
            }
        }
    }
    text += rest;
    text.into()
}

/// Decodes the encoded word at the beginning of `text`; also returns the text after it.
fn word(text: &str) -> Option<(String, &str)> {
    let (charset, rest) = text.strip_prefix("=?")?.split_once('?')?;
    let (encoding, rest) = rest.split_once('?')?;
    let (encoded, after) = rest.split_once("?=")?;
    if !charset.eq_ignore_ascii_case("utf-8") && !charset.eq_ignore_ascii_case("us-ascii") {
        return None;
    }
    let bytes = match encoding {
        "B" | "b" => BASE64.decode_to_vec(encoded).ok()?,
        "Q" | "q" => quoted(encoded)?,
        _ => return None,
    };
    Some((String::from_utf8(bytes).ok()?, after))
}

fn quoted(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        decoded.push(match byte {
            b'_' => b' ',
            b'=' => u8::try_from(digit()? << 4 | digit()?).ok()?,
            b' ' => return None,
            _ => byte,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let long = "\u{e4}".repeat(100);
        for text in ["", "plain", "two  blanks", "a\tb", "\u{e4}", "a \u{1f600} b", &long] {
            let encoded = encode(text);
            assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')), "{encoded}");
            assert!(encoded.split(' ').all(|word| word.len() <= 75), "{encoded}");
            assert_eq!(decode(&encoded), text);
        }
        assert_eq!(encode("a\tb"), "a\tb");
    }

    #[test]
    fn words_are_decoded_in_both_encodings() {
        for (value, text) in [
            ("=?UTF-8?Q?a=C3=A4_b?=", "a\u{e4} b"),
            ("=?utf-8?b?w6Q=?= =?utf-8?b?w6Q=?=", "\u{e4}\u{e4}"),
            ("x =?utf-8?q?y?= z", "x y z"),
            ("=?utf-8?x?y?=", "=?utf-8?x?y?="),
            ("=?latin1?q?=E4?=", "=?latin1?q?=E4?="),
            ("=?utf-8?b?!?=", "=?utf-8?b?!?="),
            ("=?utf-8?q?=C3?=", "=?utf-8?q?=C3?="),
            ("a =? b", "a =? b"),
        ] {
            assert_eq!(decode(value), text, "{value}");
        }
    }
}
