//! The body of CreateBucket. Pure.

use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::xml::Document;
use crate::xml::reader::Element;
use crate::xml::tagging::{Tagging, read_tag, write_tag};
use crate::xml::writer::Xml;

/// A new bucket's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CreateBucketConfiguration {
    pub(crate) tags: Option<Tagging>,
}

impl Document for CreateBucketConfiguration {
    const ROOT: &'static str = "CreateBucketConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        root.only(&["Bucket", "Location", "LocationConstraint", "Tags"])?;
        if root.child("Bucket")?.is_some() || root.child("Location")?.is_some() {
            let message = "Directory buckets, with a <Location> or <Bucket>, are not supported";
            return Err(refuse(S3ErrorCode::NotImplemented, message));
        }
        check_location(root.word_of("LocationConstraint")?.unwrap_or_default())?;
        let Some(set) = root.child("Tags")? else { return Ok(Self { tags: None }) };
        let tags = set.only(&["Tag"])?.all("Tag").map(read_tag).collect::<S3Result<Vec<_>>>()?;
        Ok(Self { tags: Some(Tagging(tags)).filter(|Tagging(tags)| !tags.is_empty()) })
    }

    /// Writes no location: every bucket has the default location.
    fn write(&self, xml: &mut Xml) {
        if let Some(Tagging(tags)) = &self.tags {
            xml.group("Tags", |xml| {
                tags.iter().for_each(|(key, value)| write_tag(xml, key, value));
            });
        }
    }
}

/// Rejects a location that is not a region. All regions mean this server's region; the server
/// accepts signatures for each of them.
fn check_location(location: &str) -> S3Result<()> {
    if matches!(location, "" | "EU") || is_region(location) {
        return Ok(());
    }
    let message = "The specified location-constraint is not valid";
    let error = refuse(S3ErrorCode::InvalidLocationConstraint, message);
    Err(error.with_field("LocationConstraint", location))
}

/// Returns `true` for a name in the form of an AWS region, such as `us-gov-west-1`.
fn is_region(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    match parts.as_slice() {
        [area, words @ .., number] => {
            area.len() >= 2
                && is_word(area)
                && !words.is_empty()
                && words.iter().all(is_word)
                && matches!(number.as_bytes(), [b'0'..=b'9'])
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(content: &str) -> Result<Option<Tagging>, &'static str> {
        let root = CreateBucketConfiguration::ROOT;
        let text = format!("<{root} xmlns=\"http://x/\">{content}</{root}>");
        let parsed = CreateBucketConfiguration::parse(text.as_bytes());
        parsed.map(|found| found.tags).map_err(|error| error.code().as_str())
    }

    #[test]
    fn tags_are_those_of_the_document() {
        let tag = |key: &str| format!("<Tag><Key>{key}</Key><Value>1</Value></Tag>");
        let tags = |keys: &[&str]| {
            let pairs = keys.iter().map(|key| ((*key).to_owned(), "1".to_owned()));
            Ok(Some(Tagging(pairs.collect())))
        };
        let content = format!("<Tags>{}{}</Tags>", tag("a"), tag("b"));
        assert_eq!(parse(&content), tags(&["a", "b"]));
        let document = CreateBucketConfiguration { tags: parse(&content).unwrap() };
        let again = CreateBucketConfiguration::parse(document.text().as_bytes());
        assert_eq!(again.unwrap(), document);
        for none in ["", "<Tags/>", "<LocationConstraint/>"] {
            assert_eq!(parse(none), Ok(None), "{none}");
        }
        for malformed in ["<Tag/>", "<Tags><Tag/></Tags>", "<Tags/><Tags/>", "<Labels/>"] {
            assert_eq!(parse(malformed), Err("MalformedXML"), "{malformed}");
        }
    }

    #[test]
    fn location_is_a_region() {
        let with =
            |location: &str| parse(&format!("<LocationConstraint>{location}</LocationConstraint>"));
        for region in ["", "us-east-1", " eu-central-1 ", "EU", "ap-southeast-7", "us-gov-west-1"] {
            assert_eq!(with(region), Ok(None), "{region}");
        }
        for other in
            ["nowhere", "us-east", "us-1", "u-east-1", "us-east-10", "US-EAST-1", "us--1", "eu"]
        {
            assert_eq!(with(other), Err("InvalidLocationConstraint"), "{other}");
        }
        let directory = "<Bucket><Type>Directory</Type></Bucket>";
        assert_eq!(parse(directory), Err("NotImplemented"));
        assert_eq!(parse("<Location><Name>a</Name></Location>"), Err("NotImplemented"));
    }
}
