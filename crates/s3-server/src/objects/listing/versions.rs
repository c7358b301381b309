//! Listings of versions.

use haul_file_store::{ListVersionsRequest, VersionInfo, VersionListEntry, VersionListPage};
use s3s::dto::{
    DeleteMarkerEntry, ListObjectVersionsInput, ListObjectVersionsOutput, ObjectVersion,
    ObjectVersionStorageClass, Owner, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::caller::owner_of;
use crate::encryption::content::listed_bytes;
use crate::errors::{from_store, refuse};
use crate::objects::listing::page::{NameEncoding, page_limit};
use crate::objects::read::{etag, length};
use crate::objects::versions::parse;
use crate::service::Haul;

pub(crate) async fn list_object_versions(
    haul: &Haul,
    request: S3Request<ListObjectVersionsInput>,
) -> S3Result<ListObjectVersionsOutput> {
    let input = request.input;
    let names = NameEncoding::parse(input.encoding_type)?;
    let (max_keys, limit) = page_limit(input.max_keys, "max-keys")?;
    let after = input.key_marker.clone().filter(|after| !after.is_empty());
    let after_version = parse(input.version_id_marker.as_deref())?;
    if after_version.is_some() && after.is_none() {
        let message = "A version-id marker cannot be specified without a key marker";
        return Err(refuse(S3ErrorCode::InvalidArgument, message));
    }
    let delimiter = input.delimiter.filter(|delimiter| !delimiter.is_empty());
    let (bucket, prefix) = (input.bucket.clone(), input.prefix.unwrap_or_default());
    let (page, prefix, delimiter, owner) = haul
        .blocking(move |store| {
            let request = ListVersionsRequest {
                prefix: &prefix,
                delimiter: delimiter.as_deref(),
                after: after.as_deref(),
                after_version,
                limit,
            };
            let mut page = store.list_versions(&bucket, &request).map_err(from_store)?;
            for entry in &mut page.entries {
                if let VersionListEntry::Version(VersionInfo { info, .. }) = entry {
                    info.bytes = listed_bytes(store, &bucket, info, Some(info.version_id))?;
                }
            }
            Ok((page, prefix, delimiter, owner_of(store, &bucket)))
        })
        .await?;
    let (next_key_marker, next_version_id_marker) = next_markers(&page, &names);
    let mut output = ListObjectVersionsOutput {
        delimiter: delimiter.as_deref().map(|delimiter| names.encode(delimiter)),
        encoding_type: names.encoding_type(),
        is_truncated: Some(page.more),
        key_marker: Some(names.encode(input.key_marker.as_deref().unwrap_or_default())),
        max_keys: Some(max_keys),
        name: Some(input.bucket),
        next_key_marker,
        next_version_id_marker,
        prefix: Some(names.encode(&prefix)),
        version_id_marker: input.version_id_marker,
        ..ListObjectVersionsOutput::default()
    };
    let (mut versions, mut markers, mut prefixes) = (Vec::new(), Vec::new(), Vec::new());
    for entry in page.entries {
        match entry {
            VersionListEntry::Version(marker) if marker.is_delete_marker => {
                markers.push(delete_marker(&names, &marker, &owner));
            }
            VersionListEntry::Version(found) => versions.push(version(&names, &found, &owner)),
            VersionListEntry::Prefix(prefix) => prefixes.push(prefix),
        }
    }
    output.common_prefixes = Some(names.prefixes(prefixes));
    (output.versions, output.delete_markers) = (Some(versions), Some(markers));
    Ok(output)
}

/// Returns the markers after which the next page starts, if the listing is truncated.
fn next_markers(page: &VersionListPage, names: &NameEncoding) -> (Option<String>, Option<String>) {
    match page.entries.last().filter(|_| page.more) {
        Some(VersionListEntry::Version(last)) => {
            (Some(names.encode(&last.info.key)), Some(last.info.version_id.to_string()))
        }
        Some(VersionListEntry::Prefix(prefix)) => (Some(names.encode(prefix)), None),
        None => (None, None),
    }
}

fn version(names: &NameEncoding, found: &VersionInfo, owner: &Owner) -> ObjectVersion {
    let info = &found.info;
    let class = ObjectVersionStorageClass::from_static(ObjectVersionStorageClass::STANDARD);
    ObjectVersion {
        e_tag: Some(etag(info.etag)),
        is_latest: Some(found.is_latest),
        key: Some(names.encode(&info.key)),
        last_modified: Some(Timestamp::from(info.modified)),
        owner: Some(owner.clone()),
        size: Some(length(info.bytes)),
        storage_class: Some(class),
        version_id: Some(info.version_id.to_string()),
        ..ObjectVersion::default()
    }
}

fn delete_marker(names: &NameEncoding, marker: &VersionInfo, owner: &Owner) -> DeleteMarkerEntry {
    DeleteMarkerEntry {
        is_latest: Some(marker.is_latest),
        key: Some(names.encode(&marker.info.key)),
        last_modified: Some(Timestamp::from(marker.info.modified)),
        owner: Some(owner.clone()),
        version_id: Some(marker.info.version_id.to_string()),
    }
}
