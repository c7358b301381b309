//! Listing of the multipart uploads of a bucket that are neither completed nor aborted.

use haul_file_store::UploadInfo;
use s3s::dto::{
    Initiator, ListMultipartUploadsInput, ListMultipartUploadsOutput, MultipartUpload, Owner,
    StorageClass, Timestamp,
};
use s3s::{S3Request, S3Result};

use crate::access::caller::owner_named;
use crate::acl::rules::{ListRules, rules_of};
use crate::errors::from_store;
use crate::objects::listing::page::{NameEncoding, page_limit};
use crate::service::Haul;

pub(crate) async fn list_multipart_uploads(
    haul: &Haul,
    request: S3Request<ListMultipartUploadsInput>,
) -> S3Result<ListMultipartUploadsOutput> {
    let ListMultipartUploadsInput {
        bucket,
        delimiter,
        encoding_type,
        key_marker,
        max_uploads,
        prefix,
        upload_id_marker,
        ..
    } = request.input;
    let names = NameEncoding::parse(encoding_type)?;
    let (max_uploads, limit) = page_limit(max_uploads, "max-uploads")?;
    let (prefix, key_marker) = (prefix.unwrap_or_default(), key_marker.unwrap_or_default());
    let delimiter = delimiter.filter(|delimiter| !delimiter.is_empty());
    let (all, rules) = haul
        .blocking({
            let bucket = bucket.clone();
            move |store| {
                Ok((store.uploads(&bucket).map_err(from_store)?, rules_of(store, &bucket)?))
            }
        })
        .await?;
    let query = UploadQuery {
        prefix: &prefix,
        delimiter: delimiter.as_deref(),
        key_marker: &key_marker,
        id_marker: upload_id_marker.as_deref().filter(|_| !key_marker.is_empty()),
        limit,
    };
    let page = query.page(all);
    let last = page.next.as_ref();
    Ok(ListMultipartUploadsOutput {
        bucket: Some(bucket),
        common_prefixes: Some(names.prefixes(page.prefixes)),
        delimiter: delimiter.as_deref().map(|delimiter| names.encode(delimiter)),
        encoding_type: names.encoding_type(),
        is_truncated: Some(last.is_some()),
        key_marker: Some(names.encode(&key_marker)),
        max_uploads: Some(max_uploads),
        next_key_marker: last.map(|(key, _)| names.encode(key)),
        next_upload_id_marker: last.map(|(_, id)| id.clone()),
        prefix: Some(names.encode(&prefix)),
        request_charged: None,
        upload_id_marker,
        uploads: Some(
            page.uploads.into_iter().map(|upload| shown(&names, upload, &rules)).collect(),
        ),
    })
}

fn shown(names: &NameEncoding, upload: UploadInfo, rules: &ListRules) -> MultipartUpload {
    let owner = owner_named(Some(&rules.object(&upload.attributes).owner));
    let Owner { display_name, id } = owner.clone();
    MultipartUpload {
        initiated: Some(Timestamp::from(upload.started)),
        initiator: Some(Initiator { display_name, id }),
        key: Some(names.encode(&upload.key)),
        owner: Some(owner),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        upload_id: Some(upload.id),
        ..MultipartUpload::default()
    }
}

/// The parameters of a listing.
struct UploadQuery<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
    key_marker: &'a str,
    id_marker: Option<&'a str>,
    limit: usize,
}

/// A page of a listing, and the markers of the next page: key and upload ID.
#[derive(Debug, Default)]
struct Page {
    uploads: Vec<UploadInfo>,
    prefixes: Vec<String>,
    next: Option<(String, String)>,
}

impl UploadQuery<'_> {
    /// Returns a page of `all`, which is sorted by key and upload ID. Pure.
    fn page(&self, all: Vec<UploadInfo>) -> Page {
        let mut page = Page::default();
        let mut last = (String::new(), String::new());
        for upload in all {
            let Some(rest) = upload.key.strip_prefix(self.prefix) else { continue };
            let folded = self.delimiter.and_then(|delimiter| {
                let end = rest.find(delimiter)? + delimiter.len();
                Some(format!("{}{}", self.prefix, &rest[..end]))
            });
            if self.is_past(&upload, folded.as_deref())
                || (folded.is_some() && folded.as_ref() == page.prefixes.last())
            {
                continue;
            }
            if page.uploads.len() + page.prefixes.len() == self.limit {
                page.next = (self.limit > 0).then_some(last);
                return page;
            }
            match folded {
                Some(prefix) => {
                    last = (prefix.clone(), String::new());
                    page.prefixes.push(prefix);
                }
                None => {
                    last = (upload.key.clone(), upload.id.clone());
                    page.uploads.push(upload);
                }
            }
        }
        page
    }

    /// Returns `true` if an earlier page contains the upload, or the common prefix `folded`.
    fn is_past(&self, upload: &UploadInfo, folded: Option<&str>) -> bool {
        if self.key_marker.is_empty() {
            return false;
        }
        match (folded, self.id_marker) {
            (Some(prefix), _) => prefix <= self.key_marker,
            (None, Some(id)) => (upload.key.as_str(), upload.id.as_str()) <= (self.key_marker, id),
            (None, None) => upload.key.as_str() <= self.key_marker,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<UploadInfo> {
        let upload = |(key, id): (&str, &str)| UploadInfo {
            id: id.into(),
            key: key.into(),
            started: std::time::SystemTime::UNIX_EPOCH,
            attributes: haul_file_store::Attributes::new(),
        };
        [("a", "1"), ("a", "2"), ("b/x", "3"), ("b/y", "4"), ("c", "5")].map(upload).into()
    }

    #[test]
    fn pages_of_any_size_list_every_upload_once() {
        for limit in 1..6 {
            let (mut key, mut id) = (String::new(), String::new());
            let mut seen = Vec::new();
            for _ in 0..10 {
                let query = UploadQuery {
                    prefix: "",
                    delimiter: Some("/"),
                    key_marker: &key,
                    id_marker: (!id.is_empty()).then_some(id.as_str()),
                    limit,
                };
                let page = query.page(all());
                assert!(page.uploads.len() + page.prefixes.len() <= limit);
                seen.extend(page.uploads.into_iter().map(|upload| upload.id));
                seen.extend(page.prefixes);
                let Some(next) = page.next else { break };
                (key, id) = next;
            }
            seen.sort();
            assert_eq!(seen, ["1", "2", "5", "b/"], "{limit}");
        }
    }

    #[test]
    fn prefix_restricts_the_listing() {
        let query = UploadQuery {
            prefix: "b/",
            delimiter: None,
            key_marker: "",
            id_marker: None,
            limit: 9,
        };
        let ids: Vec<_> = query.page(all()).uploads.into_iter().map(|upload| upload.id).collect();
        assert_eq!(ids, ["3", "4"]);
    }
}
