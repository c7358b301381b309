//! Parses and writes the lines of checksum lists, in the formats of `sha256sum` and `b3sum`. Also
//! parses the lines of the BSD tools (`md5 -r`) and of `openssl dgst`.
//!
//! If a name contains a newline, a backslash or (except with BLAKE3) a carriage return, these bytes
//! are escaped, and the line begins with a backslash.

use haul_bulk_read::digest::{Digest, HashKind, from_hex};

/// One line of a checksum list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The hash function, if known.
    pub kind: Option<HashKind>,
    /// The digest.
    pub sum: Vec<u8>,
    /// The name of the file, without escapes.
    pub name: Vec<u8>,
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
    // b3sum does not accept an escaped carriage return; the other tools require one.
    let is_special = |byte: &u8| match byte {
        b'\n' | b'\\' => true,
        b'\r' => kind != HashKind::Blake3,
        _ => false,
    };
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
            b'\r' if is_escaped && is_special(byte) => line.extend_from_slice(b"\\r"),
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

/// Parses one line without its terminator; `None` if it is malformed. `kind` is the hash function
/// of lines without a tag, if the caller knows it.
pub(crate) fn parse(line: &[u8], kind: Option<HashKind>) -> Option<Line> {
    let (line, is_escaped) = match line.strip_prefix(b"\\") {
        Some(line) => (line, true),
        None => (line, false),
    };
    let (kind, sum, name) = tagged(line).or_else(|| plain(line, kind))?;
    let sum = from_hex(sum)?;
    let is_right = kind.map_or(LENGTHS.contains(&sum.len()), |kind| kind.bytes() == sum.len());
    let name = if is_escaped { unescaped(name)? } else { name.to_vec() };
    (is_right && !name.is_empty() && !name.contains(&0)).then_some(Line { kind, sum, name })
}

/// The parts of a line: hash function, hexadecimal digest, and name.
type Parts<'a> = (Option<HashKind>, &'a [u8], &'a [u8]);

fn tagged(line: &[u8]) -> Option<Parts<'_>> {
    let name_of = |tag: &str| {
        let rest = line.strip_prefix(tag.as_bytes())?;
        // openssl(1) writes no blank before the parentheses, and only one after them.
        let gnu = rest.strip_prefix(b" (").map(|rest| (rest, &b") = "[..]));
        gnu.or_else(|| rest.strip_prefix(b"(").map(|rest| (rest, &b")= "[..])))
    };
    let ((rest, end), kind) = TAGS.iter().find_map(|(tag, kind)| Some((name_of(tag)?, *kind)))?;
    let sum_at = rest.len().checked_sub(kind.bytes() * 2)?;
    let (name, sum) = rest.split_at(sum_at);
    Some((Some(kind), sum, name.strip_suffix(end)?))
}

fn plain(line: &[u8], kind: Option<HashKind>) -> Option<Parts<'_>> {
    let digits = match kind {
        Some(kind) => kind.bytes() * 2,
        None => line.iter().position(|byte| *byte == b' ')?,
    };
    let (sum, rest) = line.split_at_checked(digits)?;
    // "*" marks files read in binary mode, which is the same as text mode on Linux. The BSD tools
    // write one blank only.
    let name = [&b"  "[..], b" *", b" "].iter().find_map(|blank| rest.strip_prefix(*blank))?;
    Some((kind, sum, name))
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

    #[test]
    fn lines_round_trip() {
        for kind in HashKind::ALL {
            for name in
                [&b"plain"[..], b" two ", b"new\nline", b"back\\slash", b"\xff\xfe", b"a) = b"]
            {
                for format in [PLAIN, TAG] {
                    let line = written(kind, name, format);
                    let sum = kind.of(b"abc").as_bytes().to_vec();
                    let line = line.strip_suffix(b"\n").unwrap();
                    let expected = Line { kind: Some(kind), sum, name: name.to_vec() };
                    assert_eq!(parse(line, Some(kind)), Some(expected.clone()));
                    let unknown = Line { kind: expected.kind.filter(|_| format.tag), ..expected };
                    assert_eq!(parse(line, None), Some(unknown));
                }
            }
        }
    }

    #[test]
    fn foreign_lines_parse_and_malformed_ones_do_not() {
        let sum = "900150983CD24FB0D6963F7D28E17F72";
        let name = |text: String| parse(text.as_bytes(), Some(HashKind::Md5)).map(|line| line.name);
        assert_eq!(name(format!("{sum} *binary")), Some(b"binary".to_vec()));
        assert_eq!(name(format!("{sum} one blank")), Some(b"one blank".to_vec()));
        assert_eq!(name(format!("MD5(open)= ssl)= {sum}")), Some(b"open)= ssl".to_vec()));
        let sum256 = sum.repeat(2);
        let openssl = parse(format!("SHA2-256(a)= {sum256}").as_bytes(), None).unwrap();
        assert_eq!((openssl.kind, openssl.name), (Some(HashKind::Sha256), b"a".to_vec()));
        for text in [
            String::new(),
            "# a comment".to_owned(),
            sum.to_owned(),
            format!("{sum}  "),
            format!("{}  short", &sum[1..]),
            format!("\\{sum}  bad\\escape"),
            format!("SHA256 (name) = {sum}"),
            format!("{sum}  zero\0"),
        ] {
            assert_eq!(name(text.clone()), None, "{text:?}");
        }
    }
}
