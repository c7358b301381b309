//! Parses numbers, sizes and times with limits.

use std::str::FromStr;
use std::time::Duration;

use crate::units::{parse_bytes, parse_time};

/// Parses a number of a type without zero, such as `NonZero<usize>`.
pub(crate) fn parse_positive<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().ok().ok_or_else(|| "must be a whole number of at least 1".to_owned())
}

/// Returns a parser of sizes between two sizes, both inclusive. The limits are written as users
/// write them, such as `64KiB`.
pub(crate) fn parse_bytes_between(
    least: &'static str,
    most: &'static str,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let bytes = parse_bytes(text)?;
        match (parse_bytes(least)?..=parse_bytes(most)?).contains(&bytes) {
            true => Ok(bytes),
            false => Err(format!("must be between {least} and {most}")),
        }
    }
}

/// Returns a parser of sizes of at least `least`, written as users write it, such as `4KiB`.
pub(crate) fn parse_bytes_from(
    least: &'static str,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let bytes = parse_bytes(text)?;
        match bytes >= parse_bytes(least)? {
            true => Ok(bytes),
            false => Err(format!("must be at least {least}")),
        }
    }
}

/// Returns a parser of times of at least `least`, written as users write it, such as `1ms`.
pub(crate) fn parse_time_from(
    least: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| {
        let time = parse_time(text)?;
        match time >= parse_time(least)? {
            true => Ok(time),
            false => Err(format!("must be at least {least}")),
        }
    }
}

/// Returns a parser of times between two times, both inclusive.
pub(crate) fn parse_time_between(
    least: &'static str,
    most: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| {
        let time = parse_time(text)?;
        match (parse_time(least)?..=parse_time(most)?).contains(&time) {
            true => Ok(time),
            false => Err(format!("must be between {least} and {most}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    #[test]
    fn limits_are_inclusive_and_named() {
        let parse = parse_bytes_between("64KiB", "16MiB");
        assert_eq!((parse("64k"), parse("16MiB")), (Ok(64 << 10), Ok(16 << 20)));
        for text in ["65535", "16777217"] {
            assert_eq!(parse(text), Err("must be between 64KiB and 16MiB".to_owned()), "{text}");
        }
        assert!(parse("x").unwrap_err().contains("not a unit"));
        let parse = parse_bytes_from("4KiB");
        assert_eq!((parse("4096"), parse("4095").is_err()), (Ok(4096), true));
        let parse = parse_time_from("1s");
        assert_eq!(parse("1000ms"), Ok(Duration::from_secs(1)));
        assert_eq!(parse("999ms"), Err("must be at least 1s".to_owned()));
        let parse = parse_time_between("100ms", "1h");
        assert_eq!(parse("1h"), Ok(Duration::from_hours(1)));
        assert_eq!(parse("99ms"), Err("must be between 100ms and 1h".to_owned()));
    }

    #[test]
    fn zero_is_no_positive_number() {
        assert_eq!(parse_positive("7"), Ok(NonZero::new(7_u32).unwrap()));
        for text in ["0", "-1", "x", ""] {
            let error = parse_positive::<NonZero<u32>>(text).unwrap_err();
            assert_eq!(error, "must be a whole number of at least 1", "{text}");
        }
    }
}
