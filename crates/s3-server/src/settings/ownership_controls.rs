//! The document that defines the owner of other clients' objects in a bucket. Pure.

use crate::errors::S3Result;
use crate::xml::Document;
use crate::xml::reader::Element;
use crate::xml::writer::Xml;

/// A bucket's ownership controls, which have one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnershipControls {
    /// The mode's name, such as `BucketOwnerEnforced`. It may be unknown.
    pub(crate) object_ownership: String,
}

impl Document for OwnershipControls {
    const ROOT: &'static str = "OwnershipControls";

    fn read(root: &Element) -> S3Result<Self> {
        let rule = root.only(&["Rule"])?.required("Rule")?.only(&["ObjectOwnership"])?;
        let object_ownership = rule.required("ObjectOwnership")?.word()?.to_owned();
        Ok(Self { object_ownership })
    }

    fn write(&self, xml: &mut Xml) {
        xml.group("Rule", |xml| xml.element("ObjectOwnership", &self.object_ownership));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_have_one_rule_with_one_mode() {
        let parse = |content: &str| {
            let text = format!("<OwnershipControls>{content}</OwnershipControls>");
            OwnershipControls::parse(text.as_bytes())
        };
        let rule = "<Rule><ObjectOwnership> ObjectWriter </ObjectOwnership></Rule>";
        let controls = parse(rule).unwrap();
        assert_eq!(controls.object_ownership, "ObjectWriter");
        assert_eq!(OwnershipControls::parse(controls.text().as_bytes()).unwrap(), controls);
        for content in ["", "<Rule/>", &rule.repeat(2), "<Rule><Mode>a</Mode></Rule>"] {
            let code = parse(content).unwrap_err().code();
            assert_eq!(code.as_str(), "MalformedXML", "{content}");
        }
    }
}
