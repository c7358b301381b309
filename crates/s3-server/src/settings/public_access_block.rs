//! The document that restricts public access to a bucket. Pure.

use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::xml::Document;
use crate::xml::reader::Element;
use crate::xml::writer::Xml;

/// A bucket's public access block. As in S3, a missing member means `false`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PublicAccessBlock {
    pub(crate) block_public_acls: bool,
    pub(crate) ignore_public_acls: bool,
    pub(crate) block_public_policy: bool,
    pub(crate) restrict_public_buckets: bool,
}

impl Document for PublicAccessBlock {
    const ROOT: &'static str = "PublicAccessBlockConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        root.only(&[
            "BlockPublicAcls",
            "IgnorePublicAcls",
            "BlockPublicPolicy",
            "RestrictPublicBuckets",
        ])?;
        let flags = [
            root.flag_of("BlockPublicAcls")?,
            root.flag_of("IgnorePublicAcls")?,
            root.flag_of("BlockPublicPolicy")?,
            root.flag_of("RestrictPublicBuckets")?,
        ];
        if flags == [None; 4] {
            let message = "Must specify at least one configuration.";
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        let [acls, ignore, policy, restrict] = flags.map(Option::unwrap_or_default);
        Ok(Self {
            block_public_acls: acls,
            ignore_public_acls: ignore,
            block_public_policy: policy,
            restrict_public_buckets: restrict,
        })
    }

    fn write(&self, xml: &mut Xml) {
        xml.element("BlockPublicAcls", self.block_public_acls);
        xml.element("IgnorePublicAcls", self.ignore_public_acls);
        xml.element("BlockPublicPolicy", self.block_public_policy);
        xml.element("RestrictPublicBuckets", self.restrict_public_buckets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_left_out_are_false() {
        let parse = |content: &str| {
            let root = PublicAccessBlock::ROOT;
            PublicAccessBlock::parse(format!("<{root}>{content}</{root}>").as_bytes())
        };
        assert_eq!(parse("").unwrap_err().code(), S3ErrorCode::InvalidRequest);
        let one = parse("<IgnorePublicAcls>\nTRUE\n</IgnorePublicAcls>").unwrap();
        let expected = PublicAccessBlock { ignore_public_acls: true, ..Default::default() };
        assert_eq!(one, expected);
        let text = expected.text();
        assert_eq!(text.matches(">false<").count(), 3, "{text}");
        assert_eq!(PublicAccessBlock::parse(text.as_bytes()).unwrap(), expected);
        assert!(parse("<BlockPublicAcls>yes</BlockPublicAcls>").is_err());
        assert!(parse("<BlockAll>true</BlockAll>").is_err());
    }
}
