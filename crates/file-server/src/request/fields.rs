//! Reads the fields of a request that select the response, in one pass. Performs no I/O.

use haul_http1::{Conditions, Fields, IfRange, parse_date};

use crate::file::coding::{AcceptedCodings, accepted_codings};

/// The fields of a request that select the response.
#[derive(Debug, Default)]
pub(crate) struct RequestFields<'a> {
    pub(crate) conditions: Conditions<'a>,
    /// The request has at least one condition.
    pub(crate) is_conditional: bool,
    /// `None` also if there are several fields, because they contradict each other.
    pub(crate) range: Option<&'a [u8]>,
    pub(crate) accepted: AcceptedCodings,
    pub(crate) accepts_json: bool,
}

impl<'a> RequestFields<'a> {
    pub(crate) fn of(fields: Fields<'a>) -> Self {
        let mut selected = Self::default();
        let mut ranges = 0;
        let mut encodings = Encodings::None;
        for field in fields {
            // The length excludes most names.
            match field.name.len() {
                5 if field.is("range") => {
                    ranges += 1;
                    selected.range = Some(field.value);
                }
                6 if field.is("accept") => selected.accepts_json |= names_json(field.value),
                8 | 13 | 17 | 19 => selected.condition(field.name, field.value),
                15 if field.is("accept-encoding") => encodings.add(field.value),
                _ => {}
            }
        }
        if ranges > 1 {
            selected.range = None;
        }
        selected.accepted = encodings.accepted(fields);
        selected
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

/// The fields Accept-Encoding. Most requests have one, which is read without another pass.
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

    fn accepted(self, fields: Fields<'a>) -> AcceptedCodings {
        match self {
            Self::None => AcceptedCodings::default(),
            Self::One(value) => accepted_codings([value]),
            Self::Several => accepted_codings(fields.all("accept-encoding")),
        }
    }
}

/// Returns `true` if a value of Accept names JSON. Browsers accept everything, but do not name it.
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
    use crate::file::coding::Coding;

    fn with<T>(lines: &str, check: impl FnOnce(&RequestFields<'_>) -> T) -> T {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        check(&RequestFields::of(request.fields))
    }

    #[test]
    fn fields_are_found_in_any_case() {
        let lines = "RANGE: bytes=0-1\r\nif-None-match: \"a\"\r\nIf-None-Match: \"b\"\r\n\
                     If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\nUser-Agent: u\r\n\
                     Referer: r\r\nAccept: text/html, application/json;q=0.5\r\n";
        with(lines, |fields| {
            assert_eq!(fields.range, Some(&b"bytes=0-1"[..]));
            let tags = [&b"\"a\""[..], b"\"b\""].into_iter().collect();
            assert_eq!(fields.conditions.if_none_match, Some(tags));
            let date = UNIX_EPOCH + Duration::from_secs(784_111_777);
            assert_eq!(fields.conditions.if_modified_since, Some(date));
            assert!(fields.is_conditional && fields.accepts_json);
        });
        with("Accept: */*\r\nX-If-Match: 1\r\nProxy-Author: 1\r\n", |fields| {
            assert!(!fields.is_conditional && !fields.accepts_json);
        });
    }

    #[test]
    fn second_range_cancels_the_first_and_encoding_lists_are_joined() {
        with("Range: bytes=0-1\r\nRange: bytes=2-3\r\n", |fields| assert_eq!(fields.range, None));
        with("Accept-Encoding: gzip\r\nAccept-Encoding: br\r\n", |fields| {
            assert!(fields.accepted.iter().eq([Coding::Brotli, Coding::Gzip]));
        });
    }
}
