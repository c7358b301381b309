//! What a request says, picked out of its fields in one pass. Pure.

use haul_http1::{Conditions, Fields, IfRange, parse_date};

use crate::coding::{Accepted, accepted};

/// The fields that matter to us.
#[derive(Debug, Default)]
pub(crate) struct Asking<'a> {
    pub(crate) conditions: Conditions<'a>,
    /// It has any of the above.
    pub(crate) is_conditional: bool,
    /// `None` also when there are several: they contradict each other.
    pub(crate) range: Option<&'a [u8]>,
    pub(crate) accepted: Accepted,
    pub(crate) wants_json: bool,
    pub(crate) referer: Option<&'a [u8]>,
    pub(crate) user_agent: Option<&'a [u8]>,
}

impl<'a> Asking<'a> {
    pub(crate) fn of(fields: Fields<'a>) -> Self {
        let mut asking = Self::default();
        let mut ranges = 0;
        let mut encodings = Encodings::None;
        for field in fields {
            // The length tells most names apart, and most fields are none of ours.
            match field.name.len() {
                5 if field.is("range") => {
                    ranges += 1;
                    asking.range = Some(field.value);
                }
                6 if field.is("accept") => asking.wants_json |= names_json(field.value),
                7 if field.is("referer") => asking.referer = Some(field.value),
                8 | 13 | 17 | 19 => asking.condition(field.name, field.value),
                10 if field.is("user-agent") => asking.user_agent = Some(field.value),
                15 if field.is("accept-encoding") => encodings.add(field.value),
                _ => {}
            }
        }
        if ranges > 1 {
            asking.range = None;
        }
        asking.accepted = encodings.accepted(fields);
        asking
    }

    fn condition(&mut self, name: &[u8], value: &'a [u8]) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let conditions = &mut self.conditions;
        if is("if-match") {
            conditions.if_match.get_or_insert_default().push_line(value);
        } else if is("if-none-match") {
            conditions.if_none_match.get_or_insert_default().push_line(value);
        } else if is("if-modified-since") {
            conditions.if_modified_since = parse_date(value);
        } else if is("if-unmodified-since") {
            conditions.if_unmodified_since = parse_date(value);
        } else if is("if-range") {
            conditions.if_range = Some(IfRange::parse(value));
        } else {
            return;
        }
        self.is_conditional = true;
    }
}

/// Most requests have one such line, and it is read where it stands.
enum Encodings<'a> {
    None,
    One(&'a [u8]),
    Several,
}

impl<'a> Encodings<'a> {
    fn add(&mut self, value: &'a [u8]) {
        *self = match self {
            Self::None => Self::One(value),
            Self::One(_) | Self::Several => Self::Several,
        };
    }

    fn accepted(self, fields: Fields<'a>) -> Accepted {
        match self {
            Self::None => Accepted::default(),
            Self::One(value) => accepted([value]),
            Self::Several => accepted(fields.all("accept-encoding")),
        }
    }
}

/// Browsers say that they take everything; who wants JSON names it.
fn names_json(value: &[u8]) -> bool {
    let mut types = value
        .split(|byte| *byte == b',')
        .map(|part| part.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii());
    types.any(|name| name.eq_ignore_ascii_case(b"application/json"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use haul_http1::{HeadLimits, parse_request};

    use super::*;
    use crate::coding::Coding;

    fn with<T>(lines: &str, look: impl FnOnce(&Asking<'_>) -> T) -> T {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        look(&Asking::of(request.fields))
    }

    #[test]
    fn fields_are_picked_whatever_their_case() {
        let lines = "RANGE: bytes=0-1\r\nif-None-match: \"a\"\r\nIf-None-Match: \"b\"\r\n\
                     If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\nUser-Agent: u\r\n\
                     Referer: r\r\nAccept: text/html, application/json;q=0.5\r\n";
        with(lines, |asking| {
            assert_eq!(asking.range, Some(&b"bytes=0-1"[..]));
            let tags = [&b"\"a\""[..], b"\"b\""].into_iter().collect();
            assert_eq!(asking.conditions.if_none_match, Some(tags));
            let date = UNIX_EPOCH + Duration::from_secs(784_111_777);
            assert_eq!(asking.conditions.if_modified_since, Some(date));
            assert_eq!((asking.user_agent, asking.referer), (Some(&b"u"[..]), Some(&b"r"[..])));
            assert!(asking.is_conditional && asking.wants_json);
        });
        with("Accept: */*\r\nX-If-Match: 1\r\nProxy-Author: 1\r\n", |asking| {
            assert!(!asking.is_conditional && !asking.wants_json);
        });
    }

    #[test]
    fn two_ranges_are_none_and_two_lists_of_encodings_are_one() {
        with("Range: bytes=0-1\r\nRange: bytes=2-3\r\n", |asking| assert_eq!(asking.range, None));
        with("Accept-Encoding: gzip\r\nAccept-Encoding: br\r\n", |asking| {
            assert!(asking.accepted.iter().eq([Coding::Brotli, Coding::Gzip]));
        });
    }
}
