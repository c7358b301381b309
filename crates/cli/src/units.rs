//! Sizes, times and counts as people write and read them. Pure.

use std::fmt;
use std::time::Duration;

const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

const TIMES_MS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a size, such as `4MiB`, `1.5 GB` or `4096`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    const HOW: &str = "write it like 4096, 64KiB, 4MiB, 1.5GiB (1024s) or 4MB, 1GB (1000s)";
    parse(text, SIZES).map_err(|why| format!("{why}; {HOW}"))
}

/// Reads a time, such as `30s` or `1.5min`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    const HOW: &str = "write it like 500ms, 30s, 5min, 1h or 1d";
    parse(text, TIMES_MS).map(Duration::from_millis).map_err(|why| format!("{why}; {HOW}"))
}

/// A decimal number and the name of its unit, in whatever case; what is left of a fraction of the
/// smallest unit is dropped.
fn parse(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, name) = (&text[..end], text[end..].trim_start());
    let Some((_, unit)) = units.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
        return Err(match name {
            "" => "it has no unit".to_owned(),
            _ => format!("\"{name}\" is no unit"),
        });
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| {
        (1..=20).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(whole) || !is_number(fraction) {
        return Err(format!("\"{number}\" is no number that can be used"));
    }
    let digits = |digits: &str| digits.bytes().fold(0, |n, d| n * 10 + u128::from(d - b'0'));
    let scale = fraction.bytes().fold(1, |scale: u128, _| scale * 10);
    let unit = u128::from(*unit);
    let value = digits(whole) * unit + digits(fraction) * unit / scale;
    u64::try_from(value).map_err(|_beyond| "it is too much".to_owned())
}

/// A size to be read by people: `512 B`, `4 MiB`, `1.2 GiB`.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        // In tenths, rounded; what rounds up to 1,024 is one of the next unit.
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

/// A number with its digits in groups: `12,345`.
pub(crate) struct Grouped(pub(crate) u64);

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

/// A count, and what is counted: `1 file`, `12,345 files`.
pub(crate) struct Count<'a>(pub(crate) u64, pub(crate) &'a str);

impl fmt::Display for Count<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", Grouped(self.0), self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// So many in such a time, as so many a second.
pub(crate) fn per_second(amount: u64, time: Duration) -> u64 {
    let micros = time.as_micros().max(1);
    u64::try_from(u128::from(amount) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

/// A time to be read by people: `0.4 s`, `12.3 s`, `5 min 7 s`.
pub(crate) struct Time(pub(crate) Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0..=99 => write!(f, "{:.1} s", self.0.as_secs_f64()),
            seconds @ 100..=5999 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            seconds => write!(f, "{} h {} min", seconds / 3600, seconds / 60 % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("64KiB", 64 << 10),
            ("64kib", 64 << 10),
            ("4 MiB", 4 << 20),
            ("1.5GiB", 3 << 29),
            ("2TiB", 2 << 40),
            ("1kB", 1000),
            ("2.5MB", 2_500_000),
            ("0.5B", 0),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_a_reason() {
        for (text, why) in [
            ("", "no number"),
            ("MiB", "no number"),
            ("4M", "\"M\" is no unit"),
            ("-1", "no unit"),
            ("1.2.3MiB", "no number"),
            ("1.MiB", "no number"),
            ("999999999999999999999", "no number"),
            ("18446744073709551616", "too much"),
            ("18446744073709551615.1kB", "too much"),
            ("99999999999TiB", "too much"),
        ] {
            let error = parse_bytes(text).unwrap_err();
            assert!(error.contains(why) && error.contains("4MiB"), "{text}: {error}");
        }
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(parse_time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_time("1.5min"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_time("7d"), Ok(Duration::from_hours(7 * 24)));
        assert!(parse_time("30").unwrap_err().contains("no unit"));
    }

    #[test]
    fn sizes_and_counts_are_told_for_people() {
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
    fn times_and_rates_are_told_for_people() {
        assert_eq!(Time(Duration::from_millis(420)).to_string(), "0.4 s");
        assert_eq!(Time(Duration::from_secs(307)).to_string(), "5 min 7 s");
        assert_eq!(Time(Duration::from_secs(7260)).to_string(), "2 h 1 min");
        assert_eq!(per_second(100, Duration::from_millis(500)), 200);
        assert_eq!(per_second(0, Duration::ZERO), 0);
    }
}
