//! Listing of the multipart uploads of a bucket that are neither completed nor aborted.

use haul_file_store::{
    Error, ListUploadsRequest, Store, UploadInfo, UploadListEntry, UploadListPage,
};
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
    let read = {
        let (bucket, prefix, delimiter) = (bucket.clone(), prefix.clone(), delimiter.clone());
        let (key_marker, id_marker) = (key_marker.clone(), upload_id_marker.clone());
        move |store: &Store| {
            let request = ListUploadsRequest {
                prefix: &prefix,
                delimiter: delimiter.as_deref(),
                after: Some(&*key_marker).filter(|marker| !marker.is_empty()),
                after_upload: id_marker.as_deref(),
                limit,
            };
            let listed = store.list_uploads(&bucket, &request).map_err(from_store)?;
            Page::read(store, &bucket, listed, &names)
        }
    };
    let page = haul.blocking(read).await?;
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
        uploads: Some(page.uploads),
    })
}

/// A page of a listing, and the markers of the next page: key and upload ID.
#[derive(Debug, Default)]
struct Page {
    uploads: Vec<MultipartUpload>,
    prefixes: Vec<String>,
    next: Option<(String, String)>,
}

impl Page {
    /// Reads the uploads of a page. Has the attributes of one upload in memory at a time: they may
    /// be long.
    fn read(
        store: &Store,
        bucket: &str,
        listed: UploadListPage,
        names: &NameEncoding,
    ) -> S3Result<Self> {
        let rules = rules_of(store, bucket)?;
        let next = listed.entries.last().filter(|_| listed.more).map(|entry| match entry {
            UploadListEntry::Upload { key, id } => (key.clone(), id.clone()),
            UploadListEntry::Prefix(prefix) => (prefix.clone(), String::new()),
        });
        let mut page = Self { next, ..Self::default() };
        for entry in listed.entries {
            match entry {
                UploadListEntry::Prefix(prefix) => page.prefixes.push(prefix),
                UploadListEntry::Upload { key, id } => match store.upload(bucket, &key, &id) {
                    Ok(upload) => page.uploads.push(shown(names, upload, &rules)),
                    // The upload was completed or aborted in the meantime.
                    Err(Error::NoSuchUpload { .. }) => {}
                    Err(error) => return Err(from_store(error)),
                },
            }
        }
        Ok(page)
    }
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
