//! Parses lists of `hashdeep`. Each line has the length of a file, digests of several hash
//! functions, and the name, separated by commas.

use haul_bulk_read::digest::{HashKind, from_hex};

use crate::line::{Line, Row};

/// The beginning of the first line.
pub(crate) const MAGIC: &[u8] = b"%%%% HASHDEEP-";

/// The beginning of the line that names the columns.
pub(crate) const COLUMNS: &[u8] = b"%%%% size,";

/// The names of the hash functions, the strongest first.
const KINDS: [(&[u8], HashKind); 3] =
    [(b"sha256", HashKind::Sha256), (b"sha1", HashKind::Sha1), (b"md5", HashKind::Md5)];

/// The columns of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Columns {
    kind: HashKind,
    /// The index of the column with the digest.
    sum: usize,
    /// The number of columns, of which the last is the name.
    count: usize,
}

impl Columns {
    /// Parses the line that names the columns, such as `%%%% size,md5,sha256,filename`; `None` if
    /// no column has a known hash function.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let names: Vec<_> = trimmed(line).strip_prefix(b"%%%% ")?.split(|b| *b == b',').collect();
        let find = |(name, kind): &(&[u8], HashKind)| {
            let sum = names.iter().position(|column| column == name)?;
            Some(Self { kind: *kind, sum, count: names.len() })
        };
        KINDS.iter().find_map(find).filter(|_| names.last() == Some(&&b"filename"[..]))
    }

    /// Parses the row of a file without its terminator.
    pub(crate) fn parse_row(&self, row: &[u8]) -> Row {
        match self.line(row) {
            Some(line) => Row::Line { line, ends_with_name: true },
            None => Row::Unknown("its columns are not those of the list".to_owned()),
        }
    }

    fn line(&self, row: &[u8]) -> Option<Line> {
        let values: Vec<_> = row.splitn(self.count, |byte| *byte == b',').collect();
        let name =
            values.get(self.count - 1).filter(|name| !name.is_empty() && !name.contains(&0))?;
        let sum = from_hex(values[self.sum]).filter(|sum| sum.len() == self.kind.bytes())?;
        Some(Line { kind: Some(self.kind), sum, name: name.to_vec(), other_names: Vec::new() })
    }
}

/// Why rows of a list without a known hash function cannot be verified.
pub(crate) const NO_KIND: &str = "no digest of sha256, sha1 or md5";

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: &str = "900150983cd24fb0d6963f7d28e17f72";

    #[test]
    fn strongest_known_column_is_used() {
        let columns = |line: &str| Columns::parse(line.as_bytes()).map(|it| (it.kind, it.sum));
        let sha256 = Some((HashKind::Sha256, 2));
        assert_eq!(columns("%%%% size,md5,sha256,filename"), sha256);
        assert_eq!(columns("%%%% size,tiger,md5,filename\r"), Some((HashKind::Md5, 2)));
        assert_eq!(columns("%%%% size,tiger,filename"), None);
        assert_eq!(columns("%%%% HASHDEEP-1.0"), None);
    }

    #[test]
    fn names_may_contain_commas() {
        let columns = Columns::parse(b"%%%% size,md5,tiger,filename").unwrap();
        let line = columns.line(format!("3,{MD5},00ff,a,b c").as_bytes()).unwrap();
        assert_eq!((line.kind, line.name), (Some(HashKind::Md5), b"a,b c".to_vec()));
        for line in ["", "3", "3,00,00,short", &format!("3,{MD5},00,"), &format!("3,{MD5},00")] {
            assert_eq!(columns.line(line.as_bytes()), None, "{line}");
        }
    }
}
