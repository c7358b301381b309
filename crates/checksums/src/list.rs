//! Parses the text of a checksum list and counts its malformed lines.

use haul_bulk_read::digest::HashKind;

use crate::hashdeep::{self, Columns};
use crate::line::{self, Line};
use crate::sfv;

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// A digest and a name, or a tag, a name and a digest. Contains the hash function of lines
    /// without a tag, if it is known.
    Sums(Option<HashKind>),
    /// A name and a CRC-32.
    Sfv,
    /// Columns separated by commas; `None` if none of their hash functions is known.
    Hashdeep(Option<Columns>),
}

impl Format {
    /// Detects the format from the first rows. The format of SFV lists is assumed only if the first
    /// row is not valid otherwise, because text that ends with a word of eight letters may look
    /// like it.
    fn of(rows: &[&[u8]], kind: Option<HashKind>) -> Self {
        if rows.first().is_some_and(|row| row.starts_with(hashdeep::MAGIC)) {
            let columns = rows.iter().skip(1).find(|row| row.starts_with(b"%%%%"));
            return Self::Hashdeep(columns.and_then(|row| Columns::parse(row)));
        }
        let sfv = || rows.iter().find(|row| !row.starts_with(b";")).and_then(|row| sfv::parse(row));
        let is_sum = rows.iter().any(|row| line::parse(row, kind).is_some());
        let may_be_sfv = kind.is_none_or(|kind| kind == HashKind::Crc32);
        if may_be_sfv && !is_sum && sfv().is_some() { Self::Sfv } else { Self::Sums(kind) }
    }

    /// `true` if the row is a comment, or part of a header.
    fn is_comment(self, row: &[u8]) -> bool {
        row.starts_with(b"#")
            || match self {
                Self::Sums(_) => false,
                Self::Sfv => row.starts_with(b";"),
                Self::Hashdeep(_) => row.starts_with(b"%%%%"),
            }
    }

    fn parse(self, row: &[u8]) -> Option<Line> {
        match self {
            Self::Sums(kind) => line::parse(row, kind),
            Self::Sfv => sfv::parse(row),
            Self::Hashdeep(columns) => columns?.line(row),
        }
    }
}

/// A parsed list of checksums.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// The valid lines, in the order of the list.
    pub lines: Vec<Line>,
    /// The number of malformed lines, which `lines` does not contain.
    pub malformed: usize,
}

impl List {
    /// Parses a list of `sha256sum`, `b3sum`, `xxhsum`, `openssl dgst`, the BSD tools, `cksfv` or
    /// `hashdeep`. If the text contains a NUL, its lines end with NUL, otherwise with a newline.
    /// Empty lines and comments are ignored. `kind` is the hash function of lines without a tag, if
    /// the caller knows it.
    #[must_use]
    pub fn parse(text: &[u8], kind: Option<HashKind>) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let end = if text.contains(&0) { 0 } else { b'\n' };
        // A carriage return before a newline is part of the end of the line, but one before a NUL
        // is part of the name.
        let rows = text.split(|byte| *byte == end).map(|row| match row {
            [line @ .., b'\r'] if end == b'\n' => line,
            _ => row,
        });
        let rows: Vec<_> = rows.filter(|row| !row.is_empty()).collect();
        let format = Format::of(&rows, kind);
        let mut list = Self::default();
        for row in rows.into_iter().filter(|row| !format.is_comment(row)) {
            match format.parse(row) {
                Some(line) => list.lines.push(line),
                None => list.malformed += 1,
            }
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_ignored_and_malformed_lines_counted() {
        let sum = "900150983cd24fb0d6963f7d28e17f72";
        let text = format!("# comment\n{sum}  a\n\n{sum}b\n{sum}  c");
        let list = List::parse(text.as_bytes(), None);
        let names: Vec<_> = list.lines.iter().map(|line| line.name.as_slice()).collect();
        assert_eq!((names, list.malformed), (vec![&b"a"[..], b"c"], 1));
    }

    #[test]
    fn lines_may_end_with_nul() {
        let sum = "900150983cd24fb0d6963f7d28e17f72";
        let list = List::parse(format!("{sum}  a\nb\0{sum}  c\0").as_bytes(), None);
        let names: Vec<_> = list.lines.iter().map(|line| line.name.as_slice()).collect();
        assert_eq!((names, list.malformed), (vec![&b"a\nb"[..], b"c"], 0));
    }

    #[test]
    fn carriage_return_is_part_of_a_name_only_before_nul() {
        let sum = "900150983cd24fb0d6963f7d28e17f72";
        let names = |text: String| -> Vec<Vec<u8>> {
            let list = List::parse(text.as_bytes(), None);
            list.lines.into_iter().map(|line| line.name).collect()
        };
        assert_eq!(names(format!("{sum}  a\r\n\r\n{sum}  b\r\n")), [b"a", b"b"]);
        assert_eq!(names(format!("{sum}  a\r\0{sum}  b\0")), [&b"a\r"[..], b"b"]);
    }

    #[test]
    fn lists_of_other_tools_are_recognized() {
        let (md5, sha) = ("900150983cd24fb0d6963f7d28e17f72", "00".repeat(32));
        for (tool, text, kind, names) in [
            (
                "cksfv",
                "; Generated\r\n;\r\na b.rar 352441C2\r\nc 00000000\r\n".to_owned(),
                HashKind::Crc32,
                &["a b.rar", "c"][..],
            ),
            (
                "hashdeep",
                format!(
                    "%%%% HASHDEEP-1.0\n%%%% size,md5,sha256,filename\n## /srv\n\
                ## $ hashdeep\n## \n3,{md5},{sha},/srv/a,b\n"
                ),
                HashKind::Sha256,
                &["/srv/a,b"],
            ),
            ("md5 of BSD", format!("MD5 (a) = {md5}\n"), HashKind::Md5, &["a"]),
            ("openssl", format!("SHA256(a)= {sha}\n"), HashKind::Sha256, &["a"]),
            ("byte order mark", format!("\u{feff}MD5 (a) = {md5}\n"), HashKind::Md5, &["a"]),
        ] {
            let list = List::parse(text.as_bytes(), None);
            let found: Vec<_> =
                list.lines.iter().map(|line| str::from_utf8(&line.name).unwrap()).collect();
            assert_eq!((found.as_slice(), list.malformed), (names, 0), "{tool}");
            assert!(list.lines.iter().all(|line| line.kind == Some(kind)), "{tool}");
        }
        let text = format!("prose that ends with deadbeef\n{md5}  a\n");
        assert_eq!(List::parse(text.as_bytes(), None).malformed, 1, "not an SFV list");
        let list = "%%%% HASHDEEP-1.0\n%%%% size,tiger,filename\n3,00,a\n";
        assert_eq!(List::parse(list.as_bytes(), None).malformed, 1, "no known hash function");
    }
}
