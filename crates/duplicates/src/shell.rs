//! Quotes words for a shell, and splits command lines into words.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::escape::escape;

/// Quotes `word` for a shell if necessary: in single quotes, or as `$'…'` if it contains control
/// characters or invalid UTF-8.
#[must_use]
pub fn quote(word: &[u8]) -> String {
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && word.iter().all(is_plain) => text.to_owned(),
        Ok(text) if !text.contains(char::is_control) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => format!("$'{}'", escape(word).replace('\'', "\\'")),
    }
}

/// Quotes `word` for any POSIX shell if necessary. Unlike [`quote`], control characters and invalid
/// UTF-8 are not escaped, since a shell without `$'…'` could not restore them.
#[must_use]
pub fn quote_posix(word: &[u8]) -> Vec<u8> {
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_owned();
    }
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

fn is_plain(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(byte)
}

/// Splits a command line into words, without any expansion; returns `None` if a quote is not
/// closed.
#[must_use]
pub fn split(line: &str) -> Option<Vec<OsString>> {
    let (mut words, mut word, mut rest) = (Vec::new(), None::<Vec<u8>>, line);
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        let (taken, after) = match character {
            ' ' | '\t' | '\n' => {
                words.extend(word.take());
                rest = after;
                continue;
            }
            '\'' => after.split_once('\'').map(|(inside, after)| (inside.into(), after))?,
            '"' => double_quoted(after)?,
            '$' if after.starts_with('\'') => ansi_quoted(&after[1..])?,
            '\\' => {
                let escaped = after.chars().next()?;
                after.split_at(escaped.len_utf8()).into_bytes()
            }
            _ => rest.split_at(character.len_utf8()).into_bytes(),
        };
        word.get_or_insert_default().extend_from_slice(&taken);
        rest = after;
    }
    words.extend(word);
    Some(words.into_iter().map(OsString::from_vec).collect())
}

/// The parsed bytes and the remaining text.
type Parsed<'a> = (Vec<u8>, &'a str);

trait IntoBytes<'a> {
    fn into_bytes(self) -> Parsed<'a>;
}

impl<'a> IntoBytes<'a> for (&'a str, &'a str) {
    fn into_bytes(self) -> Parsed<'a> {
        (self.0.into(), self.1)
    }
}

fn double_quoted(text: &str) -> Option<Parsed<'_>> {
    let (mut bytes, mut characters) = (Vec::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((bytes, &text[at + 1..])),
            '\\' => {
                let (_, escaped) = characters.next()?;
                if !"\"\\$`".contains(escaped) {
                    bytes.push(b'\\');
                }
                bytes.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    None
}

fn ansi_quoted(text: &str) -> Option<Parsed<'_>> {
    let mut is_escaped = false;
    let end = text.find(|character| {
        let is_end = character == '\'' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end
    })?;
    Some((crate::escape::unescape(&text[..end])?, &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_quoted_only_if_necessary() {
        for (word, quoted) in [
            (&b"/a/b-c_1.txt"[..], "/a/b-c_1.txt"),
            (b"", "''"),
            (b"two words", "'two words'"),
            (b"it's", "'it'\\''s'"),
            (b"$HOME `x`", "'$HOME `x`'"),
            (b"a\nb'c", "$'a\\nb\\'c'"),
            (b"\xff", "$'\\xFF'"),
            ("ä".as_bytes(), "'ä'"),
        ] {
            assert_eq!(quote(word), quoted);
        }
    }

    #[test]
    fn words_for_posix_shells_keep_their_bytes() {
        for (word, quoted) in [
            (&b"/a/b-c_1.txt"[..], &b"/a/b-c_1.txt"[..]),
            (b"", b"''"),
            (b"a\nb'c", b"'a\nb'\\''c'"),
            (b"\xff $(x)", b"'\xff $(x)'"),
        ] {
            assert_eq!(quote_posix(word), quoted);
        }
    }

    #[test]
    fn command_lines_are_split_like_in_a_shell() {
        for (line, words) in [
            ("a  b\tc", &["a", "b", "c"][..]),
            (" 'a b' \"c \\\" d\" e\\ f ", &["a b", "c \" d", "e f"]),
            ("a'b'\"c\"d ''", &["abcd", ""]),
            ("$'a\\nb\\'c' $IN", &["a\nb'c", "$IN"]),
            ("\"a\\nb\"", &["a\\nb"]),
            ("", &[]),
        ] {
            let split = split(line).unwrap();
            assert_eq!(split, words.iter().map(OsString::from).collect::<Vec<_>>(), "{line}");
        }
        for line in ["'a", "\"a", "$'a", "a\\", "\"a\\"] {
            assert_eq!(split(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn quoted_words_round_trip(words: Vec<Vec<u8>>) {
            let line = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
            let words: Vec<_> = words.into_iter().map(OsString::from_vec).collect();
            prop_assert_eq!(split(&line), Some(words));
        }
    }
}
