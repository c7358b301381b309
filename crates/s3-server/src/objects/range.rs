//! Selects the bytes that a request reads from an object. Pure.

use std::ops::Range as Bytes;

use haul_http1::{RangeSelection, content_range, unsatisfied_content_range};
use http::header::{CONTENT_RANGE, HeaderMap, HeaderValue};

use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};
use crate::request::head::Head;
use crate::request::operation::{PART_NUMBER, part_number};

/// The part of an object that a request selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    /// The value of the `Range` header.
    Range(Vec<u8>),
    /// A part number, at least 1.
    Part(u16),
}

/// The bytes to send.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    /// The first offset, and the offset after the last byte.
    pub(crate) bytes: Bytes<u64>,
    /// The value of `Content-Range`; `None` if the bytes are the whole object.
    pub(crate) content_range: Option<String>,
}

impl Selection {
    /// Reads the `Range` header and the query parameter `partNumber`.
    ///
    /// # Errors
    /// If the request has both, or the number is no part number.
    pub(crate) fn from_request(head: &Head) -> S3Result<Self> {
        let range = head.fields.first("range");
        let Some(text) = head.query.get(PART_NUMBER) else {
            return Ok(range.map_or(Self::All, |range| Self::Range(range.to_owned())));
        };
        let number = part_number(text)?;
        if range.is_some() {
            let message = "Cannot specify both Range header and partNumber query parameter";
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        Ok(Self::Part(number))
    }

    /// Returns the part number, if the request asks for a part.
    pub(crate) fn part(&self) -> Option<u16> {
        match self {
            Self::Part(number) => Some(*number),
            Self::All | Self::Range(_) => None,
        }
    }

    /// Returns the bytes to read from an object whose parts have the lengths `part_bytes`.
    ///
    /// # Errors
    /// If the object has none of the requested bytes.
    pub(crate) fn select(&self, part_bytes: &[u64]) -> S3Result<Selected> {
        let object_bytes: u64 = part_bytes.iter().sum();
        let whole = Selected { bytes: 0..object_bytes, content_range: None };
        let bytes = match self {
            Self::All => return Ok(whole),
            Self::Range(value) => match byte_range(value, object_bytes)? {
                Some(bytes) => bytes,
                None => return Ok(whole),
            },
            Self::Part(number) => {
                let index = check_part(*number, part_bytes.len())?;
                let start = part_bytes[..index].iter().sum();
                start..start + part_bytes[index]
            }
        };
        // `Content-Range` cannot represent an empty part or an empty object.
        let content_range = (!bytes.is_empty()).then(|| content_range(&bytes, object_bytes));
        Ok(Selected { bytes, content_range })
    }
}

/// Returns the bytes that a `Range` value selects; `None` for a value that is ignored: a malformed
/// one, one in another unit, and, as in S3, one with several ranges.
fn byte_range(value: &[u8], object_bytes: u64) -> S3Result<Option<Bytes<u64>>> {
    if value.iter().any(|byte| matches!(byte, b',' | b' ' | b'\t')) {
        return Ok(None);
    }
    match RangeSelection::of(value, object_bytes.max(1)) {
        RangeSelection::Whole | RangeSelection::Multiple(_) => Ok(None),
        RangeSelection::Single(range) if object_bytes > 0 => Ok(Some(range)),
        // The last bytes of an empty object are the whole object, but it has no byte at an offset.
        RangeSelection::Single(_) if is_suffix(value) => Ok(None),
        RangeSelection::Single(_) | RangeSelection::Unsatisfiable => {
            Err(unsatisfiable(value, object_bytes))
        }
    }
}

/// Returns `true` for a range such as `bytes=-5`.
fn is_suffix(value: &[u8]) -> bool {
    value.split(|byte| *byte == b'=').nth(1).is_some_and(|range| range.starts_with(b"-"))
}

/// Returns the index of the part `number`, which counts from 1. Fails if an object with `parts`
/// parts does not have it.
pub(crate) fn check_part(number: u16, parts: usize) -> S3Result<usize> {
    let index = usize::from(number).checked_sub(1).filter(|index| *index < parts);
    index.ok_or_else(|| {
        let message = "The requested partnumber is not satisfiable";
        refuse(S3ErrorCode::InvalidPartNumber, message)
            .with_field("PartNumberRequested", number.to_string())
            .with_field("ActualPartCount", parts.to_string())
    })
}

fn unsatisfiable(value: &[u8], object_bytes: u64) -> S3Error {
    let message =
        format!("The range starts after the end of the object, which has {object_bytes} bytes");
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::try_from(unsatisfied_content_range(object_bytes)) {
        headers.insert(CONTENT_RANGE, value);
    }
    refuse(S3ErrorCode::InvalidRange, message)
        .with_field("RangeRequested", String::from_utf8_lossy(value))
        .with_field("ActualObjectSize", object_bytes.to_string())
        .with_headers(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;

    fn range(value: &str, object_bytes: u64) -> S3Result<Selected> {
        Selection::Range(value.into()).select(&[object_bytes])
    }

    #[test]
    fn range_is_truncated_at_the_end_of_the_object() {
        for (value, bytes, content_range) in [
            ("bytes=7-99", 7..10, "bytes 7-9/10"),
            ("bytes=3-", 3..10, "bytes 3-9/10"),
            ("bytes=-4", 6..10, "bytes 6-9/10"),
            ("bytes=-40", 0..10, "bytes 0-9/10"),
            ("Bytes=0-5", 0..6, "bytes 0-5/10"),
            ("bytes=1-99999999999999999999999", 1..10, "bytes 1-9/10"),
        ] {
            let content_range = Some(content_range.to_owned());
            assert_eq!(range(value, 10).unwrap(), Selected { bytes, content_range }, "{value}");
        }
    }

    #[test]
    fn range_past_the_end_is_refused_with_the_length() {
        for (value, object_bytes) in [
            ("bytes=10-", 10),
            ("bytes=-0", 10),
            ("bytes=99999999999999999999-", 10),
            ("bytes=-0", 0),
            ("bytes=0-", 0),
        ] {
            let error = range(value, object_bytes).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidRange, "{value}");
            let found = error.headers()[CONTENT_RANGE].to_str().unwrap();
            assert_eq!(found, format!("bytes */{object_bytes}"));
        }
    }

    #[test]
    fn other_ranges_are_ignored() {
        for value in [
            "",
            "invalid",
            "items=0-5",
            "bytes=5-2",
            "bytes=-",
            "bytes=0-1,5-6",
            "bytes",
            "bytes= -1",
            "bytes=0 -1",
        ] {
            for object_bytes in [0, 10] {
                let whole = Selected { bytes: 0..object_bytes, content_range: None };
                assert_eq!(range(value, object_bytes).unwrap(), whole, "{value}");
            }
        }
    }

    #[test]
    fn parts_are_counted_from_one() {
        let parts = [5, 0, 3];
        let part = |number| Selection::Part(number).select(&parts);
        assert_eq!(part(1).unwrap().bytes, 0..5);
        assert_eq!(part(2).unwrap(), Selected { bytes: 5..5, content_range: None });
        assert_eq!(part(3).unwrap().content_range.unwrap(), "bytes 5-7/8");
        assert_eq!(part(4).unwrap_err().code(), S3ErrorCode::InvalidPartNumber);
    }

    #[test]
    fn whole_object_has_no_content_range() {
        let all = Selection::All.select(&[5, 3]).unwrap();
        assert_eq!(all, Selected { bytes: 0..8, content_range: None });
    }

    #[test]
    fn request_has_a_range_or_a_part() {
        let code = |line: &str, fields: &[(&str, &str)]| {
            let error = Selection::from_request(&head(line, fields)).err();
            error.map(|error| error.code().as_str()).unwrap_or_default()
        };
        let range = [("range", "bytes=0-1")];
        assert_eq!(code("GET /b/k?partNumber=10000", &[]), "");
        assert_eq!(code("GET /b/k?partNumber=1", &range), "InvalidRequest");
        for number in ["0", "-1", "10001", "a", ""] {
            let line = format!("GET /b/k?partNumber={number}");
            assert_eq!(code(&line, &range), "InvalidArgument", "{number}");
        }
        let wanted = Selection::from_request(&head("GET /b/k", &range)).unwrap();
        assert_eq!(wanted, Selection::Range(b"bytes=0-1".to_vec()));
    }
}
