//! Listings of versions.

use haul_file_store::{ListVersionsRequest, VersionId, VersionInfo, VersionListEntry};
use haul_store_pool::Pool;

use crate::acl::owner::{Owner, owner_of};
use crate::answer::Answer;
use crate::body::Body;
use crate::encryption::content::listed_bytes;
use crate::errors::{S3Result, from_store, invalid_argument};
use crate::objects::listing::checksums::ListedChecksum;
use crate::objects::listing::page::{DocumentSize, NameEncoding, page_limit};
use crate::service::Haul;
use crate::service::request::Request;
use crate::stored::versions::parse_parameter;
use crate::times::document_time;
use crate::xml::writer::Xml;

const VERSION_MARKER: &str = "version-id-marker";

pub(crate) async fn list_object_versions(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let parameters = Parameters::from_request(request)?;
    let memory = haul.reserve(request.memory.as_ref(), parameters.size.bytes()).await?;
    let list = move |store: &Pool| {
        let owner = owner_of(store, &parameters.bucket);
        let page = parameters.page(store, &owner)?;
        Ok((parameters, page, owner))
    };
    let (parameters, page, owner) = haul.blocking(list).await?;
    let encoding = parameters.encoding;
    let document = Xml::document("ListVersionsResult", |xml| {
        xml.element("Name", &parameters.bucket);
        xml.element("Prefix", encoding.encode(&parameters.prefix));
        let marker = parameters.after.as_deref().unwrap_or_default();
        xml.element("KeyMarker", encoding.encode(marker));
        xml.optional("VersionIdMarker", request.head.query.get(VERSION_MARKER));
        page.write_next(xml, encoding);
        xml.element("MaxKeys", parameters.limit);
        let delimiter = parameters.delimiter.as_deref();
        xml.optional("Delimiter", delimiter.map(|delimiter| encoding.encode(delimiter)));
        xml.optional("EncodingType", encoding.encoding_type());
        page.write(xml, encoding, &owner);
    });
    Ok(Answer::xml_reserved(document, memory))
}

/// A listing's parameters.
#[derive(Debug)]
struct Parameters {
    bucket: String,
    prefix: String,
    delimiter: Option<String>,
    after: Option<String>,
    after_version: Option<VersionId>,
    limit: usize,
    encoding: NameEncoding,
    size: DocumentSize,
}

impl Parameters {
    fn from_request(request: &Request) -> S3Result<Self> {
        let query = &request.head.query;
        let limit = page_limit(query.get("max-keys"), "max-keys")?;
        let after = query.given("key-marker").map(str::to_owned);
        let after_version = parse_parameter(VERSION_MARKER, query.get(VERSION_MARKER))?;
        if after_version.is_some() && after.is_none() {
            let version = query.get(VERSION_MARKER).unwrap_or_default();
            let message = "A version-id marker cannot be specified without a key marker";
            return Err(invalid_argument(VERSION_MARKER, version, message));
        }
        Ok(Self {
            bucket: request.name().bucket.clone(),
            prefix: query.get("prefix").unwrap_or_default().to_owned(),
            delimiter: query.given("delimiter").map(str::to_owned),
            after,
            after_version,
            limit,
            encoding: NameEncoding::parse(query.get("encoding-type"))?,
            size: DocumentSize::new(limit, &request.head.target),
        })
    }

    fn page(&self, store: &Pool, owner: &Owner) -> S3Result<Page> {
        let request = ListVersionsRequest {
            prefix: &self.prefix,
            delimiter: self.delimiter.as_deref(),
            after: self.after.as_deref(),
            after_version: self.after_version,
            limit: self.limit,
        };
        let mut listed = store.list_versions(&self.bucket, &request).map_err(from_store)?;
        let names = listed.entries.iter().map(name);
        let count = self.size.fitting(self.encoding, &owner.name, names);
        let is_truncated = listed.more || count < listed.entries.len();
        listed.entries.truncate(count);
        let count = listed.entries.len();
        let complete = |mut entry: VersionListEntry| {
            let mut checksum = None;
            if let VersionListEntry::Version(version) = &mut entry {
                checksum = ListedChecksum::find_version(store, &self.bucket, version, count);
                let VersionInfo { info, .. } = version;
                info.bytes = listed_bytes(store, &self.bucket, info, Some(info.version_id))?;
            }
            Ok((entry, checksum))
        };
        let entries = listed.entries.into_iter().map(complete).collect::<S3Result<Vec<_>>>()?;
        Ok(Page { entries, is_truncated })
    }
}

/// Returns an entry's key or common prefix.
fn name(entry: &VersionListEntry) -> &str {
    match entry {
        VersionListEntry::Version(version) => &version.info.key,
        VersionListEntry::Prefix(prefix) => prefix,
    }
}

/// A page of a listing, in key order, each key's newest version first.
#[derive(Default)]
struct Page {
    entries: Vec<(VersionListEntry, Option<ListedChecksum>)>,
    is_truncated: bool,
}

impl Page {
    /// Writes the markers after which the next page starts, if the listing is truncated.
    fn write_next(&self, xml: &mut Xml, encoding: NameEncoding) {
        let Some((last, _)) = self.entries.last().filter(|_| self.is_truncated) else { return };
        xml.element("NextKeyMarker", encoding.encode(name(last)));
        if let VersionListEntry::Version(version) = last {
            xml.element("NextVersionIdMarker", version.info.version_id);
        }
    }

    fn write(&self, xml: &mut Xml, encoding: NameEncoding, owner: &Owner) {
        xml.element("IsTruncated", self.is_truncated);
        let mut prefixes = Vec::new();
        for (entry, checksum) in &self.entries {
            match entry {
                VersionListEntry::Version(version) => {
                    write_version(
                        xml,
                        &encoding.encode(&version.info.key),
                        version,
                        *checksum,
                        owner,
                    );
                }
                VersionListEntry::Prefix(prefix) => prefixes.push(prefix.clone()),
            }
        }
        encoding.write_prefixes(xml, &prefixes);
    }
}

/// Writes a version or a delete marker.
fn write_version(
    xml: &mut Xml,
    key: &str,
    version: &VersionInfo,
    checksum: Option<ListedChecksum>,
    owner: &Owner,
) {
    let VersionInfo { info, is_latest, is_delete_marker } = version;
    xml.group(if *is_delete_marker { "DeleteMarker" } else { "Version" }, |xml| {
        xml.element("Key", key);
        xml.element("VersionId", info.version_id);
        xml.element("IsLatest", is_latest);
        xml.element("LastModified", document_time(info.modified));
        if !is_delete_marker {
            xml.element("ETag", format_args!("\"{}\"", info.etag));
            if let Some(checksum) = checksum {
                checksum.write(xml);
            }
            xml.element("Size", info.bytes);
            xml.element("StorageClass", "STANDARD");
        }
        owner.write(xml, "Owner");
    });
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use haul_file_store::{Etag, ObjectInfo};

    use super::*;

    fn version(key: &str, id: u64, is_delete_marker: bool) -> VersionListEntry {
        let info = ObjectInfo {
            key: key.to_owned(),
            bytes: 5,
            modified: SystemTime::UNIX_EPOCH + Duration::from_millis(1500),
            etag: Etag { md5: [1; 16], parts: 2 },
            version_id: VersionId::Id(id),
        };
        VersionListEntry::Version(VersionInfo { info, is_latest: id == 9, is_delete_marker })
    }

    #[test]
    fn versions_and_delete_markers_are_in_one_order() {
        let entries = [
            version("a", 9, true),
            VersionListEntry::Prefix("b/".to_owned()),
            version("c", 8, false),
            version("c", 7, true),
            version("c", 6, false),
        ];
        let page = Page { entries: entries.map(|entry| (entry, None)).into(), is_truncated: true };
        let owner = Owner { name: "ann".to_owned() };
        let encoding = NameEncoding::parse(None).unwrap();
        let xml = Xml::plain("A", |xml| {
            page.write_next(xml, encoding);
            page.write(xml, encoding, &owner);
        });
        let order: Vec<_> = xml
            .split('<')
            .filter_map(|tag| tag.split_once('>'))
            .filter(|(tag, _)| {
                ["Version", "DeleteMarker", "VersionId", "Prefix", "IsTruncated"].contains(tag)
                    || tag.starts_with("Next")
            })
            .map(|(tag, text)| format!("{tag} {text}"))
            .collect();
        let id = |id: u64| format!("VersionId {}", VersionId::Id(id));
        let expected = [
            "NextKeyMarker c".to_owned(),
            format!("NextVersionIdMarker {}", VersionId::Id(6)),
            "IsTruncated true".to_owned(),
            "DeleteMarker ".to_owned(),
            id(9),
            "Version ".to_owned(),
            id(8),
            "DeleteMarker ".to_owned(),
            id(7),
            "Version ".to_owned(),
            id(6),
            "Prefix b/".to_owned(),
        ];
        assert_eq!(order, expected, "{xml}");
        assert!(xml.contains("<LastModified>1970-01-01T00:00:01.000Z</LastModified>"), "{xml}");
        assert_eq!(xml.matches("<ETag>&quot;").count(), 2, "delete markers have none");
    }
}
