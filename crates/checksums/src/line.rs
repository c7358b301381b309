//! Parses and writes the lines of checksum lists, in the formats of `sha256sum` and `b3sum`. Also
//! parses the lines of the BSD tools (`md5 -r`) and of `openssl dgst`.
//!
//! If a name contains a newline, a backslash or a carriage return, these bytes are escaped, and the
//! line begins with a backslash.

use haul_bulk_read::digest::{Digest, HashKind, from_hex};

use crate::STDIN;

/// One line of a checksum list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The hash function, if known.
    pub kind: Option<HashKind>,
    /// The digest.
    pub sum: Vec<u8>,
    /// The name of the file, without escapes.
    pub name: Vec<u8>,
    /// Other names that the row may mean, in the order in which they are tried: a carriage return
    /// or a blank at one of its ends belongs to the name or to the format. A check uses the first
    /// of all names that exists.
    pub other_names: Vec<Vec<u8>>,
}

impl Line {
    /// `true` if the line is for stdin, as `md5sum` writes it: its name is `-`.
    #[must_use]
    pub fn is_stdin(&self) -> bool {
        self.name == STDIN
    }
}

/// What a row of a list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    /// A line, of which the name may be at the end of the row.
    Line { line: Line, ends_with_name: bool },
    /// An entry that cannot be verified, and why.
    Unknown(String),
    /// Text that is no entry.
    Malformed,
}

impl Row {
    pub(crate) fn is_line(&self) -> bool {
        matches!(self, Self::Line { .. })
    }
}

/// How many characters separate the digest from the name in lines without a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    /// One, as the BSD tools write it with `-r`: a blank or `*` after it belongs to the name.
    One,
    /// Two, as GNU writes it: the second is a blank, or `*` for a file read in binary mode.
    Two,
}

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineFormat {
    /// `true` for the format `SHA256 (name) = sum`, `false` for `sum  name`.
    pub tag: bool,
    /// `true` if lines end with NUL and names are not escaped.
    pub zero: bool,
}

/// The lengths of the digests of all supported hash functions, in bytes.
pub(crate) const LENGTHS: [usize; 6] = [4, 8, 16, 20, 32, 64];

/// The tags of hash functions. The first tag of each function is the one that is written.
const TAGS: [(&str, HashKind); 12] = [
    ("BLAKE3", HashKind::Blake3),
    ("XXH128", HashKind::Xxh3),
    ("SHA256", HashKind::Sha256),
    ("SHA512", HashKind::Sha512),
    ("SHA3-256", HashKind::Sha3_256),
    ("SHA3-512", HashKind::Sha3_512),
    ("MD5", HashKind::Md5),
    ("SHA1", HashKind::Sha1),
    ("XXH64", HashKind::Xxh64),
    ("CRC32", HashKind::Crc32),
    // openssl(1)
    ("SHA2-256", HashKind::Sha256),
    ("SHA2-512", HashKind::Sha512),
];

fn tag(kind: HashKind) -> &'static str {
    TAGS.iter().find(|(_, tagged)| *tagged == kind).map_or("", |(tag, _)| tag)
}

/// Appends one line of a list, including its terminator, to `line`.
pub fn write_line(
    line: &mut Vec<u8>,
    kind: HashKind,
    sum: &Digest,
    name: &[u8],
    format: LineFormat,
) {
    let is_special = |byte: &u8| matches!(byte, b'\n' | b'\\' | b'\r');
    let is_escaped = !format.zero && name.iter().any(is_special);
    if is_escaped {
        line.push(b'\\');
    }
    let sum = sum.to_string();
    if format.tag {
        line.extend_from_slice(tag(kind).as_bytes());
        line.extend_from_slice(b" (");
    } else {
        line.extend_from_slice(sum.as_bytes());
        line.extend_from_slice(b"  ");
    }
    for byte in name {
        match byte {
            b'\n' if is_escaped => line.extend_from_slice(b"\\n"),
            b'\r' if is_escaped => line.extend_from_slice(b"\\r"),
            b'\\' if is_escaped => line.extend_from_slice(b"\\\\"),
            byte => line.push(*byte),
        }
    }
    if format.tag {
        line.extend_from_slice(b") = ");
        line.extend_from_slice(sum.as_bytes());
    }
    line.push(if format.zero { 0 } else { b'\n' });
}

/// Appends a name to output that no program parses. Escapes the name only if it contains a newline
/// or a carriage return, which would break the line.
pub fn write_name(line: &mut Vec<u8>, name: &[u8]) {
    if !name.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return line.extend_from_slice(name);
    }
    line.push(b'\\');
    for byte in name {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\\' => line.extend_from_slice(b"\\\\"),
            byte => line.push(*byte),
        }
    }
}

/// The shortest word of hexadecimal digits that is taken for a digest of an unknown hash function,
/// or for one that was cut off.
const UNKNOWN_DIGITS_MIN: usize = 16;

/// The same for a word before two characters that separate a digest from a name.
const SEPARATED_DIGITS_MIN: usize = 8;

/// `true` if the row is a line, or has the tag of a hash function and so is no row of SFV. A name
/// of SFV may look like a tag with small letters.
pub(crate) fn is_sum(row: &[u8], kind: Option<HashKind>) -> bool {
    let text = without_mark(row).0;
    let has_tag = tagged(text).is_some_and(|(tag, ..)| !tag.iter().any(u8::is_ascii_lowercase));
    has_tag || parse(row, kind, None).is_line()
}

/// `true` if a row that is no line may be the beginning of one: digits, or a tag and what may be a
/// part of a name. `row` is the last one, and has no end.
pub(crate) fn is_cut_off(row: &[u8]) -> bool {
    let text = without_mark(row).0;
    let may_begin = |tag: &[u8]| match text.strip_prefix(tag) {
        Some(rest) => rest.is_empty() || rest == b" " || rest.starts_with(b" ("),
        None => tag.starts_with(text),
    };
    text.iter().all(u8::is_ascii_hexdigit) || TAGS.iter().any(|(tag, _)| may_begin(tag.as_bytes()))
}

/// Returns the row without blanks and a backslash before it, and whether it had the backslash,
/// which says that bytes of the name are escaped.
fn without_mark(row: &[u8]) -> (&[u8], bool) {
    let row = row.trim_ascii_start();
    match row.strip_prefix(b"\\") {
        Some(text) => (text, true),
        None => (row, false),
    }
}

/// Parses a row without its terminator, as `md5sum --check` does. `kind` is the hash function of
/// lines without a tag, if the caller knows it; `separator` that of earlier lines.
pub(crate) fn parse(row: &[u8], kind: Option<HashKind>, separator: Option<Separator>) -> Row {
    let (text, is_escaped) = without_mark(row);
    if let Some((tag, name, sum)) = tagged(text) {
        let Some((_, kind)) = TAGS.iter().find(|(known, _)| known.as_bytes() == tag) else {
            return Row::Unknown(format!("unknown hash function {}", String::from_utf8_lossy(tag)));
        };
        return match line(Some(*kind), sum, name, is_escaped) {
            Some(line) => Row::Line { line, ends_with_name: false },
            None => Row::Unknown("invalid digest or name".to_owned()),
        };
    }
    if let Some((sum, names)) = plain(text, kind, separator)
        && let Some(mut found) = line(kind, sum, names[0], is_escaped)
    {
        let others = names[1..].iter().filter_map(|name| line(kind, sum, name, is_escaped));
        found.other_names = others.map(|other| other.name).collect();
        return Row::Line { line: found, ends_with_name: !is_escaped };
    }
    let end = text.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    let word = &text[..end];
    let digits = word.strip_prefix(b"XXH3_").unwrap_or(word);
    let is_separated = text[end..].starts_with(b"  ") || text[end..].starts_with(b" *");
    let digits_min = if is_separated { SEPARATED_DIGITS_MIN } else { UNKNOWN_DIGITS_MIN };
    if digits.len() < digits_min || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Row::Malformed;
    }
    if digits.len() < word.len() {
        return Row::Unknown("unknown hash function XXH3 (64 bits)".to_owned());
    }
    let has_known_length =
        kind.map_or(LENGTHS.contains(&(digits.len() / 2)), |kind| digits.len() == kind.bytes() * 2);
    Row::Unknown(match has_known_length {
        true => "no valid name after the digest".to_owned(),
        false => format!("a digest of {} digits, of no known hash function", digits.len()),
    })
}

/// Returns the line with these parts; `None` if one of them is invalid.
fn line(kind: Option<HashKind>, sum: &[u8], name: &[u8], is_escaped: bool) -> Option<Line> {
    let sum = from_hex(sum)?;
    let is_right = kind.map_or(LENGTHS.contains(&sum.len()), |kind| kind.bytes() == sum.len());
    let name = if is_escaped { unescaped(name)? } else { name.to_vec() };
    let is_valid = is_right && !name.is_empty() && !name.contains(&0);
    is_valid.then(|| Line { kind, sum, name, other_names: Vec::new() })
}

/// Returns the tag, the name and the digest of a row such as `SHA256 (name) = digest`. openssl(1)
/// writes no blank before the parentheses, and only one after them. The digest of a known hash
/// function may be cut off; after another word it tells the row from prose.
fn tagged(row: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let is_tag_char = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_/.".contains(byte);
    let end = row.iter().position(|byte| !is_tag_char(byte)).filter(|end| *end > 0)?;
    let (tag, rest) = row.split_at(end);
    let rest = rest.strip_prefix(b" ").unwrap_or(rest).strip_prefix(b"(")?;
    let close = rest.iter().rposition(|byte| *byte == b')')?;
    let (name, rest) = rest.split_at(close);
    let sum = rest[1..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii();
    let is_known = TAGS.iter().any(|(known, _)| known.as_bytes() == tag);
    let is_digest = sum.len() >= 8 && !sum.contains(&b' ');
    (is_known || is_digest).then_some((tag, name, sum))
}

/// Returns the digest of a row without a tag, and the names that the rest may be.
fn plain(
    row: &[u8],
    kind: Option<HashKind>,
    separator: Option<Separator>,
) -> Option<(&[u8], Vec<&[u8]>)> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let digits = match kind {
        Some(kind) => kind.bytes() * 2,
        None => row.iter().position(is_blank)?,
    };
    let (sum, rest) = row.split_at_checked(digits)?;
    let rest = rest.split_first().filter(|(first, _)| is_blank(first))?.1;
    let after_mark = rest.strip_prefix(b" ").or_else(|| rest.strip_prefix(b"*"));
    let names = match (after_mark.filter(|name| !name.is_empty()), separator) {
        (Some(name), None | Some(Separator::Two)) => vec![name],
        // A list of BSD, or one that was joined with a list of GNU.
        (Some(name), Some(Separator::One)) => vec![rest, name],
        (None, _) => vec![rest],
    };
    Some((sum, names))
}

/// Returns how the digest is separated from the name, if the row has no tag. The first such row of
/// a list decides for all, as for `md5sum --check`.
pub(crate) fn separator(row: &[u8], kind: Option<HashKind>) -> Option<Separator> {
    let row = without_mark(row).0;
    if tagged(row).is_some() {
        return None;
    }
    let (sum, names) = plain(row, kind, Some(Separator::One))?;
    line(kind, sum, names[0], false)?;
    Some(if names.len() > 1 { Separator::Two } else { Separator::One })
}

fn unescaped(name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: LineFormat = LineFormat { tag: false, zero: false };
    const TAG: LineFormat = LineFormat { tag: true, zero: false };
    const ZERO: LineFormat = LineFormat { tag: false, zero: true };

    fn written(kind: HashKind, name: &[u8], format: LineFormat) -> Vec<u8> {
        let mut line = Vec::new();
        write_line(&mut line, kind, &kind.of(b"abc"), name, format);
        line
    }

    #[test]
    fn format_is_that_of_md5sum() {
        let sum = "900150983cd24fb0d6963f7d28e17f72";
        for (name, format, expected) in [
            (&b"a b"[..], PLAIN, format!("{sum}  a b\n")),
            (b"a\nb\\c\rd", PLAIN, format!("\\{sum}  a\\nb\\\\c\\rd\n")),
            (b"a b", TAG, format!("MD5 (a b) = {sum}\n")),
            (b"a\nb", TAG, format!("\\MD5 (a\\nb) = {sum}\n")),
            (b"a\nb", ZERO, format!("{sum}  a\nb\0")),
        ] {
            assert_eq!(written(HashKind::Md5, name, format), expected.as_bytes());
        }
    }

    fn parsed(row: &[u8], kind: Option<HashKind>) -> Option<Line> {
        match parse(row, kind, None) {
            Row::Line { line, .. } => Some(line),
            _ => None,
        }
    }

    #[test]
    fn lines_round_trip() {
        for kind in HashKind::ALL {
            for name in [
                &b"plain"[..],
                b" two ",
                b"*",
                b" ",
                b"#",
                b"new\nline",
                b"back\\slash",
                b"\xff\xfe",
                b"a) = b",
                b"carriage\rreturn\r",
                b"\ttab\t",
                b"deadbeef",
            ] {
                for format in [PLAIN, TAG] {
                    let line = written(kind, name, format);
                    let sum = kind.of(b"abc").as_bytes().to_vec();
                    let line = line.strip_suffix(b"\n").unwrap();
                    let other_names = Vec::new();
                    let expected = Line { kind: Some(kind), sum, name: name.to_vec(), other_names };
                    assert_eq!(parsed(line, Some(kind)), Some(expected.clone()));
                    let unknown = Line { kind: expected.kind.filter(|_| format.tag), ..expected };
                    assert_eq!(parsed(line, None), Some(unknown));
                }
            }
        }
    }

    #[test]
    fn foreign_lines_parse() {
        let sum = "900150983CD24FB0D6963F7D28E17F72";
        for (row, expected) in [
            (format!("{sum} *binary"), "binary"),
            (format!("{sum} one blank"), "one blank"),
            (format!("  {sum}  indented"), "indented"),
            (format!("\t{sum}\ttabs"), "tabs"),
            (format!("{sum}   blank first"), " blank first"),
            (format!("{sum} *"), "*"),
            (format!("\\{sum}  a\\nb"), "a\nb"),
            (format!("MD5(open)= ssl)= {sum}"), "open)= ssl"),
            (format!(" MD5 (blanks)  =  {sum} "), "blanks"),
        ] {
            let line = parsed(row.as_bytes(), Some(HashKind::Md5));
            assert_eq!(line.map(|line| line.name), Some(expected.into()), "{row:?}");
        }
        let openssl = parsed(format!("SHA2-256(a)= {0}{0}", sum).as_bytes(), None).unwrap();
        assert_eq!((openssl.kind, openssl.name), (Some(HashKind::Sha256), b"a".to_vec()));
    }

    #[test]
    fn entry_that_cannot_be_verified_is_told_from_prose() {
        let sum = "900150983CD24FB0D6963F7D28E17F72";
        for (row, expected) in [
            (format!("SHA224 (a) = {sum}"), "hash function SHA224"),
            (format!("BLAKE2b-256 (a) = {sum}"), "hash function BLAKE2b-256"),
            (format!("RMD160(a)= {sum}"), "hash function RMD160"),
            (format!("XXH3_{}  a", &sum[..16]), "hash function XXH3"),
            (format!("{}  short", &sum[1..]), "31 digits"),
            (format!("{sum}{}  a", &sum[..24]), "56 digits"),
            (format!("MD5 (short) = {}", &sum[2..]), "invalid digest"),
            (sum.to_owned(), "no valid name"),
            (format!("{sum}  zero\0"), "no valid name"),
            (format!("\\{sum}  bad\\escape"), "no valid name"),
        ] {
            let found = parse(row.as_bytes(), Some(HashKind::Md5), None);
            assert!(
                matches!(&found, Row::Unknown(why) if why.contains(expected)),
                "{row}: {found:?}"
            );
        }
        for row in ["", "# a comment", "prose", "deadbeef is a word", "f(x) = 1"] {
            assert_eq!(parse(row.as_bytes(), Some(HashKind::Md5), None), Row::Malformed, "{row}");
        }
    }

    #[test]
    fn first_line_decides_how_many_blanks_separate() {
        let sum = "900150983CD24FB0D6963F7D28E17F72";
        let separator = |text: &str| separator(format!("{sum}{text}").as_bytes(), None);
        assert_eq!(separator(" a"), Some(Separator::One));
        assert_eq!(separator(" *"), Some(Separator::One));
        assert_eq!(separator("  a"), Some(Separator::Two));
        assert_eq!(separator(" *a"), Some(Separator::Two));
        let names = |separator| match parse(format!("{sum} *a").as_bytes(), None, Some(separator)) {
            Row::Line { line, .. } => [vec![line.name], line.other_names].concat(),
            other => panic!("{other:?}"),
        };
        assert_eq!(names(Separator::Two), [b"a"]);
        assert_eq!(names(Separator::One), [&b"*a"[..], b"a"]);
    }
}
