//! Parses times that users write.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::clock::Clock;
use super::local::{DAY, first_instant, local_time};
use super::utc::Utc;

const EXAMPLES: &str = "write it like 2026-11-21T07:23:14Z, 2026-11-21T07:23+01:00, \"2026-11-21 \
                        07:23\" or 2026-11-21 (local time), today, 10m or \"1h30m ago\"";

/// Parses a time that a user writes: a time of RFC 3339, such as `2026-11-21T07:23:14.5Z` or
/// `2026-11-21T08:23:14+01:00`; the same without an offset, in local time, also without seconds or
/// without a time of the day; `now`, `today` or `yesterday`, the latter two at local midnight;
/// seconds since the Unix epoch, such as `@1795245794`; or a duration before now, such as `10m`,
/// `-10m` or `10m ago`.
///
/// # Errors
/// A sentence with the reason, and examples of the accepted formats.
pub fn parse_moment(text: &str, clock: &dyn Clock) -> Result<SystemTime, String> {
    let text = text.trim();
    let now = clock.now_us();
    let offset = |utc| clock.local_offset(utc);
    let midnight = |days_ago: i64| {
        let local = local_time(i64::try_from(now / 1_000_000).unwrap_or(0), &offset);
        let wall = (local.div_euclid(DAY) - days_ago) * DAY;
        instant_us(wall, 0, clock)
    };
    let us = match text {
        "now" => Some(now),
        "today" => midnight(0),
        "yesterday" => midnight(1),
        _ if text.starts_with('@') => parse_unix(&text[1..]),
        _ if text.as_bytes().get(4) == Some(&b'-') => parse_date(text, clock),
        _ => {
            let ago = text.strip_suffix("ago").unwrap_or(text);
            let ago = ago.strip_prefix('-').unwrap_or(ago);
            let ago = haul_units::parse_time(ago).map_err(|_reason| unknown(text))?;
            Some(now.saturating_sub(u64::try_from(ago.as_micros()).unwrap_or(u64::MAX)))
        }
    };
    us.map(|us| UNIX_EPOCH + Duration::from_micros(us)).ok_or_else(|| unknown(text))
}

fn unknown(text: &str) -> String {
    format!("\"{text}\" is not a time; {EXAMPLES}")
}

fn parse_unix(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    number(seconds)?.checked_mul(1_000_000)?.checked_add(micros_of(fraction)?)
}

/// Parses a date with an optional time of the day and an optional offset from UTC.
fn parse_date(text: &str, clock: &dyn Clock) -> Option<u64> {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let [year, month, day] = parts(date, '-')?;
    let mut wall = Utc { year, month, day, hour: 0, minute: 0, second: 0, microsecond: 0 };
    let mut offset = None;
    if let Some(time) = time {
        let (time, zone) = split_zone(time);
        offset = zone.map(parse_offset).unwrap_or(Some(None))?;
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        [wall.hour, wall.minute, wall.second] =
            parts(time, ':').or_else(|| parts(&format!("{time}:00"), ':'))?;
        wall.microsecond = micros_of(fraction)?;
    }
    let micros = wall.microsecond;
    let wall = i64::try_from(wall.to_micros()? / 1_000_000).ok()?;
    match offset {
        Some(offset) => add_micros(wall - offset, micros),
        None => instant_us(wall, micros, clock),
    }
}

/// Returns the first instant at which the local clock shows `wall` seconds, in microseconds.
fn instant_us(wall: i64, micros: u64, clock: &dyn Clock) -> Option<u64> {
    let offset = |utc| clock.local_offset(utc);
    add_micros(first_instant(wall - DAY, wall, &offset), micros)
}

fn add_micros(seconds: i64, micros: u64) -> Option<u64> {
    u64::try_from(seconds).ok()?.checked_mul(1_000_000)?.checked_add(micros)
}

/// Splits a time of the day from its offset from UTC.
fn split_zone(time: &str) -> (&str, Option<&str>) {
    match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (time[..at].trim_end(), Some(&time[at..])),
        None => (time, None),
    }
}

/// Parses an offset such as `Z` or `+01:00`, in seconds. `None` if it is invalid.
fn parse_offset(zone: &str) -> Option<Option<i64>> {
    if zone.eq_ignore_ascii_case("Z") {
        return Some(Some(0));
    }
    let (sign, time) = match zone.strip_prefix('+') {
        Some(time) => (1, time),
        None => (-1, zone.strip_prefix('-')?),
    };
    let (hours, minutes) = time.split_once(':').or_else(|| time.split_at_checked(2))?;
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let is_valid = hours < 24 && minutes < 60;
    is_valid.then(|| i64::try_from(hours * 3600 + minutes * 60).ok().map(|offset| sign * offset))
}

/// Splits three numbers.
fn parts(text: &str, at: char) -> Option<[u64; 3]> {
    let mut parts = text.split(at).map(number);
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// Parses the decimal digits after the point of a number of seconds, in microseconds, rounded down.
fn micros_of(fraction: &str) -> Option<u64> {
    number(fraction)?;
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(6);
    Some(digits.fold(0, |micros, digit| micros * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::local::zones::{BERLIN, seconds};
    use super::*;

    /// Noon of the 25th of October 2026 in Berlin, ten hours after the clock was set back.
    #[derive(Debug)]
    struct Noon;

    impl Clock for Noon {
        fn now_us(&self) -> u64 {
            u64::try_from(seconds("2026-10-25T11")).unwrap() * 1_000_000
        }

        fn local_offset(&self, utc: i64) -> i64 {
            BERLIN.offset(utc)
        }
    }

    #[test]
    fn times_are_absolute_local_or_relative() {
        for (text, utc) in [
            ("2026-11-21T07:23:14Z", "2026-11-21T07:23:14"),
            ("2026-11-21t07:23z", "2026-11-21T07:23"),
            ("2026-11-21 07:23:14 Z", "2026-11-21T07:23:14"),
            ("2026-11-21T07:23:14+01:30", "2026-11-21T05:53:14"),
            ("2026-11-21T07:23:14-0800", "2026-11-21T15:23:14"),
            ("2026-11-21T07:23:14", "2026-11-21T06:23:14"),
            ("2026-07-01 07:23", "2026-07-01T05:23"),
            ("2026-07-01", "2026-06-30T22"),
            ("2026-03-29T02:30", "2026-03-29T01"),
            ("2026-10-25T02:30", "2026-10-25T00:30"),
            ("now", "2026-10-25T11"),
            ("today", "2026-10-24T22"),
            ("yesterday", "2026-10-23T22"),
            ("-10m", "2026-10-25T10:50"),
            ("1h30m ago", "2026-10-25T09:30"),
            (" 1d ", "2026-10-24T11"),
            ("@1795245794", "2026-11-21T07:23:14"),
        ] {
            let found = parse_moment(text, &Noon).unwrap();
            let expected = UNIX_EPOCH + Duration::from_secs(seconds(utc).try_into().unwrap());
            assert_eq!(found, expected, "{text}");
        }
        let half = parse_moment("2026-11-21T07:23:14.5Z", &Noon).unwrap();
        assert_eq!(half, UNIX_EPOCH + Duration::from_millis(1_795_245_794_500));
        assert_eq!(parse_moment("@1795245794.5", &Noon), Ok(half));
    }

    #[test]
    fn other_texts_are_refused_with_examples() {
        for text in [
            "",
            "soon",
            "10",
            "ago",
            "@",
            "@1.",
            "2026-11",
            "2026-11-31",
            "2026-11-21T",
            "2026-11-21T07",
            "2026-11-21T25:00",
            "2026-11-21T07:23:14:00",
            "2026-11-21T07:23:14.Z",
            "2026-11-21T07:23:14+24:00",
            "2026-11-21T07:23:14+01:00x",
            "2026-11-21T07:23:14Zx",
            "1969-12-31T00:00Z",
            "2026-11-\u{e4}",
        ] {
            let refused = parse_moment(text, &Noon);
            assert!(refused.is_err_and(|why| why.contains("is not a time; write it")), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,30}", date in "[0-9]{4}-[0-9T:.Z +@-]{0,26}") {
            parse_moment(&text, &Noon).ok();
            parse_moment(&date, &Noon).ok();
        }
    }
}
