//! Whether a conditional request is answered with the file. Pure.
//!
//! RFC 9110, section 13: which header counts before which, and how tags are compared.

/// The headers of a request that make it conditional; those that make lists may come in pieces.
#[derive(Debug, Default)]
pub(crate) struct Conditions<'a> {
    pub(crate) if_match: Vec<&'a [u8]>,
    pub(crate) if_none_match: Vec<&'a [u8]>,
    /// Seconds since 1970; a date that is none is as good as no header.
    pub(crate) if_modified_since: Option<u64>,
    pub(crate) if_unmodified_since: Option<u64>,
    pub(crate) if_range: Option<IfRange<'a>>,
}

/// The one header that is about ranges alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IfRange<'a> {
    Tag(&'a [u8]),
    Since(u64),
    /// Neither: nothing can be equal to it.
    Nonsense,
}

/// What it means for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The file, or ranges of it when those were asked for.
    Serve { with_ranges: bool },
    /// The client has it: 304.
    NotModified,
    /// The client thought it was another: 412.
    Failed,
}

/// Judges for a file with this tag, its quotes included, changed last at these seconds.
pub(crate) fn judge(conditions: &Conditions<'_>, tag: &[u8], modified_s: u64) -> Verdict {
    if conditions.if_match.is_empty() {
        if conditions.if_unmodified_since.is_some_and(|since| modified_s > since) {
            return Verdict::Failed;
        }
    } else if !names(&conditions.if_match, tag, Compared::Strongly) {
        return Verdict::Failed;
    }
    let is_known = if conditions.if_none_match.is_empty() {
        conditions.if_modified_since.is_some_and(|since| modified_s <= since)
    } else {
        names(&conditions.if_none_match, tag, Compared::Weakly)
    };
    if is_known {
        return Verdict::NotModified;
    }
    let with_ranges = match conditions.if_range {
        None => true,
        Some(IfRange::Tag(asked)) => asked == tag,
        Some(IfRange::Since(since)) => since == modified_s,
        Some(IfRange::Nonsense) => false,
    };
    Verdict::Serve { with_ranges }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// A weak tag is equal to none: for bytes that must fit together.
    Strongly,
    /// The mark of weakness is passed over.
    Weakly,
}

/// Whether lists of tags hold this one, or the star that stands for any.
fn names(lists: &[&[u8]], tag: &[u8], how: Compared) -> bool {
    lists.iter().any(|list| {
        let mut rest = list.trim_ascii();
        if rest == b"*" {
            return true;
        }
        // A tag may hold commas, so the quotes are what parts them.
        while let Some(start) = memchr::memchr(b'"', rest) {
            let is_weak = rest[..start].ends_with(b"W/");
            let Some(length) = memchr::memchr(b'"', &rest[start + 1..]) else { return false };
            let (one, after) = rest[start..].split_at(length + 2);
            if one == tag && !(is_weak && how == Compared::Strongly) {
                return true;
            }
            rest = after;
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &[u8] = b"\"a,b\"";
    const SERVE: Verdict = Verdict::Serve { with_ranges: true };
    const SERVE_ALL: Verdict = Verdict::Serve { with_ranges: false };

    #[test]
    fn tags_decide_before_dates() {
        use Verdict::{Failed, NotModified};
        let lists: &[(&str, Verdict, Verdict)] = &[
            // (the list, as If-None-Match, as If-Match)
            ("\"a,b\"", NotModified, SERVE),
            ("W/\"a,b\"", NotModified, Failed),
            ("*", NotModified, SERVE),
            (" * ", NotModified, SERVE),
            ("\"x\", \"a,b\" , \"y\"", NotModified, SERVE),
            ("\"x\",W/\"y\"", SERVE, Failed),
            ("\"a\",\"b\"", SERVE, Failed),
            ("a,b", SERVE, Failed),
            ("\"a,b", SERVE, Failed),
            ("", SERVE, Failed),
            ("\"x\", *", SERVE, Failed),
        ];
        for (list, none_match, matching) in lists {
            let list = vec![list.as_bytes()];
            let mut asked = Conditions { if_none_match: list.clone(), ..Conditions::default() };
            assert_eq!(judge(&asked, TAG, 100), *none_match, "If-None-Match {list:?}");
            asked.if_modified_since = Some(200);
            assert_eq!(judge(&asked, TAG, 100), *none_match, "the date does not count");
            let mut asked = Conditions { if_match: list.clone(), ..Conditions::default() };
            assert_eq!(judge(&asked, TAG, 100), *matching, "If-Match {list:?}");
            asked.if_unmodified_since = Some(1);
            assert_eq!(judge(&asked, TAG, 100), *matching, "the date does not count");
        }
        let pieces = vec![&b"\"x\""[..], b"\"a,b\""];
        let asked = Conditions { if_none_match: pieces, ..Conditions::default() };
        assert_eq!(judge(&asked, TAG, 100), NotModified, "several lines");
    }

    #[test]
    fn dates_are_whole_seconds() {
        for (since, modified, unmodified) in [
            (99, SERVE, Verdict::Failed),
            (100, Verdict::NotModified, SERVE),
            (101, Verdict::NotModified, SERVE),
        ] {
            let asked = Conditions { if_modified_since: Some(since), ..Conditions::default() };
            assert_eq!(judge(&asked, TAG, 100), modified, "modified since {since}");
            let asked = Conditions { if_unmodified_since: Some(since), ..Conditions::default() };
            assert_eq!(judge(&asked, TAG, 100), unmodified, "unmodified since {since}");
        }
    }

    #[test]
    fn a_part_is_only_sent_of_the_very_same_file() {
        for (if_range, expected) in [
            (None, SERVE),
            (Some(IfRange::Tag(TAG)), SERVE),
            (Some(IfRange::Tag(b"\"x\"")), SERVE_ALL),
            (Some(IfRange::Tag(b"W/\"a,b\"")), SERVE_ALL),
            (Some(IfRange::Since(100)), SERVE),
            (Some(IfRange::Since(101)), SERVE_ALL),
            (Some(IfRange::Nonsense), SERVE_ALL),
        ] {
            let asked = Conditions { if_range, ..Conditions::default() };
            assert_eq!(judge(&asked, TAG, 100), expected, "{if_range:?}");
        }
    }

    #[test]
    fn a_failed_condition_counts_before_a_known_file() {
        let asked = Conditions {
            if_match: vec![b"\"x\""],
            if_none_match: vec![TAG],
            ..Conditions::default()
        };
        assert_eq!(judge(&asked, TAG, 100), Verdict::Failed);
    }
}
