//! Tags and their limits. Pure.

use haul_file_store::{Attributes, Tags};

use crate::errors::{S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::request::head::decode;

/// The maximum number of tags on an object.
const TAGS_MAX: usize = 10;
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;

/// The characters permitted in tags in addition to letters, digits and blanks, as in S3.
const OTHER_CHARS: &str = "+-=._:/@";

/// Parses the header `x-amz-tagging`, which has the form of a query.
///
/// # Errors
/// `InvalidArgument` if it is malformed, and `InvalidTag` if no object can have the tags.
pub(crate) fn parse(header: &str) -> S3Result<Tags> {
    let malformed = || {
        let message = "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL \
                       query parameters without tag name duplicates.";
        invalid_argument("x-amz-tagging", header, message)
    };
    // The header is checked as a path, because the query decoder keeps malformed escapes.
    if decode(header).is_none() {
        return Err(malformed());
    }
    let pairs: Vec<_> = form_urlencoded::parse(header.as_bytes()).into_owned().collect();
    let mut keys: Vec<_> = pairs.iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    if keys.iter().any(|key| key.is_empty()) || keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(malformed());
    }
    checked(pairs.into_iter(), TAGS_MAX)
}

/// Returns the tags if an object can have all of them.
pub(crate) fn object_tags(pairs: impl Iterator<Item = (String, String)>) -> S3Result<Tags> {
    checked(pairs, TAGS_MAX)
}

/// Returns a copy of `attributes` with only the tags.
pub(crate) fn only_tags(attributes: &Attributes) -> Attributes {
    let mut tags = Attributes::new();
    tags.set_tags(&attributes.tags());
    tags
}

/// Returns the tags if there are at most `count_max` and all are valid.
pub(crate) fn checked(
    pairs: impl Iterator<Item = (String, String)>,
    count_max: usize,
) -> S3Result<Tags> {
    let invalid = |message: &str| refuse(S3ErrorCode::InvalidTag, message);
    let mut tags = Tags::new();
    for (key, value) in pairs {
        if key.is_empty() || key.chars().count() > KEY_CHARS_MAX || !key.chars().all(is_valid) {
            let message = format!(
                "The TagKey you have provided is invalid: it must have 1 to {KEY_CHARS_MAX} \
                 characters, which are letters, digits, blanks or {OTHER_CHARS}"
            );
            return Err(invalid(&message).with_field("TagKey", key));
        }
        if value.chars().count() > VALUE_CHARS_MAX || !value.chars().all(is_valid) {
            let message = format!(
                "The TagValue you have provided is invalid: it must have at most \
                 {VALUE_CHARS_MAX} characters, which are letters, digits, blanks or {OTHER_CHARS}"
            );
            return Err(invalid(&message).with_field("TagKey", key).with_field("TagValue", value));
        }
        if key.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("aws:")) {
            let message = "System tags cannot be added/updated by requester";
            return Err(invalid(message).with_field("TagKey", key));
        }
        if tags.insert(key.clone(), value).is_some() {
            let message = "Cannot provide multiple Tags with the same key";
            return Err(invalid(message).with_field("TagKey", key));
        }
    }
    if tags.len() > count_max {
        return Err(invalid(&format!("There can be at most {count_max} tags")));
    }
    Ok(tags)
}

/// Returns `true` for a character that a tag can have: a letter, digit or blank in any script.
fn is_valid(char: char) -> bool {
    let is_blank = char.is_whitespace() && !char.is_control();
    char.is_alphanumeric() || is_blank || OTHER_CHARS.contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_round_trip_through_the_attribute() {
        let tags = parse("b=2&a=1%20x%2B&c").unwrap();
        assert_eq!(tags["a"], "1 x+");
        let mut attributes = Attributes::new();
        attributes.set_tags(&tags);
        attributes.set("content-type", "text/plain");
        assert_eq!(only_tags(&attributes).tags(), tags);
        assert_eq!(only_tags(&attributes).iter().count(), 1);
    }

    #[test]
    fn tags_beyond_the_limits_are_refused() {
        let many: Vec<_> = (0..=TAGS_MAX).map(|i| format!("k{i}=v")).collect();
        let long_key = format!("{}=v", "k".repeat(KEY_CHARS_MAX + 1));
        let long_value = format!("k={}", "v".repeat(VALUE_CHARS_MAX + 1));
        for header in [many.join("&").as_str(), &long_key, &long_value, "a!"] {
            assert_eq!(parse(header).unwrap_err().code().as_str(), "InvalidTag", "{header}");
        }
        for header in ["a=1&a=2", "=1", "=&=", "a%", "a=%F", "a=%FF"] {
            assert_eq!(parse(header).unwrap_err().code().as_str(), "InvalidArgument", "{header}");
        }
        assert_eq!(parse("&&").unwrap().len(), 0);
    }

    #[test]
    fn keys_of_aws_are_reserved() {
        for (key, is_valid) in
            [("aws:a", false), ("AWS:a", false), ("aws", true), ("a/aws:b", true)]
        {
            let one = [(key.to_owned(), "aws:value".to_owned())];
            let code = object_tags(one.into_iter()).map_err(|error| error.code());
            assert_eq!(
                code.map(drop),
                if is_valid { Ok(()) } else { Err(S3ErrorCode::InvalidTag) }
            );
        }
    }

    #[test]
    fn tags_have_the_characters_of_s3() {
        for valid in ["user name", "+-=._:/@", "\u{e4}\u{6f22}9"] {
            let pair = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into_iter();
            assert!(checked(pair(valid, valid), 1).is_ok(), "{valid}");
        }
        for invalid in
            ["user!name", "foo#bar", "a%b", "a*b", "name?test", "`path", "a,b", "a;b", "\t"]
        {
            let pair = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into_iter();
            for (pair, field) in [(pair(invalid, "v"), "TagKey"), (pair("k", invalid), "TagValue")]
            {
                let refused = checked(pair, 1).unwrap_err();
                assert_eq!(refused.code(), S3ErrorCode::InvalidTag);
                assert_eq!(refused.field(field), Some(invalid));
            }
        }
    }
}
