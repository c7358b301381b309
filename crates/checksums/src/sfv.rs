//! Parses the lines of SFV lists, as written by `cksfv` and `rhash`: a name, a blank, and the
//! CRC-32 in hexadecimal. Comments begin with `;`.

use haul_bulk_read::digest::{HashKind, from_hex};

use crate::line::Line;

/// The number of hexadecimal digits of a CRC-32.
const DIGITS: usize = 8;

/// Parses a line without its terminator; `None` if it is malformed.
pub(crate) fn parse(line: &[u8]) -> Option<Line> {
    let line = line.strip_suffix(b"\r").unwrap_or(line).trim_ascii_end();
    let (name, sum) = line.split_at_checked(line.len().checked_sub(DIGITS)?)?;
    let name = name.strip_suffix(b" ").or_else(|| name.strip_suffix(b"\t"))?.trim_ascii_end();
    let is_valid = !name.is_empty() && !name.starts_with(b";") && !name.contains(&0);
    let sum = from_hex(sum).filter(|_| is_valid)?;
    Some(Line { kind: Some(HashKind::Crc32), sum, name: name.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_follows_the_name() {
        let name = |line: &[u8]| parse(line).map(|line| (line.name, line.sum));
        let crc = vec![0x35, 0x24, 0x41, 0xc2];
        assert_eq!(name(b"a b 352441C2"), Some((b"a b".to_vec(), crc.clone())));
        assert_eq!(name(b"padded      352441c2 \r"), Some((b"padded".to_vec(), crc)));
        for line in
            ["; a 352441c2", "a352441c2", "352441c2", " 352441c2", "a 352441c", "a xyz441c2"]
        {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }
}
