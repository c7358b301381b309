//! Lossless escaping of file names as one line of text.
//!
//! The rules are those of fclones: printable UTF-8 is unchanged, a backslash is doubled, and all
//! other characters and bytes become `\n`, `\r`, `\t` or `\xNN`.

use std::fmt::Write;

/// Escapes `bytes` as one line of text.
#[must_use]
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                _ if character.is_control() => {
                    let mut bytes = [0; 4];
                    hex(&mut text, character.encode_utf8(&mut bytes).as_bytes());
                }
                _ => text.push(character),
            }
        }
        hex(&mut text, chunk.invalid());
    }
    text
}

fn hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        write!(text, "\\x{byte:02X}").ok();
    }
}

/// Reverses [`escape`]; returns `None` if `text` contains an invalid escape.
#[must_use]
pub(crate) fn unescape(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        if *first != b'\\' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let (byte, after) = match after {
            [b'x', high, low, after @ ..] => (digit(*high)? << 4 | digit(*low)?, after),
            [letter, after @ ..] => (letter_of(*letter)?, after),
            [] => return None,
        };
        bytes.push(byte);
        rest = after;
    }
    Some(bytes)
}

fn letter_of(letter: u8) -> Option<u8> {
    Some(match letter {
        b'\\' | b'\'' | b'"' => letter,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'0' => 0,
        _ => return None,
    })
}

fn digit(character: u8) -> Option<u8> {
    u8::try_from(char::from(character).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_escaped_as_fclones_does() {
        for (bytes, text) in [
            (&b"plain/name.txt"[..], "plain/name.txt"),
            (b"two\nlines", "two\\nlines"),
            (b"tab\tand\rreturn", "tab\\tand\\rreturn"),
            (b"back\\slash", "back\\\\slash"),
            (b"\xff z", "\\xFF z"),
            (b"bell\x07 delete\x7f", "bell\\x07 delete\\x7F"),
            ("ä 漢 '\"".as_bytes(), "ä 漢 '\""),
            ("next line \u{85}".as_bytes(), "next line \\xC2\\x85"),
        ] {
            assert_eq!(escape(bytes), text);
            assert_eq!(unescape(text).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn invalid_escapes_are_rejected() {
        for text in ["\\", "a\\q", "\\x1", "\\xg0", "\\x"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn names_round_trip(bytes: Vec<u8>) {
            let text = escape(&bytes);
            prop_assert!(!text.contains(char::is_control), "{text:?}");
            prop_assert_eq!(unescape(&text), Some(bytes));
        }
    }
}
