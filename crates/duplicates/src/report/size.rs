//! Formats sizes for reports of the default format.

use std::fmt;

/// A size in the notation of fclones: `200015 B (200.0 KB)`.
pub(super) struct Size(pub(super) u64);

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
        // The size in tenths of the unit, rounded.
        let tenths = (u128::from(bytes) * 20 / u128::from(scale)).div_ceil(2);
        write!(f, "({}.{} {}B)", tenths / 10, tenths % 10, char::from(UNITS[unit]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_formatted_as_in_fclones() {
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
