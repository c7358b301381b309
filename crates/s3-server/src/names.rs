//! The encoding of object names in listings. Pure.

use s3s::dto::{CommonPrefix, EncodingType};
use s3s::{S3ErrorCode, S3Result};

use crate::errors::refuse;

/// The encoding of names in a listing: unchanged, or percent-encoded so that XML can represent
/// every name.
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
}
