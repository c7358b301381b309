//! Conditional requests: preconditions on an object, evaluated by `haul-http1`. Pure.
//!
//! Unlike in RFC 9110, ETags may be unquoted, and a write accepts one condition.

use std::time::{SystemTime, UNIX_EPOCH};

use haul_file_store::{Etag, ObjectInfo, Precondition, Store};
use haul_http1::{EntityTag, IfRange, TagList, Validators, Verdict};
use hyper::header::{HeaderMap, HeaderValue, IF_RANGE};
use s3s::dto::{ETag, ETagCondition, Timestamp};
use s3s::{S3ErrorCode, S3Result};
use time::OffsetDateTime;

use crate::encryption::content::listed_bytes;
use crate::encryption::lengths::content_bytes;
use crate::errors::refuse;

/// The conditions of a read.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) if_match: Option<ETagCondition>,
    pub(crate) if_none_match: Option<ETagCondition>,
    pub(crate) if_modified_since: Option<Timestamp>,
    pub(crate) if_unmodified_since: Option<Timestamp>,
}

impl Conditions {
    /// Returns `true` if the request has a condition.
    pub(crate) fn any(&self) -> bool {
        self.if_match.is_some()
            || self.if_none_match.is_some()
            || self.if_modified_since.is_some()
            || self.if_unmodified_since.is_some()
    }
}

/// Takes the conditions on the source out of the input of a copy.
macro_rules! source_conditions {
    ($input:expr) => {
        $crate::objects::conditions::Conditions {
            if_match: $input.copy_source_if_match.take(),
            if_none_match: $input.copy_source_if_none_match.take(),
            if_modified_since: $input.copy_source_if_modified_since.take(),
            if_unmodified_since: $input.copy_source_if_unmodified_since.take(),
        }
    };
}
pub(crate) use source_conditions;

impl Conditions {
    /// Evaluates the conditions of a read, and its `If-Range` if its headers are given.
    pub(crate) fn verdict(&self, object: &ObjectInfo, headers: Option<&HeaderMap>) -> Verdict {
        let [if_match, if_none_match] = [&self.if_match, &self.if_none_match]
            .map(|condition| condition.as_ref().map(header_value));
        let tag = quoted(&object.etag.to_string());
        let if_range = headers.and_then(|headers| headers.get(IF_RANGE));
        let range_tag = if_range.map(|value| quoted(value.to_str().unwrap_or_default()));
        let conditions = haul_http1::Conditions {
            if_match: if_match.as_ref().map(tags),
            if_none_match: if_none_match.as_ref().map(tags),
            if_modified_since: self.if_modified_since.clone().map(time),
            if_unmodified_since: self.if_unmodified_since.clone().map(time),
            if_range: if_range.map(|value| match IfRange::parse(value.as_bytes()) {
                IfRange::Invalid => IfRange::parse(range_tag.as_deref().unwrap_or_default()),
                valid => valid,
            }),
        };
        conditions.evaluate(&Validators { tag: EntityTag::strong(&tag), modified: object.modified })
    }
}

/// Returns the value of the header that a condition was parsed from. `s3s` parses a list of tags as
/// one tag that contains the quotes and commas between them, so the result is the list again.
fn header_value(condition: &ETagCondition) -> HeaderValue {
    condition.to_http_header().unwrap_or_else(|_unwritable| HeaderValue::from_static(""))
}

fn tags(header_value: &HeaderValue) -> TagList<'_> {
    [header_value.as_bytes()].into_iter().collect()
}

/// Adds the quotes of a tag, which many S3 clients omit.
fn quoted(tag: &str) -> Vec<u8> {
    format!("\"{}\"", tag.trim_matches('"')).into_bytes()
}

fn time(date: Timestamp) -> SystemTime {
    OffsetDateTime::from(date).into()
}

/// The ETag in place of one that no object can have. No object is known to have it either.
const NO_ETAG: Etag = Etag { md5: [0; 16], parts: u16::MAX };

/// Returns the precondition in the `If-Match` and `If-None-Match` headers of a write.
pub(crate) fn precondition(
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> S3Result<Precondition> {
    match (if_match, if_none_match) {
        (None, None) => Ok(Precondition::None),
        (None, Some(ETagCondition::Any)) => Ok(Precondition::Absent),
        (Some(ETagCondition::Any), None) => Ok(Precondition::Present),
        (Some(ETagCondition::ETag(etag)), None) => {
            Ok(Precondition::Matches(etag.value().parse().unwrap_or(NO_ETAG)))
        }
        // Every object differs from an ETag that no object can have.
        (None, Some(ETagCondition::ETag(etag))) => {
            Ok(etag.value().parse().map_or(Precondition::None, Precondition::Differs))
        }
        (Some(_), Some(_)) => Err(refuse(
            S3ErrorCode::NotImplemented,
            "A write supports either If-Match or If-None-Match",
        )),
    }
}

/// The conditions of a deletion, which must all hold. An object that does not exist is not tested:
/// its deletion succeeds, so that a client can repeat a deletion.
#[derive(Debug, Default)]
pub(crate) struct DeleteConditions {
    pub(crate) etag: Option<ETag>,
    pub(crate) bytes: Option<i64>,
    pub(crate) modified: Option<Timestamp>,
    /// The stored length of the current object if that is encrypted, was uploaded in parts, and its
    /// content has the length of the condition.
    pub(crate) stored_bytes: Option<u64>,
}

impl DeleteConditions {
    /// Finds out the stored length of an encrypted object that was uploaded in parts, which the
    /// condition on its length needs.
    pub(crate) fn resolve(self, store: &Store, bucket: &str, key: &str) -> Self {
        if self.bytes.is_none() {
            return self;
        }
        let info = store.stat(bucket, key).ok();
        let info = info.filter(|info| info.etag.is_encoded() && info.etag.part_count() > 0);
        let stored_bytes = info.and_then(|info| {
            let bytes = listed_bytes(store, bucket, &info, None).ok()?;
            (self.bytes == i64::try_from(bytes).ok()).then_some(info.bytes)
        });
        Self { stored_bytes, ..self }
    }

    /// Returns `true` if the content of the object has this length.
    fn has_length(&self, object: &ObjectInfo, bytes: Option<u64>) -> bool {
        match (object.etag.is_encoded(), object.etag.part_count()) {
            (false, _) => bytes == Some(object.bytes),
            (true, 0) => bytes.is_some() && bytes == content_bytes(object.bytes),
            (true, _) => self.stored_bytes == Some(object.bytes),
        }
    }

    /// Returns `true` if the request has a condition.
    pub(crate) fn any(&self) -> bool {
        self.etag.is_some() || self.bytes.is_some() || self.modified.is_some()
    }

    /// Returns `true` if the conditions hold for the current object. Dates have no fractions of a
    /// second.
    pub(crate) fn hold(&self, object: &ObjectInfo) -> bool {
        let is_current = |tag: &ETag| {
            tag.as_strong()
                .is_some_and(|tag| tag.parse().is_ok_and(|tag: Etag| tag.has_text_of(&object.etag)))
        };
        let has_length = |bytes: i64| self.has_length(object, u64::try_from(bytes).ok());
        let was_modified_at =
            |date: &Timestamp| whole_seconds(time(date.clone())) == whole_seconds(object.modified);
        self.etag.as_ref().is_none_or(is_current)
            && self.bytes.is_none_or(has_length)
            && self.modified.as_ref().is_none_or(was_modified_at)
    }
}

/// Returns the seconds since 1970, or `None` for an earlier time.
fn whole_seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ETAG: &str = "\"000000000000000000000000000000ff\"";
    const OTHER: &str = "\"000000000000000000000000000000fe\"";

    fn object() -> ObjectInfo {
        ObjectInfo {
            version_id: haul_file_store::VersionId::Null,
            key: "k".into(),
            bytes: 1,
            modified: UNIX_EPOCH + Duration::from_millis(100_700),
            etag: ETAG.trim_matches('"').parse().unwrap(),
        }
    }

    fn etag(text: &str) -> Option<ETagCondition> {
        (!text.is_empty()).then(|| text.parse().unwrap())
    }

    #[test]
    fn conditions_are_evaluated_as_in_http() {
        use Verdict::{Failed, NotModified};
        let proceed = Verdict::Proceed { with_ranges: true };
        let list = format!("{OTHER}, {ETAG}");
        let weak = format!("W/{ETAG}");
        for (tag, as_if_match, as_if_none_match) in [
            ("*", proceed, NotModified),
            (ETAG, proceed, NotModified),
            (ETAG.trim_matches('"'), proceed, NotModified),
            (OTHER, Failed, proceed),
            (&list, proceed, NotModified),
            (&weak, Failed, NotModified),
        ] {
            let conditions = Conditions { if_match: etag(tag), ..Conditions::default() };
            assert_eq!(conditions.verdict(&object(), None), as_if_match, "If-Match {tag}");
            let conditions = Conditions { if_none_match: etag(tag), ..Conditions::default() };
            assert_eq!(conditions.verdict(&object(), None), as_if_none_match, "{tag}");
        }
        for (seconds, as_unmodified, as_modified) in
            [(-1, Failed, proceed), (99, Failed, proceed), (100, proceed, NotModified)]
        {
            let date = Some(Timestamp::from(OffsetDateTime::from_unix_timestamp(seconds).unwrap()));
            let conditions =
                Conditions { if_unmodified_since: date.clone(), ..Conditions::default() };
            assert_eq!(conditions.verdict(&object(), None), as_unmodified, "{seconds}");
            let conditions = Conditions { if_modified_since: date, ..Conditions::default() };
            assert_eq!(conditions.verdict(&object(), None), as_modified, "{seconds}");
        }
    }

    #[test]
    fn if_range_accepts_unquoted_tags() {
        for (if_range, with_ranges) in [
            (ETAG, true),
            (ETAG.trim_matches('"'), true),
            (OTHER, false),
            ("W/\"000000000000000000000000000000ff\"", false),
            ("Thu, 01 Jan 1970 00:01:40 GMT", true),
            ("Thu, 01 Jan 1970 00:01:41 GMT", false),
            ("yesterday", false),
        ] {
            let headers = [(IF_RANGE, if_range.parse().unwrap())].into_iter().collect();
            let verdict = Conditions::default().verdict(&object(), Some(&headers));
            assert_eq!(verdict, Verdict::Proceed { with_ranges }, "{if_range}");
        }
    }

    #[test]
    fn deletion_needs_all_of_its_conditions() {
        let date =
            |seconds| Some(Timestamp::from(OffsetDateTime::from_unix_timestamp(seconds).unwrap()));
        let tag = |text: &str| Some(ETag::parse_http_header(text.as_bytes()).unwrap());
        for (etag, bytes, modified, holds) in [
            (None, None, None, true),
            (tag(ETAG), Some(1), date(100), true),
            (tag(OTHER), None, None, false),
            (tag(&format!("W/{ETAG}")), None, None, false),
            (tag("\"strange\""), None, None, false),
            (None, Some(2), None, false),
            (None, Some(-1), None, false),
            (None, None, date(101), false),
            (None, None, date(-1), false),
            (tag(ETAG), Some(2), date(100), false),
        ] {
            let conditions = DeleteConditions { etag, bytes, modified, stored_bytes: None };
            assert_eq!(conditions.hold(&object()), holds, "{conditions:?}");
        }
    }

    #[test]
    fn write_accepts_one_condition() {
        let any = etag("*");
        let one = etag(ETAG);
        let of = |a: &Option<ETagCondition>, b: &Option<ETagCondition>| {
            precondition(a.as_ref(), b.as_ref())
        };
        assert_eq!(of(&None, &None).unwrap(), Precondition::None);
        assert_eq!(of(&None, &any).unwrap(), Precondition::Absent);
        assert_eq!(of(&any, &None).unwrap(), Precondition::Present);
        assert_eq!(of(&one, &None).unwrap(), Precondition::Matches(object().etag));
        assert_eq!(of(&None, &one).unwrap(), Precondition::Differs(object().etag));
        assert_eq!(of(&one, &any).unwrap_err().code().as_str(), "NotImplemented");
        let strange = etag("\"strange\"");
        assert_eq!(of(&None, &strange).unwrap(), Precondition::None);
        assert_eq!(of(&strange, &None).unwrap(), Precondition::Matches(NO_ETAG));
    }
}
