//! The document with a bucket's or an object's tags. Pure.

use crate::errors::S3Result;
use crate::xml::Document;
use crate::xml::reader::Element;
use crate::xml::writer::Xml;

/// Tags, as keys and values in the client's order. They need not be valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tagging(pub(crate) Vec<(String, String)>);

impl Document for Tagging {
    const ROOT: &'static str = "Tagging";

    fn read(root: &Element) -> S3Result<Self> {
        let set = root.only(&["TagSet"])?.required("TagSet")?.only(&["Tag"])?;
        set.all("Tag").map(read_tag).collect::<S3Result<_>>().map(Self)
    }

    fn write(&self, xml: &mut Xml) {
        xml.group("TagSet", |xml| {
            self.0.iter().for_each(|(key, value)| write_tag(xml, key, value));
        });
    }
}

/// Reads a `Tag` element.
///
/// # Errors
/// `MalformedXML` if it does not have exactly one key and one value.
pub(crate) fn read_tag(tag: &Element) -> S3Result<(String, String)> {
    tag.only(&["Key", "Value"])?;
    let text = |name| Ok(tag.required(name)?.text()?.to_owned());
    Ok((text("Key")?, text("Value")?))
}

/// Writes a `Tag` element.
pub(crate) fn write_tag(xml: &mut Xml, key: &str, value: &str) {
    xml.group("Tag", |xml| {
        xml.element("Key", key);
        xml.element("Value", value);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(set: &str) -> S3Result<Tagging> {
        Tagging::parse(format!("<Tagging>{set}</Tagging>").as_bytes())
    }

    #[test]
    fn tags_survive_a_round_trip() {
        let tags = [(" a&b ", "1\n"), ("c", "")];
        let tags = Tagging(tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        assert_eq!(Tagging::parse(tags.text().as_bytes()).unwrap(), tags);
        assert_eq!(parse("<TagSet/>").unwrap(), Tagging::default());
    }

    #[test]
    fn tag_has_one_key_and_one_value() {
        for set in [
            "",
            "<TagSet/><TagSet/>",
            "<Tag><Key>a</Key><Value>b</Value></Tag>",
            "<TagSet><Tag/></TagSet>",
            "<TagSet><Tag><Key>a</Key></Tag></TagSet>",
            "<TagSet><Tag><Value>b</Value></Tag></TagSet>",
            "<TagSet><Tag><Key>a</Key><Key>a</Key><Value>b</Value></Tag></TagSet>",
            "<TagSet><Tag><Key>a</Key><Value>b</Value><Kind>c</Kind></Tag></TagSet>",
            "<TagSet><Tag><Key>a</Key><Value><b/></Value></Tag></TagSet>",
        ] {
            let error = parse(set).unwrap_err();
            assert_eq!(error.code().as_str(), "MalformedXML", "{set}");
        }
    }
}
