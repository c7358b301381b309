//! Reports of what was found: written in four formats, read again in two.

mod formats;
mod header;
mod json;
mod read;
mod text;

use std::fmt;
use std::path::PathBuf;

pub use formats::{Format, Writer};
pub use header::{Header, Moment, Stats};
pub use read::{Report, read};

/// What tells a file from every other, and from itself after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The device, as `st_dev` has it.
    pub device: u64,
    /// The inode on it.
    pub inode: u64,
    /// The length.
    pub bytes: u64,
    /// The time of the last change of its bytes, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The time of the last change of anything, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// One of several files of equal content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Where it is.
    pub path: PathBuf,
    /// Who it is, where the report says so: in JSON.
    pub identity: Option<Identity>,
}

/// Files, or directories, of equal content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The length of each.
    pub bytes: u64,
    /// The digest of each, in hexadecimal digits; zeros where nothing had to be read.
    pub hash: String,
    /// At least one.
    pub members: Vec<Member>,
}

/// A number of bytes as fclones tells it: `200015 B (200.0 KB)`.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: &[u8] = b"KMGTPE";
        let bytes = self.0;
        write!(f, "{bytes} B ")?;
        let (mut unit, mut scale) = (0, 1000_u64);
        if bytes < scale {
            return write!(f, "({bytes} B)");
        }
        while bytes / scale >= 1000 && unit + 1 < UNITS.len() {
            (unit, scale) = (unit + 1, scale * 1000);
        }
        // Tenths, rounded.
        let tenths = (u128::from(bytes) * 20 / u128::from(scale)).div_ceil(2);
        write!(f, "({}.{} {}B)", tenths / 10, tenths % 10, char::from(UNITS[unit]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_as_fclones_does() {
        for (bytes, text) in [
            (0, "0 B (0 B)"),
            (999, "999 B (999 B)"),
            (1000, "1000 B (1.0 KB)"),
            (200_015, "200015 B (200.0 KB)"),
            (1_250_000, "1250000 B (1.3 MB)"),
            (5_500_000_000, "5500000000 B (5.5 GB)"),
            (u64::MAX, "18446744073709551615 B (18.4 EB)"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
