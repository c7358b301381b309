//! Parses the text of a checksum list.

use std::cmp::Ordering;
use std::path::Path;

use haul_bulk_read::digest::HashKind;

use crate::hashdeep::{self, Columns};
use crate::line::{self, Line, Row, Separator};
use crate::pgp::{MessageRows, OpenArmor};
use crate::{pgp, sfv};

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// A digest and a name, or a tag, a name and a digest.
    Sums {
        /// The hash function of lines without a tag, if it is known.
        kind: Option<HashKind>,
        separator: Option<Separator>,
    },
    /// A name and a CRC-32.
    Sfv,
    /// Columns separated by commas; `None` if none of their hash functions is known.
    Hashdeep(Option<Columns>),
}

impl Format {
    /// Detects the format. A row of one format may look like a row of another, such as text that
    /// ends with a word of eight letters like a row of SFV: the format of more rows is taken. If
    /// all rows have both, a comment of SFV decides, or that `is_named_sfv`, or that no tool
    /// separates a CRC-32 by one blank from a name behind it.
    fn of(rows: &[&[u8]], kind: Option<HashKind>, is_named_sfv: bool) -> Self {
        if rows.first().is_some_and(|row| row.starts_with(hashdeep::MAGIC)) {
            return Self::Hashdeep(None);
        }
        let may_be_sfv = kind.is_none_or(|kind| kind == HashKind::Crc32);
        let sums = rows.iter().filter(|row| line::is_sum(row, kind)).count();
        let sfv = rows.iter().filter(|row| may_be_sfv && sfv::parse(row).is_line()).count();
        let has_comment = || rows.iter().any(|row| row.starts_with(b";"));
        let are_separated_by_one_blank = || rows.iter().all(|row| sfv::begins_with_short_word(row));
        let is_sfv = match sfv.cmp(&sums) {
            Ordering::Greater => true,
            Ordering::Equal if sfv > 0 => {
                is_named_sfv || has_comment() || are_separated_by_one_blank()
            }
            _ => false,
        };
        if is_sfv {
            return Self::Sfv;
        }
        Self::Sums { kind, separator: rows.iter().find_map(|row| line::separator(row, kind)) }
    }

    /// `true` if the row is a comment, or part of a header.
    fn is_comment(self, row: &[u8]) -> bool {
        match self {
            Self::Sums { .. } => row.starts_with(b"#"),
            Self::Sfv => row.starts_with(b";"),
            Self::Hashdeep(_) => row.starts_with(b"#") || row.starts_with(b"%%%%"),
        }
    }

    fn parse(self, row: &[u8]) -> Row {
        match self {
            Self::Sums { kind, separator } => line::parse(row, kind, separator),
            Self::Sfv => sfv::parse(row),
            Self::Hashdeep(Some(columns)) => columns.parse_row(row),
            Self::Hashdeep(None) => Row::Unknown(hashdeep::NO_KIND.to_owned()),
        }
    }
}

/// A row that is an entry of a list, but cannot be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRow {
    /// The number of the row, from 1.
    pub number: usize,
    /// Why it cannot be verified, such as "unknown hash function SHA224".
    pub reason: String,
}

impl From<OpenArmor> for UnknownRow {
    fn from(armor: OpenArmor) -> Self {
        Self { number: armor.number, reason: armor.reason.to_owned() }
    }
}

/// A parsed list of checksums.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// The valid lines, in the order of the list.
    pub lines: Vec<Line>,
    /// The entries that cannot be verified. A check with one of them has not verified the list.
    pub unknown: Vec<UnknownRow>,
    /// The number of rows that are neither lines, entries, comments nor blank.
    pub malformed: usize,
}

impl List {
    /// Parses a list of `sha256sum`, `b3sum`, `xxhsum`, `openssl dgst`, the BSD tools, `cksfv` or
    /// `hashdeep`, also within a PGP-signed message. If the text contains a NUL, its lines end with
    /// NUL, otherwise with a newline. Blank rows and comments are ignored: rows that begin with `#`,
    /// in SFV lists with `;`. `kind` is the hash function of lines without a tag, if the caller
    /// knows it.
    #[must_use]
    pub fn parse(text: &[u8], kind: Option<HashKind>) -> Self {
        Self::parse_file(text, kind, Path::new(""))
    }

    /// Parses a list like [`Self::parse`]. If its rows look like those of two formats, the file
    /// name of the list decides.
    #[must_use]
    pub fn parse_file(text: &[u8], kind: Option<HashKind>, path: &Path) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let ends_with_nul = text.contains(&0);
        let MessageRows { rows, without_end } = match ends_with_nul {
            true => {
                MessageRows { rows: text.split(|byte| *byte == 0).collect(), without_end: None }
            }
            false => pgp::message_rows(text.split(|byte| *byte == b'\n')),
        };
        let mut list = Self::default();
        list.unknown.extend(without_end.map(UnknownRow::from));
        list.add(&rows, ends_with_nul, kind, path);
        list.unknown.sort_by_key(|row| row.number);
        list
    }

    fn add(&mut self, rows: &[&[u8]], ends_with_nul: bool, kind: Option<HashKind>, path: &Path) {
        // A carriage return before a NUL is part of the name.
        let has_return = |row: &&[u8]| !ends_with_nul && row.ends_with(b"\r");
        let is_filled = |row: &&&[u8]| !row.trim_ascii().is_empty();
        let all_have_returns = rows.iter().filter(is_filled).all(has_return);
        let bare = |row: &&[u8]| -> Vec<u8> {
            let end = row.len() - usize::from(has_return(row));
            row[..end].to_vec()
        };
        let bare_rows: Vec<_> = rows.iter().map(bare).collect();
        let filled: Vec<&[u8]> = bare_rows
            .iter()
            .map(Vec::as_slice)
            .filter(|row| !row.trim_ascii().is_empty())
            .collect();
        let mut format = Format::of(&filled, kind, sfv::is_name(path));
        for ((number, row), bare) in (1..).zip(rows).zip(&bare_rows) {
            if bare.trim_ascii().is_empty() {
                continue;
            }
            if let Format::Hashdeep(columns) = &mut format
                && bare.starts_with(hashdeep::COLUMNS)
            {
                *columns = Columns::parse(bare);
            }
            if format.is_comment(bare) {
                continue;
            }
            match format.parse(bare) {
                Row::Line { mut line, ends_with_name } => {
                    if ends_with_name && has_return(row) {
                        name_with_return(&mut line, !all_have_returns);
                    }
                    self.lines.push(line);
                }
                Row::Unknown(reason) => self.unknown.push(UnknownRow { number, reason }),
                Row::Malformed if number == rows.len() && line::is_cut_off(bare) => {
                    let reason = "the list is cut off here".to_owned();
                    self.unknown.push(UnknownRow { number, reason });
                }
                Row::Malformed => self.malformed += 1,
            }
        }
    }
}

/// Adds the names of a line that end with the carriage return of its row. They come first if other
/// rows have none, so that it is not part of the end of a row.
fn name_with_return(line: &mut Line, comes_first: bool) {
    let plain =
        [vec![std::mem::take(&mut line.name)], std::mem::take(&mut line.other_names)].concat();
    let with: Vec<Vec<u8>> = plain.iter().map(|name| [&name[..], b"\r"].concat()).collect();
    let mut names = if comes_first { [with, plain] } else { [plain, with] }.concat().into_iter();
    line.name = names.next().unwrap_or_default();
    line.other_names = names.collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_ignored_and_malformed_lines_counted() {
        let sum = "900150983cd24fb0d6963f7d28e17f72";
        let text = format!("# comment\n{sum}  a\n\n \t\nprose\nSHA224 (a) = {sum}\n{sum}  c");
        let list = List::parse(text.as_bytes(), None);
        let names: Vec<_> = list.lines.iter().map(|line| line.name.as_slice()).collect();
        assert_eq!((names, list.malformed), (vec![&b"a"[..], b"c"], 1));
        assert_eq!((list.unknown.len(), list.unknown[0].number), (1, 6));
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
        // Lists of earlier versions of b3sum do not escape it.
        assert_eq!(names(format!("{sum}  a\r\n{sum}  b\n")), [&b"a\r"[..], b"b"]);
        let line = &List::parse(format!("{sum}  a\r\n").as_bytes(), None).lines[0];
        assert_eq!((&line.name[..], &line.other_names[..]), (&b"a"[..], &[b"a\r".to_vec()][..]));
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
        let text = "%%%% HASHDEEP-1.0\n%%%% size,tiger,filename\n3,00,a\n";
        let list = List::parse(text.as_bytes(), None);
        assert_eq!((list.unknown[0].number, &*list.unknown[0].reason), (3, hashdeep::NO_KIND));
    }

    fn names(text: &str) -> Vec<String> {
        let lines = List::parse(text.as_bytes(), None).lines;
        lines.iter().map(|line| String::from_utf8(line.name.clone()).unwrap()).collect()
    }

    #[test]
    fn each_format_has_comments_of_its_own() {
        let md5 = "900150983cd24fb0d6963f7d28e17f72";
        assert_eq!(names("; a 00000000\n#1.mp3 00000000\nb 00000000\n"), ["#1.mp3", "b"]);
        assert_eq!(names(&format!("#{md5}  a\n{md5}  b\n{md5}  ;c\n")), ["b", ";c"]);
        // A name of SFV that looks like a digest.
        assert_eq!(names(&format!("{md5} 00000000\na 00000000\nb 00000000\n")), [md5, "a", "b"]);
        let hashdeep = format!(
            "%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n## c\n3,{md5},#a\n\
             %%%% HASHDEEP-1.0\n%%%% size,tiger,md5,filename\n3,00,{md5},b\n"
        );
        assert_eq!(names(&hashdeep), ["#a", "b"], "two lists in one file");
    }

    #[test]
    fn signed_message_is_read_without_its_armor() {
        let md5 = "900150983cd24fb0d6963f7d28e17f72";
        let signed = |body: &str| {
            format!(
                "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{body}\
                 -----BEGIN PGP SIGNATURE-----\nVersion: 1\n\niQIzBAEB\n{md5}\n=abcd\n\
                 -----END PGP SIGNATURE-----\n"
            )
        };
        let sums = signed(&format!("{md5}  a\n{md5}  b\n"));
        for text in [sums.clone(), sums.replace('\n', "\r\n")] {
            let list = List::parse(text.as_bytes(), None);
            assert_eq!((list.malformed, list.unknown.len()), (0, 0), "{text}");
            assert_eq!(list.lines.len(), 2);
            assert_eq!(list.lines[1].name, b"b");
        }
        assert_eq!(names(&signed("- -dash 00000000\nb 00000000\n")), ["-dash", "b"]);
    }

    #[test]
    fn no_entry_hides_in_an_armor() {
        let md5 = "900150983cd24fb0d6963f7d28e17f72";
        let (begin, end) = ("-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----");
        let message = "-----BEGIN PGP SIGNED MESSAGE-----";
        let signature = format!("{begin}\n\nabc=\n{end}\n");
        for (text, expected, without_end) in [
            (format!("{md5}  a\n{begin}\n\nabc\n{md5}  b\n{end}\n"), &["a", "b"][..], None),
            (format!("{md5}  a\n{begin}\n\nabc\n{md5}  b\n"), &["a", "b"], Some(2)),
            (format!("{md5}  a\n{begin}\n\nabc\n"), &["a"], Some(2)),
            (format!("{message}\nHash: a\n{md5}  a\n\n{md5}  b\n{signature}"), &["a", "b"], None),
            (format!("{message}\n\n{md5}  a\n{begin}\n\nabc\n{md5}  b\n"), &["a", "b"], Some(1)),
            (format!("{message}\n\n{md5}  a\n"), &["a"], Some(1)),
            (format!("{md5}  a\n{message}\nHash: a\n"), &["a"], Some(2)),
        ] {
            let list = List::parse(text.as_bytes(), None);
            let rows: Vec<_> = list.unknown.iter().map(|row| row.number).collect();
            let expected = expected.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!((names(&text), rows), (expected, Vec::from_iter(without_end)), "{text}");
        }
    }

    #[test]
    fn rows_of_sums_that_look_like_rows_of_sfv_are_told_apart() {
        let md5 = "900150983cd24fb0d6963f7d28e17f72";
        let named = |text: &str, path: &str| -> Vec<String> {
            let lines = List::parse_file(text.as_bytes(), None, Path::new(path)).lines;
            lines.into_iter().map(|line| String::from_utf8(line.name).unwrap()).collect()
        };
        for name in ["deadbeef", " deadbeef", "deadbeef 1.mp3", md5, &"0".repeat(64)] {
            let row = format!("{name} DDEAA107\n");
            assert_eq!(named(&row, "d/X.SFV"), [name]);
            assert_eq!(named(&format!("; c\n{row}"), "list"), [name]);
        }
        assert_eq!(named("deadbeef DDEAA107\n", "list"), ["deadbeef"], "as cksfv writes it");
        assert_eq!(named("deadbeef  DDEAA107\n", "list"), ["DDEAA107"], "as haul sum writes it");
        assert_eq!(named("deadbeef\tDDEAA107\n", "list"), ["DDEAA107"], "as crc32 writes it");
        assert_eq!(named(&format!("{md5} DDEAA107\n"), "list"), ["DDEAA107"], "as BSD writes it");
    }

    #[test]
    fn unknown_hash_functions_of_any_length_are_named() {
        for (tag, digits) in [("XXH32", 8), ("CRC32C", 8), ("XXH3", 16), ("SHA224", 56)] {
            let row = |name: &str| format!("{tag} ({name}) = {}\n", "0".repeat(digits));
            let list = List::parse([row("f"), row("g")].concat().as_bytes(), None);
            assert_eq!((list.lines.len(), list.unknown.len()), (0, 2), "{tag}");
            assert_eq!(list.unknown[0].reason, format!("unknown hash function {tag}"));
        }
    }

    #[test]
    fn list_that_was_cut_off_is_an_error_wherever_the_cut_is() {
        let md5 = "900150983cd24fb0d6963f7d28e17f72";
        let name = b"long name";
        for format in [false, true].map(|tag| line::LineFormat { tag, zero: false }) {
            let (mut first, mut last) = (Vec::new(), Vec::new());
            let sum = HashKind::Md5.of(b"abc");
            assert_eq!(sum.to_string(), md5);
            line::write_line(&mut first, HashKind::Md5, &sum, b"a", format);
            line::write_line(&mut last, HashKind::Md5, &sum, name, format);
            // Without a tag, a part of the name is the name of another file, or of none.
            let end = if format.tag { last.len() - 1 } else { last.len() - 1 - name.len() };
            for cut in 1..end {
                let list = List::parse(&[&first[..], &last[..cut]].concat(), None);
                let counts = (list.lines.len(), list.unknown.len(), list.malformed);
                let row = String::from_utf8_lossy(&last[..cut]);
                assert_eq!(counts, (1, 1, 0), "{row}");
                assert_eq!(list.unknown[0].number, 2, "{row}");
            }
        }
        // Within a list, only what cannot be prose.
        for (row, is_entry) in [
            ("MD5 (g) =", true),
            ("MD5 (g) = 000000", true),
            ("0123456789  g", true),
            ("MD5 (see below)", false),
            ("decade", false),
        ] {
            let list = List::parse(format!("{row}\n{md5}  a\n").as_bytes(), None);
            assert_eq!(list.unknown.len(), usize::from(is_entry), "{row}");
        }
    }
}
