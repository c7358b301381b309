//! Adds timestamps to lines. Performs no I/O.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::utc::Utc;

/// The format of timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampFormat {
    /// The format of RFC 3339, in UTC: `2026-11-21T07:23:14.500000Z`.
    Utc,
    /// The seconds since the Unix epoch: `1795245794.500000`.
    Unix,
    /// The format TAI64N, as written by multilog: `@400000006b0146ec1dcd6500`.
    Tai64n,
}

/// A filter that prefixes lines with timestamps. Lines may arrive in parts of any length.
#[derive(Debug)]
pub struct Stamper {
    stamps: StampFormat,
    at_line_start: bool,
    stamp: String,
    stamped: Vec<u8>,
}

impl Stamper {
    /// Creates a stamper whose first input begins a line.
    #[must_use]
    pub fn new(stamps: StampFormat) -> Self {
        Self { stamps, at_line_start: true, stamp: String::new(), stamped: Vec::new() }
    }

    /// Returns `bytes`, which were received at `now`, with a timestamp before each line that begins
    /// in them.
    pub fn stamp(&mut self, bytes: &[u8], now: SystemTime) -> &[u8] {
        self.stamp.clear();
        // Writing to a string does not fail.
        write_stamp(&mut self.stamp, self.stamps, now).ok();
        self.stamped.clear();
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.at_line_start {
                self.stamped.extend_from_slice(self.stamp.as_bytes());
            }
            let end = memchr::memchr(b'\n', rest).map(|newline| newline + 1);
            let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.stamped.extend_from_slice(line);
            self.at_line_start = end.is_some();
            rest = after;
        }
        &self.stamped
    }
}

fn write_stamp(to: &mut String, stamps: StampFormat, now: SystemTime) -> std::fmt::Result {
    let since: Duration = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    match stamps {
        StampFormat::Utc => write!(to, "{} ", Utc::of(now)),
        StampFormat::Unix => write!(to, "{}.{:06} ", since.as_secs(), since.subsec_micros()),
        // TAI was 10 s ahead of UTC in 1970. Like multilog, this adds no leap seconds since then.
        StampFormat::Tai64n => {
            let label = (1_u64 << 62) + 10 + since.as_secs();
            write!(to, "@{label:016x}{:08x} ", since.subsec_nanos())
        }
    }
}

/// The length of the longest timestamp, with its space.
pub(crate) const STAMP_BYTES_MAX: usize = "2026-11-21T07:23:14.500000Z ".len();

/// Splits a line into its timestamp, of any format of [`StampFormat`], and its text. A line without
/// a timestamp consists of text only.
#[must_use]
pub fn split_stamp(line: &[u8]) -> (Option<Utc>, &[u8]) {
    let prefix = &line[..line.len().min(STAMP_BYTES_MAX)];
    match (parse_stamp(line), memchr::memchr(b' ', prefix)) {
        (Some(micros), Some(space)) => (Some(Utc::from_micros(micros)), &line[space + 1..]),
        _ => (None, line),
    }
}

/// Parses the timestamp at the beginning of a line, of any format. Returns it in microseconds since
/// the Unix epoch; `None` if the line has no timestamp.
pub(crate) fn parse_stamp(line: &[u8]) -> Option<u64> {
    let prefix = &line[..line.len().min(STAMP_BYTES_MAX)];
    let stamp = &prefix[..memchr::memchr(b' ', prefix)?];
    let stamp = str::from_utf8(stamp).ok()?;
    match stamp.strip_prefix('@') {
        Some(label) => parse_tai64n(label),
        None if stamp.ends_with('Z') => Utc::parse(stamp)?.to_micros(),
        None => parse_unix(stamp),
    }
}

/// Parses a number of seconds with six decimal digits. Fewer than nine digits of seconds (a date in
/// 1973 or earlier) are more likely a number that the line begins with.
fn parse_unix(stamp: &str) -> Option<u64> {
    let (seconds, micros) = stamp.split_once('.')?;
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !(9..=12).contains(&seconds.len()) || micros.len() != 6 || !is_number(seconds) {
        return None;
    }
    let micros = is_number(micros).then(|| micros.parse::<u64>().ok())??;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros)
}

fn parse_tai64n(label: &str) -> Option<u64> {
    if label.len() != 24 || !label.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let seconds = u64::from_str_radix(&label[..16], 16).ok()?.checked_sub((1 << 62) + 10)?;
    let nanos = u64::from_str_radix(&label[16..], 16).ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(nanos / 1000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    #[test]
    fn each_line_gets_the_time_of_its_first_byte() {
        let mut stamper = Stamper::new(StampFormat::Unix);
        let mut text = Vec::new();
        for (millis, part) in
            [(1000, "one\ntw"), (2000, "o"), (3000, "\n"), (4000, ""), (5500, "\nlast")]
        {
            text.extend_from_slice(stamper.stamp(part.as_bytes(), at(millis)));
        }
        let expected = "1.000000 one\n1.000000 two\n5.500000 \n5.500000 last";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn each_timestamp_format_is_supported() {
        for (stamps, text) in [
            (StampFormat::Utc, "2026-11-21T07:23:14.500000Z x"),
            (StampFormat::Unix, "1795245794.500000 x"),
            (StampFormat::Tai64n, "@400000006b0146ec1dcd6500 x"),
        ] {
            let mut stamper = Stamper::new(stamps);
            let stamped = stamper.stamp(b"x", at(1_795_245_794_500));
            assert_eq!(str::from_utf8(stamped).unwrap(), text);
            assert_eq!(parse_stamp(stamped), Some(1_795_245_794_500_000), "{text}");
        }
    }

    #[test]
    fn lines_without_timestamp_have_no_time() {
        for line in [
            "",
            " ",
            "a line",
            "2026-11-21T07:23:14.500000Z",
            "2026-11-21 07:23:14.500000Z x",
            "2026-11-31T07:23:14.500000Z x",
            "2026-11-21T07:23:14.500000z x",
            "2026-11-21T07:23:14.5Z x",
            "20261121T07:23:14.500000ZZZ x",
            "1.500000 seconds",
            "1795245794.50000 x",
            "1795245794.500000",
            "17952457940000.500000 x",
            "@400000006b0146ec1dcd650 x",
            "@000000006b0146ec1dcd6500 x",
            "@400000006b0146ec1dcd6500x",
            "@ffffffffffffffffffffffff x",
            "\u{e4}\u{e4}\u{e4}\u{e4}\u{e4} x",
        ] {
            assert_eq!(split_stamp(line.as_bytes()), (None, line.as_bytes()), "{line}");
        }
    }

    proptest! {
        #[test]
        fn timestamps_round_trip(micros in 100_000_000_000_000..253_402_300_799_000_000_u64) {
            for stamps in [StampFormat::Utc, StampFormat::Unix, StampFormat::Tai64n] {
                let mut stamper = Stamper::new(stamps);
                let line = stamper.stamp(b"x", UNIX_EPOCH + Duration::from_micros(micros));
                prop_assert_eq!(parse_stamp(line), Some(micros));
                prop_assert_eq!(split_stamp(line), (Some(Utc::from_micros(micros)), &b"x"[..]));
            }
        }

        #[test]
        fn parsing_never_panics(
            line in proptest::collection::vec(any::<u8>(), 0..40),
            text in "[@0-9]{0,20}[0-9.:TZf -]{0,20}\\PC{0,10}",
        ) {
            prop_assert!(line.ends_with(split_stamp(&line).1));
            prop_assert!(text.as_bytes().ends_with(split_stamp(text.as_bytes()).1));
        }
    }
}
