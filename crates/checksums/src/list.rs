//! Parses the text of a checksum list and counts its malformed lines.

use haul_bulk_read::digest::HashKind;

use crate::line::{self, Line};

/// A parsed list of checksums.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// The valid lines, in the order of the list.
    pub lines: Vec<Line>,
    /// The number of malformed lines, which `lines` does not contain.
    pub malformed: usize,
}

impl List {
    /// Parses a list. If the text contains a NUL, its lines end with NUL, otherwise with a newline.
    /// Empty lines and lines that begin with `#` are ignored. `kind` is the hash function of lines
    /// without a tag, if the caller knows it.
    #[must_use]
    pub fn parse(text: &[u8], kind: Option<HashKind>) -> Self {
        let end = if text.contains(&0) { 0 } else { b'\n' };
        let rows = text.split(|byte| *byte == end);
        let mut list = Self::default();
        for row in rows.filter(|row| !row.is_empty() && !row.starts_with(b"#")) {
            match line::parse(row, kind) {
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
        let text = format!("# comment\n{sum}  a\n\n{sum} b\n{sum}  c");
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
}
