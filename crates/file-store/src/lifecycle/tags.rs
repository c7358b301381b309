//! An object's tags, and their format in its attributes. Pure.

use std::collections::BTreeMap;

use crate::object::Attributes;

/// The attribute with an object's tags: names and values as in a query string, which is the format
/// of the S3 header with this name.
const ATTRIBUTE: &str = "x-amz-tagging";

/// An object's tags: their keys and values, sorted by key.
pub type Tags = BTreeMap<String, String>;

static NO_TAGS: Tags = Tags::new();

impl Attributes {
    /// Returns the tags in the attributes.
    #[must_use]
    pub fn tags(&self) -> Tags {
        decode(self.get(ATTRIBUTE).unwrap_or_default())
    }

    /// Replaces the tags in the attributes.
    pub fn set_tags(&mut self, tags: &Tags) {
        if tags.is_empty() {
            self.remove(ATTRIBUTE);
        } else {
            self.set(ATTRIBUTE, encode(tags));
        }
    }
}

/// Encodes tags as a query string.
pub(crate) fn encode(tags: &Tags) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(tags).finish()
}

/// Decodes tags from a query string.
pub(crate) fn decode(query: &str) -> Tags {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// An object's tags, as far as they are known, for comparison with rules.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ObjectTags<'a> {
    /// The tags were not read: the object may have any tags.
    Unknown,
    Known(&'a Tags),
}

impl ObjectTags<'_> {
    /// The tags of an object, upload or delete marker without tags.
    pub(crate) fn none() -> Self {
        Self::Known(&NO_TAGS)
    }

    /// Returns `true` if the object has, or may have, all required tags.
    pub(crate) fn may_include(self, required: &Tags) -> bool {
        let ObjectTags::Known(tags) = self else { return true };
        required.iter().all(|(key, value)| tags.get(key) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn tags_round_trip_through_the_attribute() {
        let some = tags(&[("a", "1 x&=%"), ("b \u{e4}", ""), ("c+", "+")]);
        let mut attributes = Attributes::new();
        attributes.set_tags(&some);
        assert_eq!(attributes.tags(), some);
        attributes.set_tags(&Tags::new());
        assert_eq!(attributes, Attributes::new());
        assert_eq!(attributes.tags(), Tags::new());
    }

    #[test]
    fn all_required_tags_must_be_present_with_their_values() {
        let object = tags(&[("a", "1"), ("b", "2")]);
        for (required, is_included) in [
            (tags(&[]), true),
            (tags(&[("a", "1")]), true),
            (tags(&[("a", "1"), ("b", "2")]), true),
            (tags(&[("a", "2")]), false),
            (tags(&[("a", "1"), ("c", "3")]), false),
        ] {
            assert_eq!(ObjectTags::Known(&object).may_include(&required), is_included);
            assert!(ObjectTags::Unknown.may_include(&required));
            assert_eq!(ObjectTags::none().may_include(&required), required.is_empty());
        }
    }
}
