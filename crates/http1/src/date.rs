//! Dates as HTTP writes them.

use std::fmt;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// A date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// A server keeps one and makes it anew when a second has passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Date([u8; 29]);

/// The last second of the year 9999: what is later has no four digits.
const LAST: Duration = Duration::from_secs(253_402_300_799);

impl Date {
    /// This moment, to the second. What is before 1970 or after 9999 becomes the nearest that is
    /// not.
    pub fn of(at: SystemTime) -> Self {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default().min(LAST);
        let mut date = *b"Thu, 01 Jan 1970 00:00:00 GMT";
        // It has this very length.
        write!(&mut date[..], "{}", HttpDate::from(UNIX_EPOCH + since)).ok();
        Self(date)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// The moment that a date says, in any of the three forms of HTTP; `None` if it is none.
pub fn parse_date(date: &[u8]) -> Option<SystemTime> {
    let date = str::from_utf8(date).ok()?;
    httpdate::parse_http_date(date).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(seconds: u64) -> String {
        format!("{:?}", Date::of(UNIX_EPOCH + Duration::from_secs(seconds)))
    }

    #[test]
    fn a_date_is_written_and_read_to_the_second() {
        assert_eq!(of(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(784_111_777);
            assert_eq!(parse_date(date.as_bytes()), Some(at), "{date}");
        }
        for date in [&b""[..], b"yesterday", b"Sun, 06 Nov 1994 08:49:37 CET", b"\xff"] {
            assert_eq!(parse_date(date), None);
        }
    }

    #[test]
    fn moments_beyond_what_can_be_written_are_written_as_the_nearest() {
        let day = Duration::from_hours(24);
        assert_eq!(Date::of(UNIX_EPOCH - day), Date::of(UNIX_EPOCH));
        let last = UNIX_EPOCH + LAST;
        assert_eq!(format!("{:?}", Date::of(last)), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(Date::of(last + day), Date::of(last));
    }
}
