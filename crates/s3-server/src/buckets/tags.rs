//! Bucket tags. Pure.

use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::stored::tags::checked;
use crate::xml::tagging::Tagging;

/// The maximum number of tags on a bucket, as in S3.
const TAGS_MAX: usize = 50;

/// Rejects tags that a bucket cannot have.
pub(crate) fn check(tagging: &Tagging) -> S3Result<()> {
    let Tagging(tags) = tagging;
    if tags.len() > TAGS_MAX {
        // Unlike for other tag limits, S3 has no error code of its own for the number.
        let message = format!("Bucket tag count cannot be greater than {TAGS_MAX}");
        return Err(refuse(S3ErrorCode::BadRequest, message));
    }
    checked(tags.iter().cloned(), TAGS_MAX).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(tags: &[(&str, &str)]) -> &'static str {
        let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        check(&Tagging(tags.collect())).map_or_else(|error| error.code().as_str(), |()| "")
    }

    #[test]
    fn tags_of_buckets_are_those_of_s3() {
        let long = "k".repeat(129);
        for (tags, expected) in [
            (vec![], ""),
            (vec![("team", "red"), ("a+b-c=d._:/@", "\u{e4} 1")], ""),
            (vec![("a", "1"), ("a", "2")], "InvalidTag"),
            (vec![("", "1")], "InvalidTag"),
            (vec![(&*long, "1")], "InvalidTag"),
            (vec![("user!name", "1")], "InvalidTag"),
            (vec![("a", "comma,separated")], "InvalidTag"),
        ] {
            assert_eq!(code(&tags), expected, "{tags:?}");
        }
        let names: Vec<_> = (0..=TAGS_MAX).map(|number| number.to_string()).collect();
        let tags: Vec<_> = names.iter().map(|name| (&**name, "")).collect();
        assert_eq!(code(&tags[1..]), "");
        assert_eq!(code(&tags), "BadRequest");
    }
}
