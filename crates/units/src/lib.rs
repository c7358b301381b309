//! Parses and prints sizes, durations and counts for users.
//!
//! [`parse_bytes`] and [`parse_time`] parse the arguments of command lines; [`Bytes`], [`Time`],
//! [`Count`], [`Grouped`] and [`Name`] print values for users.
//!
//! ```
//! assert_eq!(haul_units::parse_bytes("1.5MiB"), Ok(3 << 19));
//! assert_eq!(haul_units::Bytes(3 << 19).to_string(), "1.5 MiB");
//! ```

use std::fmt::{self, Write};
use std::time::Duration;

/// The units of sizes, with their length in bytes. A single letter denotes a power of 1024, as in
/// GNU tools.
const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("k", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

const TIMES_MS: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1000),
    ("sec", 1000),
    ("m", 60_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Parses a size such as `4M`, `4MiB`, `1.5 GB` or `4096`, and returns it in bytes.
///
/// # Errors
/// A sentence with the reason, and examples of the accepted format.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const EXAMPLES: &str = "write it like 4096, 64k, 4MiB, 1.5G (1024s) or 4MB, 1GB (1000s)";
    parse(text.trim(), SIZES).map_err(|why| format!("{why}; {EXAMPLES}"))
}

/// Parses a size as [`parse_bytes`] does, except that a single letter denotes a power of 1000, as
/// in fclones: `1M` is a million bytes, and `1MiB` is 1024 · 1024 bytes.
///
/// # Errors
/// The errors of [`parse_bytes`].
pub fn parse_bytes_decimal(text: &str) -> Result<u64, String> {
    const EXAMPLES: &str = "write it like 4096, 64k, 4MB, 1.5G (1000s) or 4MiB, 1GiB (1024s)";
    let units: Vec<(&str, u64)> =
        SIZES.iter().map(|(name, unit)| (*name, decimal(*unit))).collect();
    let is_letter = text.trim_end().ends_with(['k', 'K', 'M', 'm', 'G', 'g', 'T', 't']);
    let units = if is_letter { &units } else { SIZES };
    parse(text.trim(), units).map_err(|why| format!("{why}; {EXAMPLES}"))
}

/// Returns the power of 1000 that corresponds to a power of 1024.
fn decimal(unit: u64) -> u64 {
    if unit.is_power_of_two() { 1000_u64.pow(unit.trailing_zeros() / 10) } else { unit }
}

/// Parses a duration such as `30s`, `1.5min` or `1h30m`.
///
/// # Errors
/// A sentence with the reason, and examples of the accepted format.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    const EXAMPLES: &str = "write it like 500ms, 30s, 5min, 1h30m or 1d";
    let mut rest = text.trim();
    let mut sum = Ok(0_u64);
    loop {
        // The text consists of parts such as `1h` and `30m`: a part ends at the digit that follows
        // a unit.
        let unit = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let next = rest[unit..].find(|c: char| c.is_ascii_digit()).map(|at| unit + at);
        let (part, behind) = rest.split_at(next.unwrap_or(rest.len()));
        sum = sum.and_then(|sum: u64| {
            let part = parse(part.trim(), TIMES_MS)?;
            sum.checked_add(part).ok_or_else(|| TOO_LARGE.to_owned())
        });
        rest = behind;
        if rest.is_empty() {
            return sum.map(Duration::from_millis).map_err(|why| format!("{why}; {EXAMPLES}"));
        }
    }
}

const TOO_LARGE: &str = "the number is too large";

/// Parses a decimal number followed by the name of one of `units`, in upper or lower case. Returns
/// the number multiplied by the unit, rounded down.
fn parse(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, name) = (&text[..end], text[end..].trim_start());
    if name.starts_with('-') {
        return Err("it must not be negative".to_owned());
    }
    let Some((_, unit)) = units.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
        return Err(match name {
            "" => "the unit is missing".to_owned(),
            _ => format!("\"{name}\" is not a unit"),
        });
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| {
        (1..=20).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(whole) || !is_number(fraction) {
        return Err(format!("\"{number}\" is not a number"));
    }
    let digits = |digits: &str| digits.bytes().fold(0, |n, d| n * 10 + u128::from(d - b'0'));
    let scale = fraction.bytes().fold(1, |scale: u128, _| scale * 10);
    let unit = u128::from(*unit);
    let value = digits(whole) * unit + digits(fraction) * unit / scale;
    u64::try_from(value).map_err(|_overflow| TOO_LARGE.to_owned())
}

/// A size in bytes, printed in a binary unit, such as `512 B`, `4 MiB` or `1.2 GiB`.
#[derive(Debug, Clone, Copy)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        // The value in tenths of the unit of `1 << shift` bytes, rounded. A value that rounds to
        // 1,024 of a unit is printed in the next larger unit.
        let tenths = |shift: u32| (u128::from(self.0) * 10 + (1_u128 << (shift - 1))) >> shift;
        let mut unit = 0;
        let mut shift = 10;
        while tenths(shift) >= 10_240 && unit + 1 < UNITS.len() {
            unit += 1;
            shift += 10;
        }
        match tenths(shift) {
            tenths if tenths % 10 == 0 => write!(f, "{} {}", tenths / 10, UNITS[unit]),
            tenths => write!(f, "{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
        }
    }
}

/// A number, printed with its digits in groups of three, such as `12,345`.
#[derive(Debug, Clone, Copy)]
pub struct Grouped(pub u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// A count and its noun, printed as `1 file` or `12,345 files`.
#[derive(Debug, Clone, Copy)]
pub struct Count<'a>(pub u64, pub &'a str);

impl fmt::Display for Count<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", Grouped(self.0), self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// Returns the rate per second at which `amount` was processed in `time`, rounded down.
#[must_use]
pub fn per_second(amount: u64, time: Duration) -> u64 {
    let micros = time.as_micros().max(1);
    u64::try_from(u128::from(amount) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

/// A duration, printed as `0.4 s`, `12.3 s` or `5 min 7 s`.
#[derive(Debug, Clone, Copy)]
pub struct Time(pub Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0..=99 => write!(f, "{:.1} s", self.0.as_secs_f64()),
            seconds @ 100..=5999 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            seconds => write!(f, "{} h {} min", seconds / 3600, seconds / 60 % 60),
        }
    }
}

/// A name, printed on one line: control characters are escaped, since they could break the line or
/// control the terminal.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a>(pub &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_and_without_units_are_parsed() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("64KiB", 64 << 10),
            ("64kib", 64 << 10),
            ("4 MiB", 4 << 20),
            ("1.5GiB", 3 << 29),
            ("2TiB", 2 << 40),
            ("4M", 4 << 20),
            ("100k", 100 << 10),
            ("1.5G", 3 << 29),
            ("1kB", 1000),
            ("2.5MB", 2_500_000),
            ("0.5B", 0),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn single_letters_may_denote_powers_of_1000() {
        for (text, bytes) in [
            ("4096", 4096),
            ("1k", 1000),
            ("1K", 1000),
            ("0.5M ", 500_000),
            ("1G", 1_000_000_000),
            ("2T", 2_000_000_000_000),
            ("1KiB", 1024),
            ("1 MB", 1_000_000),
            ("7B", 7),
        ] {
            assert_eq!(parse_bytes_decimal(text), Ok(bytes), "{text}");
        }
        assert!(parse_bytes_decimal("1X").unwrap_err().contains("4MiB, 1GiB (1024s)"));
    }

    #[test]
    fn invalid_sizes_are_refused_with_a_reason() {
        for (text, why) in [
            ("", "not a number"),
            ("MiB", "not a number"),
            ("4X", "\"X\" is not a unit"),
            ("-1", "must not be negative"),
            ("1.2.3MiB", "not a number"),
            ("1.MiB", "not a number"),
            ("999999999999999999999", "not a number"),
            ("18446744073709551616", "too large"),
            ("18446744073709551615.1kB", "too large"),
            ("99999999999TiB", "too large"),
        ] {
            let error = parse_bytes(text).unwrap_err();
            assert!(error.contains(why) && error.contains("4MiB"), "{text}: {error}");
        }
    }

    #[test]
    fn durations_need_units_and_may_have_several() {
        assert_eq!(parse_time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_time("1.5min"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_time("7d"), Ok(Duration::from_hours(7 * 24)));
        assert_eq!(parse_time("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(parse_time(" 1 min 7.5s"), Ok(Duration::from_millis(67_500)));
        for (text, why) in [
            ("30", "unit is missing"),
            ("1h30", "unit is missing"),
            ("h", "not a number"),
            ("1y", "not a unit"),
            ("999999999999d", "too large"),
        ] {
            let error = parse_time(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_and_counts_are_readable() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1 MiB"),
            (4 << 20, "4 MiB"),
            (5_500_000_000, "5.1 GiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(Count(1, "file").to_string(), "1 file");
        assert_eq!(Count(0, "file").to_string(), "0 files");
        assert_eq!(Count(999, "file").to_string(), "999 files");
        assert_eq!(Count(1_234_567, "file").to_string(), "1,234,567 files");
    }

    #[test]
    fn durations_and_rates_are_readable() {
        assert_eq!(Time(Duration::from_millis(420)).to_string(), "0.4 s");
        assert_eq!(Time(Duration::from_secs(307)).to_string(), "5 min 7 s");
        assert_eq!(Time(Duration::from_secs(7260)).to_string(), "2 h 1 min");
        assert_eq!(per_second(100, Duration::from_millis(500)), 200);
        assert_eq!(per_second(0, Duration::ZERO), 0);
    }

    #[test]
    fn names_stay_on_one_line() {
        assert_eq!(Name("a b/ä\n\u{1b}[31m").to_string(), "a b/ä\\n\\u{1b}[31m");
    }
}
