//! Parses the values of command-line options.

use std::ops::RangeInclusive;

use clap::builder::RangedU64ValueParser;
use haul_units::parse_bytes;

/// Returns a parser of whole numbers in `range`.
#[must_use]
pub fn count(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// Returns the parser of a number of rounds, from 1 to 1000.
#[must_use]
pub fn rounds() -> RangedU64ValueParser<usize> {
    count(1..=1000)
}

/// Parses a size, and returns it in bytes. `range` is in bytes; `expected` describes the range.
///
/// # Errors
/// Returns an error if `text` is no size, and `expected` if the size is outside the range.
pub fn size(text: &str, range: RangeInclusive<u64>, expected: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if range.contains(&bytes) { Ok(bytes) } else { Err(format!("expected {expected}")) }
}

/// Parses the length of a file, at least 1 MiB, and returns it in bytes, rounded down to whole MiB.
///
/// # Errors
/// Returns an error if `text` is no such length.
pub fn file_size(text: &str) -> Result<u64, String> {
    Ok(size(text, 1 << 20..=u64::MAX, "1MiB or more")? >> 20 << 20)
}

/// Parses a length that is a multiple of 4 KiB, up to 64 MiB, and returns it in bytes.
///
/// # Errors
/// Returns an error if `text` is no such length.
pub fn pages(text: &str) -> Result<u64, String> {
    let expected = "a multiple of 4KiB, up to 64MiB";
    let bytes = size(text, 4 << 10..=64 << 20, expected)?;
    if bytes.is_multiple_of(4 << 10) { Ok(bytes) } else { Err(format!("expected {expected}")) }
}
