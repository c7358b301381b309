//! Buckets, keys and ranges as they stand on the command line. Pure.

use std::fmt;
use std::str::FromStr;

use crate::output::Name;
use crate::units::Bytes;

/// `BUCKET` or `BUCKET/REST`, where the rest is a key or what keys begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bucket: String,
    pub(crate) rest: String,
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (bucket, rest) = text.split_once('/').unwrap_or((text, ""));
        if bucket.is_empty() {
            return Err("it does not begin with the name of a bucket");
        }
        Ok(Self { bucket: bucket.to_owned(), rest: rest.to_owned() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rest.as_str() {
            "" => write!(f, "{}", self.bucket),
            rest => write!(f, "{}/{}", self.bucket, Name(rest)),
        }
    }
}

/// `BUCKET/KEY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) bucket: String,
    pub(crate) key: String,
}

impl FromStr for Object {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Place { bucket, rest: key } = text.parse()?;
        if key.is_empty() {
            return Err("write the bucket, a slash and the key: BUCKET/KEY");
        }
        Ok(Self { bucket, key })
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bucket, Name(&self.key))
    }
}

/// Some of the bytes of an object, as HTTP writes them: `A-B`, `A-` or `-N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// From the first to the last, both included; without a last one to the end.
    FromTo(u64, Option<u64>),
    /// So many at the end.
    Last(u64),
}

impl FromStr for Range {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const HOW: &str =
            "write 0-99 for the first 100 bytes, 100- for the rest, -100 for the last";
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_empty_or_beyond| HOW),
            false => Err(HOW),
        };
        match text.split_once('-').ok_or(HOW)? {
            ("", last) => Ok(Self::Last(number(last)?)),
            (first, "") => Ok(Self::FromTo(number(first)?, None)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first {
                    return Err("it ends before it begins");
                }
                Ok(Self::FromTo(first, Some(last)))
            }
        }
    }
}

impl Range {
    /// The bytes of an object of `bytes` bytes, cut at its end.
    pub(crate) fn within(self, bytes: u64) -> Result<std::ops::Range<u64>, String> {
        let range = match self {
            Self::FromTo(first, last) => {
                first..last.map_or(bytes, |last| last.saturating_add(1).min(bytes))
            }
            Self::Last(count) => bytes.saturating_sub(count)..bytes,
        };
        if range.is_empty() {
            return Err(format!(
                "the range lies outside of the object, which has {}",
                Bytes(bytes)
            ));
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_split_at_the_first_slash() {
        let place = |bucket: &str, rest: &str| Place { bucket: bucket.into(), rest: rest.into() };
        assert_eq!("b".parse(), Ok(place("b", "")));
        assert_eq!("b/".parse(), Ok(place("b", "")));
        assert_eq!("b/a/ c".parse(), Ok(place("b", "a/ c")));
        assert_eq!("b//c".parse(), Ok(place("b", "/c")));
        assert!("/c".parse::<Place>().is_err());
        assert!("".parse::<Place>().is_err());
        assert!("b/".parse::<Object>().is_err());
        assert_eq!("b/a/c".parse::<Object>().unwrap().to_string(), "b/a/c");
    }

    #[test]
    fn ranges_are_read_and_cut_at_the_end_of_the_object() {
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
