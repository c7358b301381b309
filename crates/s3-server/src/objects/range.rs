//! Selection of the bytes of an object that a request reads. Pure.

use std::ops::Range as Bytes;

use haul_http1::{ByteRange, content_range, unsatisfied_content_range};
use hyper::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue};
use s3s::dto::Range;
use s3s::{S3Error, S3ErrorCode, S3Result};

use crate::errors::refuse;

/// The bytes to send.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    /// From the first offset to the offset after the last.
    pub(crate) bytes: Bytes<u64>,
    /// The value of `Content-Range`; `None` if the bytes are the whole object.
    pub(crate) content_range: Option<String>,
}

/// Returns the bytes that a `Range` header or a part number selects, or all bytes, of an object
/// that consists of parts of these lengths.
pub(crate) fn select(
    range: Option<&Range>,
    part_number: Option<i32>,
    part_bytes: &[u64],
) -> S3Result<Selected> {
    let object_bytes: u64 = part_bytes.iter().sum();
    let bytes = match (range, part_number) {
        (None, None) => return Ok(Selected { bytes: 0..object_bytes, content_range: None }),
        (Some(_), Some(_)) => {
            let message = "Range and partNumber cannot be combined";
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        (Some(range), None) => {
            byte_range(*range).resolve(object_bytes).ok_or_else(|| unsatisfiable(object_bytes))?
        }
        (None, Some(number)) => part(number, part_bytes)?,
    };
    let content_range = if bytes.is_empty() {
        None // `Content-Range` cannot represent an empty part or an empty object.
    } else {
        Some(content_range(&bytes, object_bytes))
    };
    Ok(Selected { bytes, content_range })
}

/// Converts a range that `s3s` parsed. `s3s` refuses multiple ranges, which S3 does not support.
fn byte_range(range: Range) -> ByteRange {
    match range {
        Range::Int { first, last } => ByteRange::FromTo { first, last },
        Range::Suffix { length } => ByteRange::Suffix { bytes: length },
    }
}

/// Fails if there is no part `number`, counted from 1, of an object with this number of parts.
pub(crate) fn check_part(number: i32, parts: usize) -> S3Result<usize> {
    let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    index.filter(|&index| index < parts).ok_or_else(|| {
        let message = format!("There is no part {number}: the object has {parts}");
        refuse(S3ErrorCode::InvalidPart, message)
    })
}

/// Returns the byte range of part `number`, counted from 1.
fn part(number: i32, part_bytes: &[u64]) -> S3Result<Bytes<u64>> {
    let index = check_part(number, part_bytes.len())?;
    let start = part_bytes[..index].iter().sum();
    Ok(start..start + part_bytes[index])
}

fn unsatisfiable(object_bytes: u64) -> S3Error {
    let mut error = refuse(
        S3ErrorCode::InvalidRange,
        format!("The range starts after the end of the object, which has {object_bytes} bytes"),
    );
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    if let Ok(value) = HeaderValue::try_from(unsatisfied_content_range(object_bytes)) {
        headers.insert(CONTENT_RANGE, value);
    }
    error.set_headers(headers);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(range: &str, object_bytes: u64) -> S3Result<Selected> {
        select(Some(&Range::parse(range).unwrap()), None, &[object_bytes])
    }

    #[test]
    fn range_is_truncated_at_the_end_of_the_object() {
        for (range, bytes, content_range) in [
            ("bytes=7-99", 7..10, "bytes 7-9/10"),
            ("bytes=3-", 3..10, "bytes 3-9/10"),
            ("bytes=-4", 6..10, "bytes 6-9/10"),
        ] {
            let content_range = Some(content_range.to_owned());
            assert_eq!(of(range, 10).unwrap(), Selected { bytes, content_range }, "{range}");
        }
    }

    #[test]
    fn range_past_the_end_is_refused_with_the_length() {
        for (range, object_bytes) in [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=-5", 0)] {
            let error = of(range, object_bytes).unwrap_err();
            assert_eq!(error.status_code().unwrap().as_u16(), 416, "{range}");
            let found = error.headers().unwrap()[CONTENT_RANGE].to_str().unwrap();
            assert_eq!(found, format!("bytes */{object_bytes}"));
        }
    }

    #[test]
    fn parts_are_counted_from_one() {
        let parts = [5, 0, 3];
        let part = |number| select(None, Some(number), &parts);
        assert_eq!(part(1).unwrap().bytes, 0..5);
        assert_eq!(part(2).unwrap(), Selected { bytes: 5..5, content_range: None });
        assert_eq!(part(3).unwrap().content_range.unwrap(), "bytes 5-7/8");
        for number in [-1, 0, 4] {
            assert_eq!(part(number).unwrap_err().code().as_str(), "InvalidPart", "{number}");
        }
    }

    #[test]
    fn whole_object_has_no_content_range() {
        let all = select(None, None, &[5, 3]).unwrap();
        assert_eq!(all, Selected { bytes: 0..8, content_range: None });
    }
}
