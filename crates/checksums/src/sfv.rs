//! Parses the lines of SFV lists, as written by `cksfv` and `rhash`: a name, a blank, and the
//! CRC-32 in hexadecimal. Comments begin with `;`.

use std::path::Path;

use haul_bulk_read::digest::{HashKind, from_hex};

use crate::line::{Line, Row};

/// The number of hexadecimal digits of a CRC-32.
const DIGITS: usize = 8;

/// Parses a row without its terminator. `cksfv` writes one blank before the CRC; other programs
/// align the CRCs with more of them, so that blanks at the end of a name may not belong to it.
pub(crate) fn parse(row: &[u8]) -> Row {
    match line(row) {
        Some(line) => Row::Line { line, ends_with_name: false },
        None => Row::Unknown("no CRC-32 at its end".to_owned()),
    }
}

fn line(row: &[u8]) -> Option<Line> {
    let row = row.trim_ascii_end();
    let (name, sum) = row.split_at_checked(row.len().checked_sub(DIGITS)?)?;
    let name = name.strip_suffix(b" ").or_else(|| name.strip_suffix(b"\t"))?;
    let trimmed = name.trim_ascii_end();
    let is_valid = !trimmed.is_empty() && !name.starts_with(b";") && !name.contains(&0);
    let sum = from_hex(sum).filter(|_| is_valid)?;
    let other_names = if trimmed == name { Vec::new() } else { vec![trimmed.to_vec()] };
    Some(Line { kind: Some(HashKind::Crc32), sum, name: name.to_vec(), other_names })
}

/// `true` if the row begins with a word of as many digits as a CRC-32 has, and one blank. Programs
/// that write the CRC-32 first write two blanks, or a tab.
pub(crate) fn begins_with_short_word(row: &[u8]) -> bool {
    let Some((word, rest)) = row.split_at_checked(DIGITS) else { return false };
    let is_single = rest.starts_with(b" ") && !rest.starts_with(b"  ") && !rest.starts_with(b" *");
    is_single && word.iter().all(u8::is_ascii_hexdigit)
}

/// `true` if the path of a list is one of an SFV list.
pub(crate) fn is_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name.contains(".sfv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_follows_the_name() {
        let crc = vec![0x35, 0x24, 0x41, 0xc2];
        for (row, names) in [
            (&b"a b 352441C2"[..], &["a b"][..]),
            (b"padded      352441c2 \r", &["padded     ", "padded"]),
            (b"blank  352441c2", &["blank ", "blank"]),
            (b"#1.mp3 352441c2", &["#1.mp3"]),
            (b" first\t352441c2", &[" first"]),
        ] {
            let found = line(row).unwrap();
            let found_names = [vec![found.name], found.other_names].concat();
            assert_eq!(found_names, names.iter().map(|name| name.as_bytes()).collect::<Vec<_>>());
            assert_eq!(found.sum, crc);
        }
        for row in ["; a 352441c2", "a352441c2", "352441c2", " 352441c2", "a 352441c", "a xyz441c2"]
        {
            assert!(matches!(parse(row.as_bytes()), Row::Unknown(_)), "{row}");
        }
    }
}
