//! Names as text that any format can hold, and back: no byte of a name is lost. Pure.
//!
//! The rules are those of fclones' reports: what is valid UTF-8 and no control character stands as
//! it is, a backslash is two, and everything else is `\n`, `\r`, `\t` or `\xNN`.

use std::fmt::Write;

/// `bytes` as text in one line.
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
        // Into a string nothing can fail.
        write!(text, "\\x{byte:02X}").ok();
    }
}

/// The bytes [`escape`] made `text` of; none when it cannot have.
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
    fn what_is_no_escape_is_refused() {
        for text in ["\\", "a\\q", "\\x1", "\\xg0", "\\x"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_back(bytes: Vec<u8>) {
            let text = escape(&bytes);
            prop_assert!(!text.contains(char::is_control), "{text:?}");
            prop_assert_eq!(unescape(&text), Some(bytes));
        }
    }
}
