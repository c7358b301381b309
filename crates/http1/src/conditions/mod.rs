//! Evaluates conditional requests (RFC 9110, section 13). Performs no I/O.

mod entity_tag;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use entity_tag::{EntityTag, TagList};

use crate::date::parse_date;

/// The condition fields of a request. A field with an invalid date is treated as absent.
#[derive(Debug, Clone, Default)]
pub struct Conditions<'a> {
    /// The value of If-Match.
    pub if_match: Option<TagList<'a>>,
    /// The value of If-None-Match.
    pub if_none_match: Option<TagList<'a>>,
    /// The date of If-Modified-Since.
    pub if_modified_since: Option<SystemTime>,
    /// The date of If-Unmodified-Since.
    pub if_unmodified_since: Option<SystemTime>,
    /// The value of If-Range.
    pub if_range: Option<IfRange<'a>>,
}

/// The value of If-Range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfRange<'a> {
    /// An entity tag.
    Tag(EntityTag<'a>),
    /// A date.
    Date(SystemTime),
    /// Neither a tag nor a date: the condition is false.
    Invalid,
}

impl<'a> IfRange<'a> {
    /// Parses the value of an If-Range field.
    pub fn parse(value: &'a [u8]) -> Self {
        match EntityTag::parse(value) {
            Some(tag) => Self::Tag(tag),
            None => parse_date(value).map_or(Self::Invalid, Self::Date),
        }
    }
}

/// The validators of a representation (RFC 9110, section 8.8).
#[derive(Debug, Clone, Copy)]
pub struct Validators<'a> {
    /// The entity tag.
    pub tag: EntityTag<'a>,
    /// The modification time; fractions of a second are ignored, because HTTP dates have none.
    pub modified: SystemTime,
}

/// The outcome of evaluating the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The request is performed.
    Proceed {
        /// `true` if the Range field of the request applies.
        with_ranges: bool,
    },
    /// The client already has the representation: the response is 304 for GET and HEAD, 412 for
    /// other methods.
    NotModified,
    /// A precondition is false: the response is 412.
    Failed,
}

impl Conditions<'_> {
    /// Evaluates the conditions in the order of section 13.2.2: If-Match takes precedence over
    /// If-Unmodified-Since, and If-None-Match over If-Modified-Since.
    pub fn evaluate(&self, validators: &Validators<'_>) -> Verdict {
        let (tag, modified) = (validators.tag, whole_seconds(validators.modified));
        let is_expected = match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => tags.any(|listed| listed.strong_eq(&tag)),
            (None, Some(date)) => modified <= date,
            (None, None) => true,
        };
        if !is_expected {
            return Verdict::Failed;
        }
        let is_known = match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) => tags.any(|listed| listed.weak_eq(&tag)),
            (None, Some(date)) => modified <= date,
            (None, None) => false,
        };
        if is_known {
            return Verdict::NotModified;
        }
        let with_ranges = match self.if_range {
            None => true,
            Some(IfRange::Tag(given)) => given.strong_eq(&tag),
            Some(IfRange::Date(date)) => modified == date,
            Some(IfRange::Invalid) => false,
        };
        Verdict::Proceed { with_ranges }
    }
}

/// Truncates a time to the precision of an HTTP date; times before 1970 become the Unix epoch.
fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Failed, NotModified};
    use super::*;

    const TAG: &[u8] = b"\"a,b\"";
    const ALL: Verdict = Verdict::Proceed { with_ranges: false };
    const PROCEED: Verdict = Verdict::Proceed { with_ranges: true };

    /// Evaluates for a representation modified at second 100.7.
    fn evaluate(conditions: &Conditions<'_>) -> Verdict {
        let modified = UNIX_EPOCH + Duration::from_millis(100_700);
        conditions.evaluate(&Validators { tag: EntityTag::strong(TAG), modified })
    }

    fn list<'a>(lines: &[&'a str]) -> Option<TagList<'a>> {
        (!lines.is_empty()).then(|| lines.iter().map(|line| line.as_bytes()).collect())
    }

    fn date(seconds: u64) -> Option<SystemTime> {
        (seconds > 0).then(|| UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn tag_lists_match_strongly_in_if_match_and_weakly_in_if_none_match() {
        let lists: &[(&[&str], Verdict, Verdict)] = &[
            // Each case: the lines, the result as If-None-Match, the result as If-Match.
            (&["\"a,b\""], NotModified, PROCEED),
            (&["W/\"a,b\""], NotModified, Failed),
            (&["*"], NotModified, PROCEED),
            (&[" * "], NotModified, PROCEED),
            (&["\"x\", \"a,b\" , \"y\""], NotModified, PROCEED),
            (&["\"x\"", "\"a,b\""], NotModified, PROCEED),
            (&["\"x\",W/\"y\""], PROCEED, Failed),
            (&["\"a\",\"b\""], PROCEED, Failed),
            (&["a,b"], PROCEED, Failed),
            (&["\"a,b"], PROCEED, Failed),
            (&[""], PROCEED, Failed),
            (&["\"x\", *"], PROCEED, Failed),
        ];
        for (lines, none_match, matching) in lists {
            for other in [0, 1, 200] {
                let conditions = Conditions {
                    if_none_match: list(lines),
                    if_modified_since: date(other),
                    ..Conditions::default()
                };
                assert_eq!(evaluate(&conditions), *none_match, "{conditions:?}");
                let conditions = Conditions {
                    if_match: list(lines),
                    if_unmodified_since: date(other),
                    ..Conditions::default()
                };
                assert_eq!(evaluate(&conditions), *matching, "{conditions:?}");
            }
        }
    }

    #[test]
    fn dates_are_compared_in_whole_seconds() {
        for (since, modified, unmodified) in
            [(99, PROCEED, Failed), (100, NotModified, PROCEED), (101, NotModified, PROCEED)]
        {
            let if_modified_since = date(since);
            let conditions = Conditions { if_modified_since, ..Conditions::default() };
            assert_eq!(evaluate(&conditions), modified, "modified since {since}");
            let if_unmodified_since = date(since);
            let conditions = Conditions { if_unmodified_since, ..Conditions::default() };
            assert_eq!(evaluate(&conditions), unmodified, "unmodified since {since}");
        }
    }

    #[test]
    fn failed_preconditions_take_precedence_over_not_modified() {
        for (if_match, unmodified, if_none_match, modified, verdict) in [
            (&["\"x\""][..], 0, &["\"a,b\""][..], 0, Failed),
            (&[], 99, &["\"a,b\""], 0, Failed),
            (&[], 99, &[], 200, Failed),
            (&["\"a,b\""], 0, &["\"a,b\""], 0, NotModified),
            (&["\"a,b\""], 0, &["\"x\""], 0, PROCEED),
            (&[], 100, &[], 99, PROCEED),
        ] {
            let conditions = Conditions {
                if_match: list(if_match),
                if_none_match: list(if_none_match),
                if_modified_since: date(modified),
                if_unmodified_since: date(unmodified),
                if_range: None,
            };
            assert_eq!(evaluate(&conditions), verdict, "{conditions:?}");
        }
    }

    #[test]
    fn ranges_apply_only_to_the_same_representation() {
        for (value, expected) in [
            ("\"a,b\"", PROCEED),
            ("\"x\"", ALL),
            ("W/\"a,b\"", ALL),
            ("\"a,b", ALL),
            ("\"a,b\", \"x\"", ALL),
            ("*", ALL),
            ("Thu, 01 Jan 1970 00:01:40 GMT", PROCEED),
            ("Thursday, 01-Jan-70 00:01:40 GMT", PROCEED),
            ("Thu, 01 Jan 1970 00:01:41 GMT", ALL),
            ("yesterday", ALL),
        ] {
            let if_range = Some(IfRange::parse(value.as_bytes()));
            let conditions = Conditions { if_range, ..Conditions::default() };
            assert_eq!(evaluate(&conditions), expected, "{value}");
        }
        assert_eq!(evaluate(&Conditions::default()), PROCEED);
    }
}
