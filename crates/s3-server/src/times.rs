//! Times of S3, which end with the year 9999.

use std::time::SystemTime;

use s3s::dto::Timestamp;
use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

/// Returns a time for a response. A later one than S3 can express is the last one that it can.
pub(crate) fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let last = PrimitiveDateTime::MAX.assume_utc();
    let since = time::Duration::try_from(since).unwrap_or(time::Duration::MAX);
    Timestamp::from(OffsetDateTime::UNIX_EPOCH.checked_add(since).unwrap_or(last))
}

/// Returns a time of a request in UTC; `None` if it is not within the years of S3 there.
pub(crate) fn utc(time: &Timestamp) -> Option<OffsetDateTime> {
    OffsetDateTime::from(time.clone()).checked_to_offset(UtcOffset::UTC)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use s3s::dto::TimestampFormat;

    use super::*;

    #[test]
    fn times_after_the_last_year_are_its_end() {
        let text = |time| {
            let mut text = Vec::new();
            timestamp(time).format(TimestampFormat::DateTime, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(text(at(1)), "1970-01-01T00:00:01.000Z");
        for seconds in [253_402_300_800, 1 << 50, i64::MAX as u64] {
            assert_eq!(text(at(seconds)), "9999-12-31T23:59:59.999Z");
        }
    }

    #[test]
    fn time_that_is_beyond_the_years_in_utc_is_none() {
        let parse = |text| Timestamp::parse(TimestampFormat::DateTime, text).unwrap();
        assert!(utc(&parse("9999-12-31T23:59:59-01:00")).is_none());
        assert!(utc(&parse("9999-12-31T23:59:59+01:00")).is_some());
    }
}
