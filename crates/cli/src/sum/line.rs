//! The lines of a list of sums, as `sha256sum` and `b3sum` write and read them. Pure.
//!
//! A name with a newline or a backslash is escaped, and a backslash before the line says so.

use haul_bulk_read::digest::{Digest, HashKind, from_hex};

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) kind: HashKind,
    pub(super) sum: Vec<u8>,
    pub(super) name: Vec<u8>,
}

/// The forms a line is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// `SHA256 (name) = sum`.
    pub(super) tag: bool,
    /// Lines end with a zero byte, and names stand as they are.
    pub(super) zero: bool,
}

const TAGS: [(&str, HashKind); 7] = [
    ("BLAKE3", HashKind::Blake3),
    ("XXH128", HashKind::Xxh3),
    ("SHA256", HashKind::Sha256),
    ("SHA512", HashKind::Sha512),
    ("SHA3-256", HashKind::Sha3_256),
    ("SHA3-512", HashKind::Sha3_512),
    ("MD5", HashKind::Md5),
];

fn tag(kind: HashKind) -> &'static str {
    TAGS.iter().find(|(_, tagged)| *tagged == kind).map_or("", |(tag, _)| tag)
}

/// Writes one line, with its end.
pub(super) fn write(line: &mut Vec<u8>, kind: HashKind, sum: &Digest, name: &[u8], form: Form) {
    // b3sum knows no escape for a carriage return, the others want one.
    let is_special = |byte: &u8| match byte {
        b'\n' | b'\\' => true,
        b'\r' => kind != HashKind::Blake3,
        _ => false,
    };
    let is_escaped = !form.zero && name.iter().any(is_special);
    if is_escaped {
        line.push(b'\\');
    }
    let sum = sum.to_string();
    if form.tag {
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
    if form.tag {
        line.extend_from_slice(b") = ");
        line.extend_from_slice(sum.as_bytes());
    }
    line.push(if form.zero { 0 } else { b'\n' });
}

/// Writes a name for a line that only people read, escaped where it would break the line.
pub(super) fn escape(line: &mut Vec<u8>, name: &[u8]) {
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

/// Reads one line, without its end; `None` when it is none. `kind` is the hash of lines that do
/// not tell it.
pub(super) fn read(line: &[u8], kind: HashKind) -> Option<Line> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (line, is_escaped) = match line.strip_prefix(b"\\") {
        Some(line) => (line, true),
        None => (line, false),
    };
    let (kind, sum, name) = tagged(line).or_else(|| plain(line, kind))?;
    let sum = from_hex(sum).filter(|sum| sum.len() == kind.bytes())?;
    let name = if is_escaped { unescaped(name)? } else { name.to_vec() };
    (!name.is_empty() && !name.contains(&0)).then_some(Line { kind, sum, name })
}

fn tagged(line: &[u8]) -> Option<(HashKind, &[u8], &[u8])> {
    let (tag, kind) = TAGS.iter().find(|(tag, _)| {
        line.strip_prefix(tag.as_bytes()).is_some_and(|rest| rest.starts_with(b" ("))
    })?;
    let rest = &line[tag.len() + 2..];
    let sum_at = rest.len().checked_sub(kind.bytes() * 2)?;
    let (name, sum) = rest.split_at(sum_at);
    Some((*kind, sum, name.strip_suffix(b") = ")?))
}

fn plain(line: &[u8], kind: HashKind) -> Option<(HashKind, &[u8], &[u8])> {
    let (sum, rest) = line.split_at_checked(kind.bytes() * 2)?;
    // A star marks a file read as "binary", which all are.
    let name = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *"))?;
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

    const PLAIN: Form = Form { tag: false, zero: false };
    const TAG: Form = Form { tag: true, zero: false };
    const ZERO: Form = Form { tag: false, zero: true };

    fn written(kind: HashKind, name: &[u8], form: Form) -> Vec<u8> {
        let mut line = Vec::new();
        write(&mut line, kind, &kind.of(b"abc"), name, form);
        line
    }

    #[test]
    fn lines_are_those_of_md5sum() {
        let sum = "900150983cd24fb0d6963f7d28e17f72";
        for (name, form, expected) in [
            (&b"a b"[..], PLAIN, format!("{sum}  a b\n")),
            (b"a\nb\\c\rd", PLAIN, format!("\\{sum}  a\\nb\\\\c\\rd\n")),
            (b"a b", TAG, format!("MD5 (a b) = {sum}\n")),
            (b"a\nb", TAG, format!("\\MD5 (a\\nb) = {sum}\n")),
            (b"a\nb", ZERO, format!("{sum}  a\nb\0")),
        ] {
            assert_eq!(written(HashKind::Md5, name, form), expected.as_bytes());
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for kind in HashKind::ALL {
            for name in
                [&b"plain"[..], b" two ", b"new\nline", b"back\\slash", b"\xff\xfe", b"a) = b"]
            {
                for form in [PLAIN, TAG] {
                    let line = written(kind, name, form);
                    let sum = kind.of(b"abc").as_bytes().to_vec();
                    let expected = Line { kind, sum, name: name.to_vec() };
                    assert_eq!(read(line.strip_suffix(b"\n").unwrap(), kind), Some(expected));
                }
            }
        }
    }

    #[test]
    fn lines_of_others_are_understood_and_what_is_none_is_not() {
        let sum = "900150983CD24FB0D6963F7D28E17F72";
        let name = |text: String| read(text.as_bytes(), HashKind::Md5).map(|line| line.name);
        assert_eq!(name(format!("{sum} *binary")), Some(b"binary".to_vec()));
        assert_eq!(name(format!("{sum}  dos\r")), Some(b"dos".to_vec()));
        for text in [
            String::new(),
            "# a comment".to_owned(),
            sum.to_owned(),
            format!("{sum}  "),
            format!("{sum} one-blank"),
            format!("{}  short", &sum[1..]),
            format!("\\{sum}  bad\\escape"),
            format!("SHA256 (name) = {sum}"),
            format!("{sum}  zero\0"),
        ] {
            assert_eq!(name(text.clone()), None, "{text:?}");
        }
    }
}
