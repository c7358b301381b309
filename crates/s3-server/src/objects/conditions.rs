//! Conditional requests: preconditions on an object, evaluated by `haul-http1`. Pure.
//!
//! Unlike in RFC 9110, ETags may be unquoted, and a write accepts one condition.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use haul_file_store::{Etag, ObjectInfo, Precondition};
use haul_http1::{EntityTag, IfRange, Modified, TagList, Validators, Verdict, parse_date};
use haul_store_pool::Pool;

use crate::answer::quoted;
use crate::encryption::content::listed_bytes;
use crate::encryption::lengths::content_bytes;
use crate::errors::{S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::request::fields::Fields;

/// A read's conditions.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    if_match: Option<String>,
    if_none_match: Option<String>,
    if_modified_since: Option<SystemTime>,
    if_unmodified_since: Option<SystemTime>,
    if_range: Option<String>,
}

impl Conditions {
    /// Reads a request's conditions on its object.
    pub(crate) fn from_fields(fields: &Fields) -> Self {
        let if_range = fields.given("if-range").map(str::to_owned);
        Self { if_range, ..Self::with_prefix(fields, "") }
    }

    /// Reads a copy's conditions on its source.
    pub(crate) fn from_source(fields: &Fields) -> Self {
        Self::with_prefix(fields, "x-amz-copy-source-")
    }

    /// Reads the conditions in headers with a prefix. As in HTTP, an invalid date means no
    /// condition.
    fn with_prefix(fields: &Fields, prefix: &str) -> Self {
        let tags = |name: &str| {
            let tags = fields.joined(&format!("{prefix}{name}"));
            tags.filter(|tags| !tags.is_empty()).map(Cow::into_owned)
        };
        let date = |name: &str| parse_date(fields.first(&format!("{prefix}{name}"))?);
        Self {
            if_match: tags("if-match"),
            if_none_match: tags("if-none-match"),
            if_modified_since: date("if-modified-since"),
            if_unmodified_since: date("if-unmodified-since"),
            if_range: None,
        }
    }

    /// Returns `true` if the request has a condition on its whole response.
    pub(crate) fn any(&self) -> bool {
        self.if_match.is_some()
            || self.if_none_match.is_some()
            || self.if_modified_since.is_some()
            || self.if_unmodified_since.is_some()
    }

    /// Returns the name of the condition that failed, for a read that failed because of a
    /// condition.
    pub(crate) fn failed_name(&self) -> &'static str {
        if self.if_match.is_some() { "If-Match" } else { "If-Unmodified-Since" }
    }

    pub(crate) fn verdict(&self, object: &ObjectInfo) -> Verdict {
        let [if_match, if_none_match] =
            [&self.if_match, &self.if_none_match].map(|tags| tags.as_deref().map(with_quotes));
        let tag = quoted(&object.etag);
        let if_range =
            self.if_range.as_deref().map(|value| match IfRange::parse(value.as_bytes()) {
                IfRange::Invalid => with_quotes(value),
                _ => value.into(),
            });
        let conditions = haul_http1::Conditions {
            if_match: if_match.as_deref().map(tag_list),
            if_none_match: if_none_match.as_deref().map(tag_list),
            if_modified_since: self.if_modified_since,
            if_unmodified_since: self.if_unmodified_since,
            if_range: if_range.as_ref().map(|value| IfRange::parse(value.as_bytes())),
        };
        let tag = EntityTag::strong(tag.as_bytes());
        let modified = Modified { at: object.modified, is_strong: true };
        conditions.evaluate(&Validators { tag, modified: Some(modified) })
    }
}

fn tag_list(tags: &str) -> TagList<'_> {
    [tags.as_bytes()].into_iter().collect()
}

/// Adds the quotes around ETags, which many S3 clients omit. Lists with quotes stay as they are.
fn with_quotes(tags: &str) -> Cow<'_, str> {
    if tags.contains('"') || tags.trim() == "*" {
        return tags.into();
    }
    let quoted: Vec<_> = tags.split(',').map(|tag| format!("\"{}\"", tag.trim())).collect();
    quoted.join(",").into()
}

/// An ETag that no object can have. No object is known to have this one either.
const NO_ETAG: Etag = Etag { md5: [0; 16], parts: u16::MAX };

/// Returns the precondition in a write's `If-Match` or `If-None-Match` header.
///
/// # Errors
/// `NotImplemented` for both headers, and for several ETags: a condition is never ignored.
pub(crate) fn precondition(fields: &Fields) -> S3Result<Precondition> {
    let refused = |message: &str| Err(refuse(S3ErrorCode::NotImplemented, message));
    let given = |name| fields.joined(name).filter(|tags| !tags.trim().is_empty());
    let (if_match, if_none_match) = (given("if-match"), given("if-none-match"));
    let tags = match (&if_match, &if_none_match) {
        (None, None) => return Ok(Precondition::None),
        (Some(_), Some(_)) => return refused("A write supports either If-Match or If-None-Match"),
        (Some(tags), None) | (None, Some(tags)) => tags.trim(),
    };
    if tags.contains(',') {
        return refused("A write supports one ETag in If-Match or If-None-Match");
    }
    Ok(if if_match.is_some() {
        match tags {
            "*" => Precondition::Present,
            // A weak ETag matches no object.
            etag => Precondition::Matches(bare(etag).parse().unwrap_or(NO_ETAG)),
        }
    } else {
        match tags {
            "*" => Precondition::Absent,
            // Weak ETags are compared without their mark. Every object differs from an ETag that no
            // object can have.
            etag => bare(etag.strip_prefix("W/").unwrap_or(etag))
                .parse()
                .map_or(Precondition::None, Precondition::Differs),
        }
    })
}

fn bare(etag: &str) -> &str {
    etag.trim_matches('"')
}

/// A deletion's conditions, which must all hold. A missing object is not tested: its deletion
/// succeeds, so that a client can repeat a deletion.
#[derive(Debug, Default)]
pub(crate) struct DeleteConditions {
    /// The ETag as the client sent it.
    pub(crate) etag: Option<String>,
    pub(crate) bytes: Option<i64>,
    pub(crate) modified: Option<SystemTime>,
    /// The stored length of the current object, if that is encrypted, was uploaded in parts, and
    /// its content has the length in the condition.
    pub(crate) stored_bytes: Option<u64>,
}

impl DeleteConditions {
    /// Determines the stored length of an encrypted object that was uploaded in parts, if the
    /// condition on the length needs it.
    pub(crate) fn resolve(self, store: &Pool, bucket: &str, key: &str) -> Self {
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

    /// Returns `true` if the object's content has this length.
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

    /// Returns `true` if the conditions hold for the current object. Dates are compared in whole
    /// seconds.
    pub(crate) fn hold(&self, object: &ObjectInfo) -> bool {
        let is_current = |tag: &String| {
            let tag = tag.trim();
            // Every object has an ETag.
            tag == "*"
                || tag
                    .trim_matches('"')
                    .parse()
                    .is_ok_and(|tag: Etag| tag.has_text_of(&object.etag))
        };
        let has_length = |bytes: i64| self.has_length(object, u64::try_from(bytes).ok());
        let was_modified_at =
            |date: &SystemTime| whole_seconds(*date) == whole_seconds(object.modified);
        self.etag.as_ref().is_none_or(is_current)
            && self.bytes.is_none_or(has_length)
            && self.modified.as_ref().is_none_or(was_modified_at)
    }
}

/// Returns the whole seconds since 1970; `None` for an earlier time.
fn whole_seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// Returns the condition in a header of a change, as `parse` reads it; `None` if there is none.
///
/// # Errors
/// `InvalidArgument` if `parse` cannot read it: unlike a read's condition, it is not ignored.
pub(crate) fn parsed<T>(
    fields: &Fields,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> S3Result<Option<T>> {
    let Some(value) = fields.first(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let parsed = str::from_utf8(value).ok().and_then(parse).map(Some);
    parsed.ok_or_else(|| {
        let message = format!("The header {name} is malformed");
        invalid_argument(name, &String::from_utf8_lossy(value), message)
    })
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

    fn conditions(fields: &[(&str, &str)]) -> Verdict {
        Conditions::from_fields(&fields.iter().copied().collect()).verdict(&object())
    }

    #[test]
    fn conditions_are_evaluated_as_in_http() {
        use Verdict::{Failed, NotModified};
        let proceed = Verdict::Proceed { with_ranges: true };
        let list = format!("{OTHER}, {ETAG}");
        let weak = format!("W/{ETAG}");
        let bare = ETAG.trim_matches('"');
        for (tag, as_if_match, as_if_none_match) in [
            ("*", proceed, NotModified),
            (ETAG, proceed, NotModified),
            (bare, proceed, NotModified),
            (OTHER, Failed, proceed),
            ("a_b", Failed, proceed),
            ("a.b", Failed, proceed),
            (&format!("a, {bare}"), proceed, NotModified),
            (&list, proceed, NotModified),
            (&weak, Failed, NotModified),
        ] {
            assert_eq!(conditions(&[("if-match", tag)]), as_if_match, "If-Match {tag}");
            assert_eq!(conditions(&[("if-none-match", tag)]), as_if_none_match, "{tag}");
        }
        for (date, as_unmodified, as_modified) in [
            ("Thu, 01 Jan 1970 00:01:39 GMT", Failed, proceed),
            ("Thu, 01 Jan 1970 00:01:40 GMT", proceed, NotModified),
            ("Thursday, 01-Jan-70 00:01:40 GMT", proceed, NotModified),
            ("Thu Jan  1 00:01:40 1970", proceed, NotModified),
            ("yesterday", proceed, proceed),
        ] {
            assert_eq!(conditions(&[("if-unmodified-since", date)]), as_unmodified, "{date}");
            assert_eq!(conditions(&[("if-modified-since", date)]), as_modified, "{date}");
        }
        let from_source = [("x-amz-copy-source-if-match", OTHER), ("if-match", ETAG)];
        let from_source = from_source.into_iter().collect();
        assert_eq!(Conditions::from_source(&from_source).verdict(&object()), Failed);
        assert_eq!(Conditions::from_fields(&from_source).verdict(&object()), proceed);
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
            let verdict = conditions(&[("if-range", if_range)]);
            assert_eq!(verdict, Verdict::Proceed { with_ranges }, "{if_range}");
        }
    }

    #[test]
    fn deletion_needs_all_of_its_conditions() {
        let date = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
        let tag = |text: &str| Some(text.to_owned());
        for (etag, bytes, modified, holds) in [
            (None, None, None, true),
            (tag(ETAG), Some(1), date(100), true),
            (tag(ETAG.trim_matches('"')), None, None, true),
            (tag("*"), None, None, true),
            (tag(OTHER), None, None, false),
            (tag(&format!("W/{ETAG}")), None, None, false),
            (tag("\"strange\""), None, None, false),
            (None, Some(2), None, false),
            (None, Some(-1), None, false),
            (None, None, date(101), false),
            (tag(ETAG), Some(2), date(100), false),
        ] {
            let conditions = DeleteConditions { etag, bytes, modified, stored_bytes: None };
            assert_eq!(conditions.hold(&object()), holds, "{conditions:?}");
        }
    }

    #[test]
    fn write_accepts_one_condition() {
        let of = |fields: &[(&str, &str)]| precondition(&fields.iter().copied().collect());
        let (matches, differs) = ("if-match", "if-none-match");
        assert_eq!(of(&[]).unwrap(), Precondition::None);
        assert_eq!(of(&[(matches, "")]).unwrap(), Precondition::None);
        assert_eq!(of(&[(differs, "*")]).unwrap(), Precondition::Absent);
        assert_eq!(of(&[(matches, "*")]).unwrap(), Precondition::Present);
        assert_eq!(of(&[(matches, ETAG)]).unwrap(), Precondition::Matches(object().etag));
        assert_eq!(of(&[(differs, ETAG)]).unwrap(), Precondition::Differs(object().etag));
        let both = of(&[(matches, ETAG), (differs, "*")]);
        assert_eq!(both.unwrap_err().code().as_str(), "NotImplemented");
        assert_eq!(of(&[(differs, "\"strange\"")]).unwrap(), Precondition::None);
        assert_eq!(of(&[(matches, "a_b")]).unwrap(), Precondition::Matches(NO_ETAG));
        let weak = format!("W/{ETAG}");
        assert_eq!(of(&[(matches, &weak)]).unwrap(), Precondition::Matches(NO_ETAG));
        assert_eq!(of(&[(differs, &weak)]).unwrap(), Precondition::Differs(object().etag));
        for name in [matches, differs] {
            for tags in [&*format!("{OTHER}, {ETAG}"), "*, \"x\"", &format!("{ETAG},")] {
                assert_eq!(of(&[(name, tags)]).unwrap_err().code().as_str(), "NotImplemented");
            }
            let several = of(&[(name, OTHER), (name, ETAG)]).unwrap_err();
            assert_eq!(several.code().as_str(), "NotImplemented");
        }
    }
}
