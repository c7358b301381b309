//! The parts that listings of objects, uploads and parts share: the encoding of names, and the
//! limit on entries. Pure.

use s3s::dto::{CommonPrefix, EncodingType};
use s3s::{S3ErrorCode, S3Result};

use crate::errors::refuse;

/// The maximum number of entries in a response, as in S3.
const ENTRIES_MAX: i32 = 1000;

/// The encoding of names in a listing: unchanged, or percent-encoded so that XML can represent
/// every name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameEncoding {
    encoded: bool,
}

impl NameEncoding {
    pub(crate) fn parse(encoding_type: Option<EncodingType>) -> S3Result<Self> {
        match encoding_type.as_ref().map(EncodingType::as_str) {
            None | Some("") => Ok(Self { encoded: false }),
            Some("url") => Ok(Self { encoded: true }),
            Some(_) => {
                let message = "The only encoding-type is url";
                Err(refuse(S3ErrorCode::InvalidArgument, message))
            }
        }
    }

    pub(crate) fn encode(&self, name: &str) -> String {
        if self.encoded { percent_encoded(name) } else { name.to_owned() }
    }

    pub(crate) fn prefixes(&self, prefixes: Vec<String>) -> Vec<CommonPrefix> {
        prefixes
            .into_iter()
            .map(|prefix| CommonPrefix { prefix: Some(self.encode(&prefix)) })
            .collect()
    }

    pub(crate) fn encoding_type(&self) -> Option<EncodingType> {
        self.encoded.then(|| EncodingType::from_static(EncodingType::URL))
    }
}

/// Percent-encodes all bytes except those that S3 leaves unencoded: letters, digits and `-_.~/*`.
fn percent_encoded(name: &str) -> String {
    use std::fmt::Write;
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => encoded.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'~' | b'/' | b'*' => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").expect("writing to a String cannot fail"),
        }
    }
    encoded
}

/// Returns the limit on entries twice: as the response reports it, and as the listing applies it.
pub(crate) fn page_limit(requested: Option<i32>, name: &str) -> S3Result<(i32, usize)> {
    let reported = requested.unwrap_or(ENTRIES_MAX).min(ENTRIES_MAX);
    match usize::try_from(reported) {
        Ok(limit) => Ok((reported, limit)),
        Err(_) => {
            let message = format!("{name} must not be negative");
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_percent_encoded() {
        let names = NameEncoding { encoded: true };
        for (name, encoded) in
            [("asdf+b", "asdf%2Bb"), ("quux ab/thud", "quux%20ab/thud"), ("ä\u{1}", "%C3%A4%01")]
        {
            assert_eq!(names.encode(name), encoded);
        }
    }

    #[test]
    fn page_limit_is_capped_and_not_negative() {
        assert_eq!(page_limit(None, "x").unwrap(), (1000, 1000));
        assert_eq!(page_limit(Some(0), "x").unwrap(), (0, 0));
        assert_eq!(page_limit(Some(5000), "x").unwrap(), (1000, 1000));
        assert!(page_limit(Some(-1), "x").is_err());
    }
}
