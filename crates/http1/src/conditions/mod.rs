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
    /// The modification time, if it is known; fractions of a second are ignored, because HTTP dates
    /// have none.
    pub modified: Option<Modified>,
}

/// When a representation was modified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modified {
    /// The time.
    pub at: SystemTime,
    /// `true` if no other representation can have had the same date, to the second (RFC 9110,
    /// section 8.8.2.2). Only then a date in If-Range proves that the client has parts of this
    /// representation.
    pub is_strong: bool,
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
        let tag = validators.tag;
        let modified = validators.modified.map(|modified| whole_seconds(modified.at));
        let is_strong = validators.modified.is_some_and(|modified| modified.is_strong);
        // Conditions on a date are ignored if the representation has none.
        let is_unmodified = |since: SystemTime| modified.is_none_or(|modified| modified <= since);
        let is_known_by = |since: SystemTime| modified.is_some_and(|modified| modified <= since);
        let is_expected = match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => tags.any(|listed| listed.strong_eq(&tag)),
            (None, Some(date)) => is_unmodified(date),
            (None, None) => true,
        };
        if !is_expected {
            return Verdict::Failed;
        }
        let is_known = match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) => tags.any(|listed| listed.weak_eq(&tag)),
            (None, Some(date)) => is_known_by(date),
            (None, None) => false,
        };
        if is_known {
            return Verdict::NotModified;
        }
        let with_ranges = match self.if_range {
            None => true,
            Some(IfRange::Tag(given)) => given.strong_eq(&tag),
            Some(IfRange::Date(date)) => is_strong && modified == Some(date),
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
        evaluate_for(conditions, Some(true))
    }

    /// Evaluates for a representation without a date, or with one that is strong or not.
    fn evaluate_for(conditions: &Conditions<'_>, is_strong: Option<bool>) -> Verdict {
        let at = UNIX_EPOCH + Duration::from_millis(100_700);
        let modified = is_strong.map(|is_strong| Modified { at, is_strong });
        conditions.evaluate(&Validators { tag: EntityTag::strong(TAG), modified })
    }

    #[test]
    fn weak_or_missing_date_is_no_proof() {
        let date = UNIX_EPOCH + Duration::from_secs(100);
        let since = Conditions { if_modified_since: Some(date), ..Conditions::default() };
        assert_eq!([Some(false), None].map(|it| evaluate_for(&since, it)), [NotModified, PROCEED]);
        let unmodified = Conditions {
            if_unmodified_since: Some(date - Duration::from_secs(1)),
            ..Conditions::default()
        };
        let verdicts = [Some(false), None].map(|it| evaluate_for(&unmodified, it));
        assert_eq!(verdicts, [Failed, PROCEED]);
        let range = Conditions { if_range: Some(IfRange::Date(date)), ..Conditions::default() };
        let verdicts = [Some(true), Some(false), None].map(|it| evaluate_for(&range, it));
        assert_eq!(verdicts, [PROCEED, ALL, ALL]);
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
