//! The keys of log objects. Pure.

use time::{Date, OffsetDateTime};

use crate::auth::REGION;
use crate::bucket_logs::target::{KeyFormat, LogTarget, Source};

/// Returns the key for a log object with `source`'s records. Only [`KeyFormat::ByEvent`] uses
/// `day`, which is the requests' day.
pub(super) fn key(
    target: &LogTarget,
    source: &Source,
    day: Date,
    delivered: OffsetDateTime,
    unique: &str,
) -> String {
    let LogTarget { prefix, format, .. } = target;
    let time = delivered.time();
    let (day, time) = match format {
        KeyFormat::Simple => {
            return format!("{prefix}{}-{unique}", stamp(delivered.date(), time_of(time)));
        }
        // As in S3: the delivery time would not fit the day.
        KeyFormat::ByEvent => (day, (0, 0, 0)),
        KeyFormat::ByDelivery => (delivered.date(), time_of(time)),
    };
    let Source { bucket, owner } = source;
    let (year, month, date) = (day.year(), u8::from(day.month()), day.day());
    let stamp = stamp(day, time);
    format!("{prefix}{owner}/{REGION}/{bucket}/{year:04}/{month:02}/{date:02}/{stamp}-{unique}")
}

/// Returns a sample key for a log object with `source`'s records.
pub(crate) fn sample_key(target: &LogTarget, source: &Source) -> String {
    let time = OffsetDateTime::UNIX_EPOCH;
    key(target, source, time.date(), time, "0000000000000000")
}

fn time_of(time: time::Time) -> (u8, u8, u8) {
    (time.hour(), time.minute(), time.second())
}

fn stamp(day: Date, (hour, minute, second): (u8, u8, u8)) -> String {
    let (year, month, date) = (day.year(), u8::from(day.month()), day.day());
    format!("{year:04}-{month:02}-{date:02}-{hour:02}-{minute:02}-{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_formats_of_s3() {
        let delivered = OffsetDateTime::from_unix_timestamp(1_795_651_509).unwrap();
        let day = delivered.date().previous_day().unwrap();
        let source = Source { bucket: "photos".to_owned(), owner: "ann".to_owned() };
        for (format, expected) in [
            (KeyFormat::Simple, "log/2026-11-26-00-05-09-A1"),
            (KeyFormat::ByDelivery, "log/ann/us-east-1/photos/2026/11/26/2026-11-26-00-05-09-A1"),
            (KeyFormat::ByEvent, "log/ann/us-east-1/photos/2026/11/25/2026-11-25-00-00-00-A1"),
        ] {
            let target = LogTarget { bucket: "b".to_owned(), prefix: "log/".to_owned(), format };
            assert_eq!(key(&target, &source, day, delivered, "A1"), expected);
        }
    }
}
