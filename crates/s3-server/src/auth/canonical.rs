//! Encodes the signed parts of a request (AWS Signature Version 4). Pure.

/// The blanks that a client collapses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blanks {
    /// ASCII blanks, as in most clients.
    Ascii,
    /// Unicode blanks, as in clients in Python and JavaScript.
    Unicode,
}

/// Appends a value without blanks at its ends, and with each run of blanks inside replaced by one
/// space.
pub(super) fn push_collapsed(out: &mut String, value: &str, blanks: Blanks) {
    let mut push = |number: usize, word: &str| {
        if number > 0 {
            out.push(' ');
        }
        out.push_str(word);
    };
    let words = |(number, word): (usize, &str)| push(number, word);
    match blanks {
        Blanks::Ascii => value.split_ascii_whitespace().enumerate().for_each(words),
        Blanks::Unicode => value.split_whitespace().enumerate().for_each(words),
    }
}

/// Appends a path, percent-encoded as in signatures.
pub(crate) fn push_encoded(out: &mut String, path: &str) {
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'~' | b'.' | b'/' => {
                out.push(char::from(byte));
            }
            _ => {
                out.push('%');
                hex(byte).iter().for_each(|digit| out.push(digit.to_ascii_uppercase().into()));
            }
        }
    }
}

pub(crate) fn hex(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)])
}

/// Appends bytes in lower-case hexadecimal digits.
pub(crate) fn push_hex(out: &mut String, bytes: &[u8]) {
    // Not `extend`, which asks for space with each character.
    bytes.iter().flat_map(|byte| hex(*byte)).for_each(|digit| out.push(digit.into()));
}

/// Parses a SHA-256 in lower-case hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |at: usize| match digits[at] {
            digit @ b'0'..=b'9' => Some(digit - b'0'),
            digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        *byte = digit(0)? << 4 | digit(1)?;
    }
    Some(bytes)
}

/// Returns a time such as `20261123T181500Z` in seconds since 1970.
pub(crate) fn seconds_of(text: &str) -> Option<i64> {
    let format = time::macros::format_description!("[year][month][day]T[hour][minute][second]Z");
    let time = time::PrimitiveDateTime::parse(text, format).ok()?;
    Some(time.assume_utc().unix_timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded_as_signatures_need_it() {
        let mut out = String::new();
        push_encoded(&mut out, "/a b/~c\u{e4}+%");
        assert_eq!(out, "/a%20b/~c%C3%A4%2B%25");
    }

    #[test]
    fn blanks_are_those_of_the_client() {
        let collapsed = |blanks| {
            let mut out = String::new();
            push_collapsed(&mut out, " a\t b\u{3000}\u{a0}c ", blanks);
            out
        };
        assert_eq!(collapsed(Blanks::Ascii), "a b\u{3000}\u{a0}c");
        assert_eq!(collapsed(Blanks::Unicode), "a b c");
    }

    #[test]
    fn hashes_are_parsed_in_lower_case_only() {
        let text = "00ff".repeat(16);
        assert_eq!(from_hex(&text).unwrap()[..2], [0, 255]);
        for text in ["UNSIGNED-PAYLOAD".to_owned(), "x".repeat(64), text.to_uppercase()] {
            assert_eq!(from_hex(&text), None, "{text}");
        }
    }
}
