//! The common parts of listings: the encoding of names, the limit on entries, and the document
//! size. Pure.

use haul_file_store::KEY_BYTES_MAX;

use crate::errors::{S3Result, invalid_argument};
use crate::xml::writer::Xml;

/// The maximum number of entries in a response, as in S3.
const ENTRIES_MAX: usize = 1000;

/// The maximum length of an entry in a document, without the object's and the owner's names.
const MARKUP_BYTES_MAX: usize = 512;

/// The bytes in a document for each requested entry: enough for the longest key and the longest
/// user name, unless they are escaped. A page with many longer names has fewer entries.
const ENTRY_BYTES: usize = KEY_BYTES_MAX + MARKUP_BYTES_MAX + 2 * 64;

/// The bytes in a document in addition to its entries and the request parameters: enough for the
/// next markers, and for one entry of any length, so that each page has an entry.
const FRAME_BYTES: usize = 64 << 10;

/// The maximum number of bytes that represent one byte of a name in a document: `&quot;`.
const ESCAPED_BYTES_MAX: usize = 6;

/// The maximum length of a document, in bytes. Memory for it can always be reserved: a peer has at
/// least this share.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 4 << 20;

/// The encoding of names in a listing: unchanged, or percent-encoded so that XML can represent
/// every name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameEncoding {
    encoded: bool,
}

impl NameEncoding {
    /// Parses the query parameter `encoding-type`.
    pub(crate) fn parse(encoding_type: Option<&str>) -> S3Result<Self> {
        match encoding_type {
            None | Some("") => Ok(Self { encoded: false }),
            Some("url") => Ok(Self { encoded: true }),
            Some(other) => {
                let message = "Invalid Encoding Method specified in Request: it can only be url";
                Err(invalid_argument("encoding-type", other, message))
            }
        }
    }

    pub(crate) fn encode(&self, name: &str) -> String {
        if self.encoded { percent_encoded(name) } else { name.to_owned() }
    }

    /// Writes an element for each common prefix.
    pub(crate) fn write_prefixes(&self, xml: &mut Xml, prefixes: &[String]) {
        for prefix in prefixes {
            xml.group("CommonPrefixes", |xml| xml.element("Prefix", self.encode(prefix)));
        }
    }

    /// Returns the encoding's name in the response.
    pub(crate) fn encoding_type(&self) -> Option<&'static str> {
        self.encoded.then_some("url")
    }

    /// Returns an upper bound for a name's length in a document, in bytes.
    fn bytes_max(self, name: &str) -> usize {
        let is_unchanged = |byte: u8| match self.encoded {
            true => is_unencoded(byte),
            false => byte >= b' ' && !matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\''),
        };
        let changed_bytes = if self.encoded { 3 } else { ESCAPED_BYTES_MAX };
        let changed = name.bytes().filter(|byte| !is_unchanged(*byte)).count();
        name.len() + (changed_bytes - 1) * changed
    }
}

/// Percent-encodes all bytes except those that S3 leaves unencoded.
fn percent_encoded(name: &str) -> String {
    use std::fmt::Write;
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            byte if is_unencoded(byte) => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").expect("writing to a String cannot fail"),
        }
    }
    encoded
}

/// Returns `true` for the letters, the digits and `-_.~/*`.
fn is_unencoded(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'/' | b'*')
}

/// Returns the maximum number of entries that the parameter `name` sets.
///
/// # Errors
/// `InvalidArgument` if it is not a number that S3 accepts.
pub(crate) fn page_limit(requested: Option<&str>, name: &str) -> S3Result<usize> {
    let Some(text) = requested.filter(|text| !text.is_empty()) else { return Ok(ENTRIES_MAX) };
    // Policy conditions read numbers in the same way: without blanks and plus signs.
    let number = text.strip_prefix('+').map_or(text, |_| "");
    match number.parse::<i32>().map(usize::try_from) {
        Ok(Ok(limit)) => Ok(limit.min(ENTRIES_MAX)),
        Ok(Err(_negative)) => {
            let message = format!("Argument {name} must be an integer between 0 and 2147483647");
            Err(invalid_argument(name, text, message))
        }
        Err(_) => {
            let message = format!("Provided {name} not an integer or within integer range");
            Err(invalid_argument(name, text, message))
        }
    }
}

/// Returns the memory for a document with at most `limit` parts, in bytes.
pub(crate) fn parts_bytes(limit: usize) -> u64 {
    (FRAME_BYTES + limit * MARKUP_BYTES_MAX) as u64
}

/// The size of a listing's document: the memory that is reserved before the page is read, and the
/// names that the page can have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentSize {
    entries_bytes: usize,
    /// The request parameters, which the document repeats.
    parameters_bytes: usize,
}

impl DocumentSize {
    /// Returns the size limit of a response with up to `limit` entries. `target` is the request
    /// target, whose parameters the document repeats.
    pub(crate) fn new(limit: usize, target: &str) -> Self {
        let parameters_bytes = ESCAPED_BYTES_MAX * target.len();
        let left = DOCUMENT_BYTES_MAX.saturating_sub(FRAME_BYTES + parameters_bytes);
        Self { entries_bytes: (limit * ENTRY_BYTES).min(left), parameters_bytes }
    }

    /// Returns the memory for the document, in bytes.
    pub(crate) fn bytes(self) -> u64 {
        (self.entries_bytes + FRAME_BYTES + self.parameters_bytes) as u64
    }

    /// Returns how many of the entries with these names the document can have: at least one.
    pub(crate) fn fitting<'a>(
        self,
        encoding: NameEncoding,
        owner: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> usize {
        let owner_bytes = NameEncoding { encoded: false }.bytes_max(owner);
        let markup_bytes = MARKUP_BYTES_MAX + 2 * owner_bytes;
        let mut left = self.entries_bytes;
        let fits = |name: &str| {
            left = left.checked_sub(markup_bytes + encoding.bytes_max(name))?;
            Some(())
        };
        names.map_while(fits).count().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_percent_encoded() {
        let names = NameEncoding::parse(Some("url")).unwrap();
        for (name, encoded) in [
            ("asdf+b", "asdf%2Bb"),
            ("quux ab/thud", "quux%20ab/thud"),
            ("\u{e4}\u{1}", "%C3%A4%01"),
        ] {
            assert_eq!(names.encode(name), encoded);
            assert_eq!(names.bytes_max(name), encoded.len());
        }
        assert_eq!(names.encoding_type(), Some("url"));
        let plain = NameEncoding::parse(None).unwrap();
        assert_eq!((plain.encode("a b").as_str(), plain.encoding_type()), ("a b", None));
        let unknown = NameEncoding::parse(Some("base64")).unwrap_err();
        assert_eq!(unknown.field("ArgumentName"), Some("encoding-type"));
    }

    #[test]
    fn page_limit_is_capped_and_not_negative() {
        for (text, limit) in
            [(None, 1000), (Some(""), 1000), (Some("0"), 0), (Some("7"), 7), (Some("5000"), 1000)]
        {
            assert_eq!(page_limit(text, "max-keys").unwrap(), limit);
        }
        for text in
            ["-1", "x", "1.5", " 3", "3 ", "\t3", "+3", "2147483648", "1000000000000000000000"]
        {
            let error = page_limit(Some(text), "max-keys").unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidArgument", "{text}");
            assert_eq!(error.field("ArgumentValue"), Some(text));
        }
    }

    #[test]
    fn document_fits_into_the_memory_for_it() {
        let (plain, url) = (NameEncoding { encoded: false }, NameEncoding { encoded: true });
        let target = "/bucket?prefix=".to_owned() + &"\"".repeat(30_000);
        for (limit, encoding, char) in [
            (1000, plain, 'k'),
            (1000, plain, '"'),
            (1000, plain, '\u{1f}'),
            (1000, url, ' '),
            (1, plain, '"'),
            (3, url, '\u{e4}'),
        ] {
            let size = DocumentSize::new(limit, &target);
            let name: String = std::iter::repeat_n(char, KEY_BYTES_MAX / char.len_utf8()).collect();
            let names = vec![name.as_str(); limit];
            let count = size.fitting(encoding, &"o".repeat(64), names.into_iter());
            assert!(count >= 1);
            if char == 'k' || limit == 1 {
                assert_eq!(count, limit);
            }
            let document = Xml::document("Listing", |xml| {
                xml.element("Prefix", &target);
                xml.element("NextMarker", encoding.encode(&name));
                for _ in 0..count {
                    xml.element("Key", encoding.encode(&name));
                    xml.element("Markup", "m".repeat(MARKUP_BYTES_MAX - 40));
                }
            });
            assert!(document.len() as u64 <= size.bytes(), "{limit} {encoding:?} {char:?}");
            assert!(size.bytes() <= DOCUMENT_BYTES_MAX as u64);
        }
    }
}
