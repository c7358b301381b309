//! A bucket's quota: the subresource `?quota`, which S3 does not have.

use haul_file_store::{Quota, QuotaState, Usage};
use haul_store_pool::Pool;

use crate::answer::Answer;
use crate::body::Body;
use crate::buckets::documents::receive;
use crate::errors::{S3Result, from_store};
use crate::service::Haul;
use crate::service::request::Request;
use crate::xml::Document;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

/// The document with a bucket's quota and, in a response, its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QuotaConfiguration {
    quota: Quota,
    usage: Option<Usage>,
}

impl Document for QuotaConfiguration {
    const ROOT: &'static str = "QuotaConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        // A client may send the document that it received.
        root.only(&["Bytes", "Objects", "UsedBytes", "UsedObjects"])?;
        let quota = Quota { bytes: root.number_of("Bytes")?, objects: root.number_of("Objects")? };
        Ok(Self { quota, usage: None })
    }

    fn write(&self, xml: &mut Xml) {
        xml.optional("Bytes", self.quota.bytes);
        xml.optional("Objects", self.quota.objects);
        xml.optional("UsedBytes", self.usage.map(|usage| usage.bytes));
        xml.optional("UsedObjects", self.usage.map(|usage| usage.objects));
    }
}

pub(crate) async fn put_bucket_quota(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let QuotaConfiguration { quota, .. } = receive(haul, request, body).await?;
    if !quota.is_limited() {
        return Err(malformed("a quota needs <Bytes> or <Objects>; DELETE removes it"));
    }
    set(haul, request, quota).await?;
    Ok(Answer::ok())
}

pub(crate) async fn delete_bucket_quota(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    set(haul, request, Quota::default()).await?;
    Ok(Answer::no_content())
}

async fn set(haul: &Haul, request: &Request, quota: Quota) -> S3Result<()> {
    let bucket = request.name().bucket.clone();
    let set = move |store: &Pool| store.set_quota(&bucket, quota).map_err(from_store);
    haul.blocking(set).await
}

/// Returns the usage even for a bucket without a quota, so that a client can choose one.
pub(crate) async fn get_bucket_quota(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let found = haul.store().quota(&request.name().bucket).map_err(from_store)?;
    let QuotaState { quota, usage, .. } = found;
    Ok(Answer::xml(QuotaConfiguration { quota, usage: Some(usage) }.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(content: &str) -> Result<Quota, &'static str> {
        let root = QuotaConfiguration::ROOT;
        let parsed = QuotaConfiguration::parse(format!("<{root}>{content}</{root}>").as_bytes());
        parsed.map(|found| found.quota).map_err(|error| error.code().as_str())
    }

    #[test]
    fn limits_are_numbers() {
        let quota = |bytes, objects| Ok(Quota { bytes, objects });
        for (content, expected) in [
            ("", quota(None, None)),
            ("<Bytes>0</Bytes>", quota(Some(0), None)),
            ("<Objects>\n7 </Objects>", quota(None, Some(7))),
            ("<Bytes>18446744073709551615</Bytes>", quota(Some(u64::MAX), None)),
            ("<Bytes>18446744073709551616</Bytes>", Err("MalformedXML")),
            ("<Bytes>-1</Bytes>", Err("MalformedXML")),
            ("<Bytes>1K</Bytes>", Err("MalformedXML")),
            ("<Bytes/>", Err("MalformedXML")),
            ("<Bytes>1</Bytes><Bytes>1</Bytes>", Err("MalformedXML")),
            ("<Size>1</Size>", Err("MalformedXML")),
        ] {
            assert_eq!(parse(content), expected, "{content}");
        }
    }

    #[test]
    fn document_of_a_response_can_be_sent_back() {
        let quota = Quota { bytes: Some(5), objects: Some(6) };
        let usage = Some(Usage { bytes: 3, objects: 4 });
        let text = QuotaConfiguration { quota, usage }.text();
        assert!(text.contains("<UsedBytes>3</UsedBytes><UsedObjects>4</UsedObjects>"), "{text}");
        assert_eq!(QuotaConfiguration::parse(text.as_bytes()).unwrap().quota, quota);
    }
}
