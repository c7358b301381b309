//! Listings of the objects in a bucket, in both forms that S3 defines.

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use haul_file_store::{ListEntry, ListPage, ListRequest, ObjectInfo};
use haul_store_pool::Pool;

use crate::acl::owner::{Owner, owner_of};
use crate::answer::Answer;
use crate::body::Body;
use crate::encryption::content::listed_bytes;
use crate::errors::{S3Result, from_store, invalid_argument};
use crate::memory::Reserved;
use crate::objects::listing::checksums::ListedChecksum;
use crate::objects::listing::page::{DocumentSize, NameEncoding, page_limit};
use crate::service::Haul;
use crate::service::request::Request;
use crate::times::document_time;
use crate::xml::writer::Xml;

/// The root element in both forms.
const ROOT: &str = "ListBucketResult";

const TOKEN: &str = "continuation-token";

pub(crate) async fn list_objects(haul: &Haul, request: &Request, _body: Body) -> S3Result<Answer> {
    let marker = request.head.query.get("marker").unwrap_or_default();
    let Listed { parameters, page, owner, memory } =
        Parameters::from_request(request, marker)?.list(haul, request).await?;
    let encoding = parameters.encoding;
    let document = Xml::document(ROOT, |xml| {
        xml.element("Name", &request.name().bucket);
        xml.element("Prefix", encoding.encode(&parameters.prefix));
        xml.element("Marker", encoding.encode(marker));
        if parameters.delimiter.is_some() {
            // Without a delimiter, the client continues after the last key, as in S3.
            xml.optional("NextMarker", page.next.as_deref().map(|name| encoding.encode(name)));
        }
        parameters.write(xml);
        page.write(xml, encoding, Some(&owner));
    });
    Ok(Answer::xml_reserved(document, memory))
}

pub(crate) async fn list_objects_v2(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let query = &request.head.query;
    let (token, start_after) = (query.get(TOKEN), query.get("start-after"));
    let after = match token {
        None | Some("") => start_after.unwrap_or_default().to_owned(),
        Some(token) => name_in_token(token)?,
    };
    let shows_owner = query.get("fetch-owner").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    let Listed { parameters, page, owner, memory } =
        Parameters::from_request(request, &after)?.list(haul, request).await?;
    let encoding = parameters.encoding;
    let document = Xml::document(ROOT, |xml| {
        xml.element("Name", &request.name().bucket);
        xml.element("Prefix", encoding.encode(&parameters.prefix));
        xml.optional("StartAfter", start_after.map(|name| encoding.encode(name)));
        xml.optional("ContinuationToken", token);
        let next = page.next.as_ref().map(|name| BASE64.encode_to_string(name));
        xml.optional("NextContinuationToken", next);
        xml.element("KeyCount", page.objects.len() + page.prefixes.len());
        parameters.write(xml);
        page.write(xml, encoding, Some(&owner).filter(|_| shows_owner));
    });
    Ok(Answer::xml_reserved(document, memory))
}

/// Returns the name after which the page for a continuation token starts.
fn name_in_token(token: &str) -> S3Result<String> {
    let name = BASE64.decode_to_vec(token).ok().and_then(|name| String::from_utf8(name).ok());
    name.ok_or_else(|| {
        invalid_argument(TOKEN, token, "The continuation token provided is incorrect")
    })
}

/// The parameters of both forms.
#[derive(Debug)]
struct Parameters {
    bucket: String,
    prefix: String,
    delimiter: Option<String>,
    after: Option<String>,
    limit: usize,
    encoding: NameEncoding,
    size: DocumentSize,
}

impl Parameters {
    /// Reads the parameters of a request for the names after `after`.
    fn from_request(request: &Request, after: &str) -> S3Result<Self> {
        let query = &request.head.query;
        let text = |name: &str| Some(name).filter(|name| !name.is_empty()).map(str::to_owned);
        let limit = page_limit(query.get("max-keys"), "max-keys")?;
        Ok(Self {
            bucket: request.name().bucket.clone(),
            prefix: query.get("prefix").unwrap_or_default().to_owned(),
            delimiter: query.given("delimiter").map(str::to_owned),
            after: text(after),
            limit,
            encoding: NameEncoding::parse(query.get("encoding-type"))?,
            size: DocumentSize::new(limit, &request.head.target),
        })
    }

    /// Reads a page, after reserving memory for its document.
    async fn list(self, haul: &Haul, request: &Request) -> S3Result<Listed> {
        let memory = haul.reserve(request.memory.as_ref(), self.size.bytes()).await?;
        let list = move |store: &Pool| {
            let owner = owner_of(store, &self.bucket);
            let page = self.page(store, &owner)?;
            Ok((self, page, owner))
        };
        let (parameters, page, owner) = haul.blocking(list).await?;
        Ok(Listed { parameters, page, owner, memory })
    }

    fn page(&self, store: &Pool, owner: &Owner) -> S3Result<Page> {
        if self.limit == 0 {
            // A page without entries is never truncated.
            store.bucket(&self.bucket).map_err(from_store)?;
            return Ok(Page::default());
        }
        let request = ListRequest {
            prefix: &self.prefix,
            delimiter: self.delimiter.as_deref(),
            after: self.after.as_deref(),
            limit: self.limit,
        };
        let mut listed = store.list(&self.bucket, &request).map_err(from_store)?;
        let names = listed.entries.iter().map(ListEntry::name);
        let count = self.size.fitting(self.encoding, &owner.name, names);
        listed.more |= count < listed.entries.len();
        listed.entries.truncate(count);
        Page::complete(store, &self.bucket, listed)
    }

    /// Writes the parameters that both forms repeat.
    fn write(&self, xml: &mut Xml) {
        xml.element("MaxKeys", self.limit);
        let delimiter = self.delimiter.as_deref();
        xml.optional("Delimiter", delimiter.map(|delimiter| self.encoding.encode(delimiter)));
        xml.optional("EncodingType", self.encoding.encoding_type());
    }
}

/// A page, and the other content of its document.
struct Listed {
    parameters: Parameters,
    page: Page,
    owner: Owner,
    memory: Reserved,
}

#[derive(Default)]
struct Page {
    objects: Vec<(ObjectInfo, Option<ListedChecksum>)>,
    prefixes: Vec<String>,
    /// The last name, if the listing is truncated: the next page starts after it.
    next: Option<String>,
}

impl Page {
    /// Adds the lengths and checksums that clients see.
    fn complete(store: &Pool, bucket: &str, listed: ListPage) -> S3Result<Self> {
        let count = listed.entries.len();
        let next = listed.entries.last().filter(|_| listed.more);
        let mut page = Self { next: next.map(|last| last.name().to_owned()), ..Self::default() };
        for entry in listed.entries {
            match entry {
                ListEntry::Object(mut info) => {
                    let checksum = ListedChecksum::find(store, bucket, &info, count);
                    info.bytes = listed_bytes(store, bucket, &info, None)?;
                    page.objects.push((info, checksum));
                }
                ListEntry::Prefix(prefix) => page.prefixes.push(prefix),
            }
        }
        Ok(page)
    }

    fn write(&self, xml: &mut Xml, encoding: NameEncoding, owner: Option<&Owner>) {
        xml.element("IsTruncated", self.next.is_some());
        for (info, checksum) in &self.objects {
            xml.group("Contents", |xml| {
                xml.element("Key", encoding.encode(&info.key));
                xml.element("LastModified", document_time(info.modified));
                xml.element("ETag", format_args!("\"{}\"", info.etag));
                if let Some(checksum) = checksum {
                    checksum.write(xml);
                }
                xml.element("Size", info.bytes);
                if let Some(owner) = owner {
                    owner.write(xml, "Owner");
                }
                xml.element("StorageClass", "STANDARD");
            });
        }
        encoding.write_prefixes(xml, &self.prefixes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_token_round_trips() {
        for name in ["a", "b/ä\u{1}", "?&="] {
            assert_eq!(name_in_token(&BASE64.encode_to_string(name)).unwrap(), name);
        }
        let refused = name_in_token("!").unwrap_err();
        assert_eq!(refused.code().as_str(), "InvalidArgument");
        assert_eq!(refused.field("ArgumentName"), Some(TOKEN));
    }
}
