//! Parses buckets, keys and byte ranges given as command-line arguments. The module does no I/O.

use std::fmt;
use std::str::FromStr;

use crate::output::Name;
use crate::units::Bytes;

/// A bucket, written as `BUCKET`, or objects in a bucket, written as `BUCKET/REST`. `REST` is a key
/// or a prefix of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) bucket: String,
    pub(crate) rest: String,
}

impl FromStr for Location {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (bucket, rest) = text.split_once('/').unwrap_or((text, ""));
        if bucket.is_empty() {
            return Err("missing bucket name");
        }
        Ok(Self { bucket: bucket.to_owned(), rest: rest.to_owned() })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rest.as_str() {
            "" => write!(f, "{}", self.bucket),
            rest => write!(f, "{}/{}", self.bucket, Name(rest)),
        }
    }
}

/// An object, written as `BUCKET/KEY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) bucket: String,
    pub(crate) key: String,
}

impl FromStr for Object {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Location { bucket, rest: key } = text.parse()?;
        if key.is_empty() {
            return Err("expected BUCKET/KEY");
        }
        Ok(Self { bucket, key })
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bucket, Name(&self.key))
    }
}

/// A byte range of an object in the notation of HTTP: `A-B`, `A-` or `-N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// From the first byte to the last one, inclusive; `None` for the end of the object.
    FromTo(u64, Option<u64>),
    /// This number of bytes at the end of the object.
    Last(u64),
}

impl FromStr for Range {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const HOW: &str =
            "expected 0-99 for the first 100 bytes, 100- for the rest, -100 for the last 100";
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_empty_or_overflow| HOW),
            false => Err(HOW),
        };
        match text.split_once('-').ok_or(HOW)? {
            ("", last) => Ok(Self::Last(number(last)?)),
            (first, "") => Ok(Self::FromTo(number(first)?, None)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first {
                    return Err("the range ends before it begins");
                }
                Ok(Self::FromTo(first, Some(last)))
            }
        }
    }
}

impl Range {
    /// Returns the range in an object of `bytes` bytes, truncated at the end of the object. Fails
    /// if the range contains no byte of the object.
    pub(crate) fn within(self, bytes: u64) -> Result<std::ops::Range<u64>, String> {
        let range = match self {
            Self::FromTo(first, last) => {
                first..last.map_or(bytes, |last| last.saturating_add(1).min(bytes))
            }
            Self::Last(count) => bytes.saturating_sub(count)..bytes,
        };
        if range.is_empty() {
            return Err(format!("the range is outside of the object ({})", Bytes(bytes)));
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_split_at_the_first_slash() {
        let place =
            |bucket: &str, rest: &str| Location { bucket: bucket.into(), rest: rest.into() };
        assert_eq!("b".parse(), Ok(place("b", "")));
        assert_eq!("b/".parse(), Ok(place("b", "")));
        assert_eq!("b/a/ c".parse(), Ok(place("b", "a/ c")));
        assert_eq!("b//c".parse(), Ok(place("b", "/c")));
        assert!("/c".parse::<Location>().is_err());
        assert!("".parse::<Location>().is_err());
        assert!("b/".parse::<Object>().is_err());
        assert_eq!("b/a/c".parse::<Object>().unwrap().to_string(), "b/a/c");
    }

    #[test]
    fn ranges_are_parsed_and_truncated_at_the_end() {
        for (text, range) in [
            ("0-0", 0..1),
            ("2-5", 2..6),
            ("7-99", 7..10),
            ("3-", 3..10),
            ("-4", 6..10),
            ("-99", 0..10),
            ("0-18446744073709551615", 0..10),
        ] {
            assert_eq!(text.parse::<Range>().unwrap().within(10), Ok(range), "{text}");
        }
        for text in ["10-", "10-20", "-0"] {
            assert!(text.parse::<Range>().unwrap().within(10).is_err(), "{text}");
        }
        for text in ["", "-", "5", "5-4", "a-b", "+1-2", "1-2-3", "1 -2"] {
            assert!(text.parse::<Range>().is_err(), "{text}");
        }
    }
}
