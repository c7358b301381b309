//! Conditions on the object a request is about. Pure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_file_store::{Etag, ObjectInfo, Precondition};
use hyper::header::{HeaderMap, IF_RANGE};
use s3s::dto::{ETagCondition, Timestamp, TimestampFormat};
use s3s::{S3ErrorCode, S3Result};

use crate::errors::refuse;

/// What a reader supposes of the object.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) if_match: Option<ETagCondition>,
    pub(crate) if_none_match: Option<ETagCondition>,
    pub(crate) if_modified_since: Option<Timestamp>,
    pub(crate) if_unmodified_since: Option<Timestamp>,
}

/// The conditions on the source of any copy.
macro_rules! source_conditions {
    ($input:expr) => {
        $crate::conditions::Conditions {
            if_match: $input.copy_source_if_match.take(),
            if_none_match: $input.copy_source_if_none_match.take(),
            if_modified_since: $input.copy_source_if_modified_since.take(),
            if_unmodified_since: $input.copy_source_if_unmodified_since.take(),
        }
    };
}
pub(crate) use source_conditions;

/// What follows from the conditions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Carry out the request.
    Proceed,
    /// The reader's copy is still good: 304.
    NotModified,
    /// The object is not the one supposed: 412.
    Failed,
}

impl Conditions {
    /// Tests the conditions in the order of RFC 9110, 13.2.2: an ETag, where one is given, decides
    /// instead of the date.
    pub(crate) fn verdict(&self, object: &ObjectInfo) -> Verdict {
        let modified = Timestamp::from(whole_seconds(object.modified));
        let supposed = match (&self.if_match, &self.if_unmodified_since) {
            (Some(condition), _) => matches(condition, &object.etag),
            (None, Some(date)) => modified <= *date,
            (None, None) => true,
        };
        if !supposed {
            return Verdict::Failed;
        }
        let changed = match (&self.if_none_match, &self.if_modified_since) {
            (Some(condition), _) => !matches(condition, &object.etag),
            (None, Some(date)) => modified > *date,
            (None, None) => true,
        };
        if changed { Verdict::Proceed } else { Verdict::NotModified }
    }
}

/// Whether a `Range` is still to be honoured: it is not when `If-Range` names another state of the
/// object (RFC 9110, 13.1.5).
pub(crate) fn range_still_applies(headers: &HeaderMap, object: &ObjectInfo) -> bool {
    let Some(value) = headers.get(IF_RANGE) else { return true };
    let Ok(text) = value.to_str() else { return false };
    match Timestamp::parse(TimestampFormat::HttpDate, text) {
        Ok(date) => Timestamp::from(whole_seconds(object.modified)) == date,
        Err(_not_a_date) => text.trim_matches('"') == object.etag.to_string(),
    }
}

/// What the headers `If-Match` and `If-None-Match` of a write mean.
pub(crate) fn precondition(
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> S3Result<Precondition> {
    match (if_match, if_none_match) {
        (None, None) => Ok(Precondition::None),
        (None, Some(ETagCondition::Any)) => Ok(Precondition::Absent),
        (Some(ETagCondition::Any), None) => Ok(Precondition::Present),
        (Some(ETagCondition::ETag(etag)), None) => match etag.value().parse() {
            Ok(etag) => Ok(Precondition::Matches(etag)),
            Err(_) => Err(refuse(S3ErrorCode::PreconditionFailed, "No object has such an ETag")),
        },
        _ => Err(refuse(
            S3ErrorCode::NotImplemented,
            "A write takes either If-Match, or If-None-Match with the value *",
        )),
    }
}

fn matches(condition: &ETagCondition, etag: &Etag) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(given) => given.value() == etag.to_string(),
    }
}

/// A time as an HTTP date can tell it.
fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETAG: &str = "\"000000000000000000000000000000ff\"";
    const OTHER: &str = "\"000000000000000000000000000000fe\"";

    fn object() -> ObjectInfo {
        ObjectInfo {
            key: "k".into(),
            bytes: 1,
            modified: UNIX_EPOCH + Duration::from_millis(100_700),
            etag: ETAG.trim_matches('"').parse().unwrap(),
        }
    }

    fn etag(text: &str) -> Option<ETagCondition> {
        (!text.is_empty()).then(|| text.parse().unwrap())
    }

    fn date(seconds: u64) -> Option<Timestamp> {
        (seconds > 0).then(|| Timestamp::from(UNIX_EPOCH + Duration::from_secs(seconds)))
    }

    #[test]
    fn etags_decide_before_dates() {
        use Verdict::{Failed, NotModified, Proceed};
        // If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since; 0 and "": not given.
        for (if_match, unmodified, if_none_match, modified, verdict) in [
            ("", 0, "", 0, Proceed),
            (ETAG, 0, "", 0, Proceed),
            ("*", 0, "", 0, Proceed),
            (OTHER, 0, "", 0, Failed),
            (ETAG, 99, "", 0, Proceed),
            (OTHER, 101, "", 0, Failed),
            ("", 99, "", 0, Failed),
            ("", 100, "", 0, Proceed),
            ("", 0, ETAG, 0, NotModified),
            ("", 0, "*", 0, NotModified),
            ("", 0, OTHER, 0, Proceed),
            ("", 0, OTHER, 101, Proceed),
            ("", 0, ETAG, 99, NotModified),
            ("", 0, "", 99, Proceed),
            ("", 0, "", 100, NotModified),
            ("", 99, ETAG, 0, Failed),
        ] {
            let conditions = Conditions {
                if_match: etag(if_match),
                if_none_match: etag(if_none_match),
                if_modified_since: date(modified),
                if_unmodified_since: date(unmodified),
            };
            assert_eq!(conditions.verdict(&object()), verdict, "{conditions:?}");
        }
    }

    #[test]
    fn a_range_applies_to_the_state_it_was_asked_of() {
        for (if_range, applies) in [
            (ETAG, true),
            (OTHER, false),
            ("Thu, 01 Jan 1970 00:01:40 GMT", true),
            ("Thu, 01 Jan 1970 00:01:41 GMT", false),
        ] {
            let headers = [(IF_RANGE, if_range.parse().unwrap())].into_iter().collect();
            assert_eq!(range_still_applies(&headers, &object()), applies, "{if_range}");
        }
        assert!(range_still_applies(&HeaderMap::new(), &object()));
    }

    #[test]
    fn writes_take_one_condition() {
        let any = etag("*");
        let one = etag(ETAG);
        let of = |a: &Option<ETagCondition>, b: &Option<ETagCondition>| {
            precondition(a.as_ref(), b.as_ref())
        };
        assert_eq!(of(&None, &None).unwrap(), Precondition::None);
        assert_eq!(of(&None, &any).unwrap(), Precondition::Absent);
        assert_eq!(of(&any, &None).unwrap(), Precondition::Present);
        assert_eq!(of(&one, &None).unwrap(), Precondition::Matches(object().etag));
        assert_eq!(of(&None, &one).unwrap_err().code().as_str(), "NotImplemented");
        assert_eq!(of(&one, &any).unwrap_err().code().as_str(), "NotImplemented");
        let strange = etag("\"strange\"");
        assert_eq!(of(&strange, &None).unwrap_err().code().as_str(), "PreconditionFailed");
    }
}
