//! Lists a bucket's multipart uploads that are neither completed nor aborted.

use haul_file_store::{Error, ListUploadsRequest, UploadInfo, UploadListEntry};
use haul_store_pool::Pool;

use crate::acl::owner::owner_named;
use crate::acl::rules::{AclRules, rules_of};
use crate::answer::Answer;
use crate::body::Body;
use crate::body::checksum::{ALGORITHM_ATTRIBUTE, TYPE_ATTRIBUTE};
use crate::errors::{S3Error, S3Result, from_store, invalid_argument};
use crate::objects::listing::page::{DocumentSize, NameEncoding, page_limit};
use crate::service::Haul;
use crate::service::request::Request;
use crate::times::document_time;
use crate::uploads::name::algorithm;
use crate::xml::writer::Xml;

const ID_MARKER: &str = "upload-id-marker";

/// The number of uploads that a search for an ID reads at a time.
const SEARCH_PAGE: usize = 1000;

pub(crate) async fn list_multipart_uploads(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let parameters = Parameters::new(request)?;
    let memory = haul.reserve(request.memory.as_ref(), parameters.size.bytes()).await?;
    let list = move |store: &Pool| {
        let page = parameters.page(store)?;
        Ok((parameters, page))
    };
    let (parameters, page) = haul.blocking(list).await?;
    let Parameters { encoding, ref bucket, .. } = parameters;
    let delimiter = parameters.delimiter.as_deref().map(|delimiter| encoding.encode(delimiter));
    let next = page.next.as_ref();
    let document = Xml::document("ListMultipartUploadsResult", |xml| {
        xml.element("Bucket", bucket);
        xml.element("KeyMarker", encoding.encode(&parameters.key_marker));
        xml.optional("UploadIdMarker", request.head.query.get(ID_MARKER));
        xml.optional("NextKeyMarker", next.map(|next| encoding.encode(&next.key)));
        xml.element("Prefix", encoding.encode(&parameters.prefix));
        xml.optional("Delimiter", delimiter);
        xml.optional("NextUploadIdMarker", next.map(|next| &next.id));
        xml.element("MaxUploads", parameters.limit);
        xml.element("IsTruncated", next.is_some());
        for upload in &page.uploads {
            xml.group("Upload", |xml| upload.write(xml, encoding));
        }
        encoding.write_prefixes(xml, &page.prefixes);
        xml.optional("EncodingType", encoding.encoding_type());
    });
    Ok(Answer::xml_reserved(document, memory))
}

/// A listing's parameters.
#[derive(Debug)]
struct Parameters {
    bucket: String,
    prefix: String,
    delimiter: Option<String>,
    key_marker: String,
    /// The marker among the uploads to the key in `key_marker`. It has no effect without
    /// `key_marker`.
    id_marker: Option<String>,
    limit: usize,
    encoding: NameEncoding,
    size: DocumentSize,
}

/// An upload on a page, with its owner.
#[derive(Debug)]
struct ListedUpload {
    upload: UploadInfo,
    owner: String,
}

/// The beginning of the next page.
#[derive(Debug)]
struct Next {
    key: String,
    id: String,
}

#[derive(Debug, Default)]
struct Page {
    uploads: Vec<ListedUpload>,
    prefixes: Vec<String>,
    next: Option<Next>,
}

impl Parameters {
    fn new(request: &Request) -> S3Result<Self> {
        let query = &request.head.query;
        let limit = page_limit(query.get("max-uploads"), "max-uploads")?;
        let key_marker = query.get("key-marker").unwrap_or_default().to_owned();
        let id_marker = query.given(ID_MARKER).filter(|_| !key_marker.is_empty());
        Ok(Self {
            bucket: request.name().bucket.clone(),
            prefix: query.get("prefix").unwrap_or_default().to_owned(),
            delimiter: query.given("delimiter").map(str::to_owned),
            id_marker: id_marker.map(str::to_owned),
            key_marker,
            limit,
            encoding: NameEncoding::parse(query.get("encoding-type"))?,
            size: DocumentSize::new(limit, &request.head.target),
        })
    }

    fn page(&self, store: &Pool) -> S3Result<Page> {
        if let Some(id) = &self.id_marker {
            check_marker(store, &self.bucket, &self.key_marker, id)?;
        }
        let request = ListUploadsRequest {
            prefix: &self.prefix,
            delimiter: self.delimiter.as_deref(),
            after: Some(&*self.key_marker).filter(|marker| !marker.is_empty()),
            after_upload: self.id_marker.as_deref(),
            limit: self.limit,
        };
        let mut listed = store.list_uploads(&self.bucket, &request).map_err(from_store)?;
        let rules = rules_of(store, &self.bucket)?;
        let names = listed.entries.iter().map(|entry| match entry {
            UploadListEntry::Upload { key, .. } => &**key,
            UploadListEntry::Prefix(prefix) => prefix,
        });
        let count = self.size.fitting(self.encoding, &rules.owner, names);
        listed.more |= count < listed.entries.len();
        listed.entries.truncate(count);
        let last = listed.entries.last().filter(|_| listed.more);
        let next = last.map(|entry| match entry {
            UploadListEntry::Upload { key, id } => Next { key: key.clone(), id: id.clone() },
            UploadListEntry::Prefix(prefix) => Next { key: prefix.clone(), id: String::new() },
        });
        Page { next, ..Page::default() }.with_entries(store, &self.bucket, &rules, listed.entries)
    }
}

impl Page {
    /// Adds uploads and prefixes. Reads the uploads' attributes.
    fn with_entries(
        mut self,
        store: &Pool,
        bucket: &str,
        rules: &AclRules,
        entries: Vec<UploadListEntry>,
    ) -> S3Result<Self> {
        for entry in entries {
            match entry {
                UploadListEntry::Prefix(prefix) => self.prefixes.push(prefix),
                UploadListEntry::Upload { key, id } => match store.upload(bucket, &key, &id) {
                    Ok(upload) => self.uploads.push(ListedUpload::new(upload, rules)),
                    // The upload was completed or aborted meanwhile.
                    Err(Error::NoSuchUpload { .. }) => {}
                    Err(error) => return Err(from_store(error)),
                },
            }
        }
        Ok(self)
    }
}

impl ListedUpload {
    fn new(mut upload: UploadInfo, rules: &AclRules) -> Self {
        let owner = rules.object(&upload.attributes).owner;
        // The other attributes may be long, and are not needed.
        let kept = [ALGORITHM_ATTRIBUTE, TYPE_ATTRIBUTE];
        let kept = kept.into_iter().filter_map(|name| Some((name, upload.attributes.get(name)?)));
        upload.attributes = kept.collect();
        Self { upload, owner }
    }

    fn write(&self, xml: &mut Xml, encoding: NameEncoding) {
        let UploadInfo { id, key, started, attributes } = &self.upload;
        let owner = owner_named(Some(&self.owner));
        xml.element("Key", encoding.encode(key));
        xml.element("UploadId", id);
        owner.write(xml, "Initiator");
        owner.write(xml, "Owner");
        xml.element("StorageClass", "STANDARD");
        xml.element("Initiated", document_time(*started));
        xml.optional("ChecksumAlgorithm", algorithm(&self.upload).map(|it| it.name()));
        xml.optional("ChecksumType", attributes.get(TYPE_ATTRIBUTE));
    }
}

/// Fails if the marker is not an ID, or is the ID of an upload to another key. The ID of an upload
/// that was completed or aborted since the previous page is valid, because clients abort uploads
/// while they list them.
fn check_marker(store: &Pool, bucket: &str, key: &str, id: &str) -> S3Result<()> {
    let number = u128::from_str_radix(id, 16).ok().filter(|number| id_text(*number) == id);
    let Some(number) = number else { return Err(invalid_marker(id)) };
    // A listing begins after an ID, so it must begin after the previous ID.
    let before = id_text(number.saturating_sub(1));
    let request = ListUploadsRequest {
        prefix: key,
        delimiter: None,
        after: Some(key),
        after_upload: Some(&before),
        limit: 1,
    };
    let listed = store.list_uploads(bucket, &request).map_err(from_store)?;
    let is_marker = |entry: &UploadListEntry| match entry {
        UploadListEntry::Upload { key: found_key, id: found } => found == id && found_key == key,
        UploadListEntry::Prefix(_) => false,
    };
    if listed.entries.iter().any(is_marker) || !exists(store, bucket, id)? {
        return Ok(());
    }
    Err(invalid_marker(id))
}

/// Returns `true` if an upload to any key has this ID. Reads the names of all uploads in the
/// bucket, which are in memory.
fn exists(store: &Pool, bucket: &str, id: &str) -> S3Result<bool> {
    let mut last = None;
    loop {
        let request = ListUploadsRequest {
            prefix: "",
            delimiter: None,
            after: last.as_ref().map(|next: &Next| &*next.key),
            after_upload: last.as_ref().map(|next| &*next.id),
            limit: SEARCH_PAGE,
        };
        let listed = store.list_uploads(bucket, &request).map_err(from_store)?;
        for entry in listed.entries {
            let UploadListEntry::Upload { key, id: found } = entry else { continue };
            if found == id {
                return Ok(true);
            }
            last = Some(Next { key, id: found });
        }
        if !listed.more {
            return Ok(false);
        }
    }
}

/// Returns an ID's text in the store's format.
fn id_text(number: u128) -> String {
    format!("{number:032x}")
}

fn invalid_marker(id: &str) -> S3Error {
    invalid_argument(ID_MARKER, id, "Invalid uploadId marker")
}

#[cfg(test)]
mod tests {
    use haul_file_store::{Attributes, Options};

    use super::*;
    use crate::errors::S3ErrorCode;

    const BUCKET: &str = "bucket";

    #[test]
    fn marker_is_the_id_of_an_upload_to_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Pool::open(&[dir.path().into()], &Options::default()).unwrap();
        store.create_bucket(BUCKET).unwrap();
        let start = |key: &str| store.start_upload(BUCKET, key, &Attributes::new()).unwrap();
        let ids = ["a", "b", "b", "bc", "d"].map(start);
        let check = |key: &str, id: &str| check_marker(&store, BUCKET, key, id);
        for (key, id) in [("a", 0), ("b", 1), ("b", 2), ("bc", 3)] {
            assert!(check(key, &ids[id]).is_ok(), "{key} {id}");
        }
        for (key, id) in [
            ("b", "invalid"),
            ("b", "0b8a7d16-0d5f-4f0c-8f5e-0a2f4bd1b0a1"),
            ("b", &format!("+{}", &ids[1][1..])),
            ("b", &ids[1][1..]),
            ("b", &ids[0]),
            ("b", &ids[3]),
            ("other", &ids[1]),
        ] {
            let error = check(key, id).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidArgument, "{key} {id}");
            assert_eq!(error.field("ArgumentValue"), Some(id));
        }
        store.abort_upload(BUCKET, "b", &ids[1]).unwrap();
        assert!(check("b", &ids[1]).is_ok(), "it was aborted since the page before");
    }
}
