//! Listings of the objects of a bucket, in both forms that S3 defines.

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use haul_file_store::{ListEntry, ListPage, ListRequest, ObjectInfo};
use s3s::dto::{
    ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output, Object,
    ObjectStorageClass, Owner, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::caller::owner_of;
use crate::encryption::content::listed_bytes;
use crate::errors::{from_store, refuse};
use crate::objects::listing::page::{NameEncoding, page_limit};
use crate::objects::read::{etag, length};
use crate::service::Haul;

pub(crate) async fn list_objects(
    haul: &Haul,
    request: S3Request<ListObjectsInput>,
) -> S3Result<ListObjectsOutput> {
    let ListObjectsInput { bucket, delimiter, encoding_type, marker, max_keys, prefix, .. } =
        request.input;
    let names = NameEncoding::parse(encoding_type)?;
    let query = ListQuery::of(bucket.clone(), prefix, delimiter, marker.clone(), max_keys)?;
    let (query, page, owner) = query.run(haul).await?;
    // Without a delimiter, S3 returns no marker: the client continues after the last key.
    let next = page.next().filter(|_| query.delimiter.is_some());
    let next_marker = next.map(|name| names.encode(name));
    let is_truncated = Some(page.0.more);
    let (contents, prefixes) = page.split();
    Ok(ListObjectsOutput {
        name: Some(bucket),
        prefix: Some(names.encode(&query.prefix)),
        marker: Some(names.encode(marker.as_deref().unwrap_or_default())),
        max_keys: Some(query.max_keys),
        is_truncated,
        contents: Some(
            contents.into_iter().map(|info| object(&names, info, Some(&owner))).collect(),
        ),
        common_prefixes: Some(names.prefixes(prefixes)),
        delimiter: query.delimiter.as_deref().map(|delimiter| names.encode(delimiter)),
        next_marker,
        encoding_type: names.encoding_type(),
        request_charged: None,
    })
}

pub(crate) async fn list_objects_v2(
    haul: &Haul,
    request: S3Request<ListObjectsV2Input>,
) -> S3Result<ListObjectsV2Output> {
    let input = request.input;
    let names = NameEncoding::parse(input.encoding_type)?;
    let after = match input.continuation_token.as_deref() {
        None | Some("") => input.start_after.clone(),
        Some(token) => Some(from_token(token)?),
    };
    let query =
        ListQuery::of(input.bucket.clone(), input.prefix, input.delimiter, after, input.max_keys)?;
    let (query, page, owner) = query.run(haul).await?;
    let owner = Some(&owner).filter(|_| input.fetch_owner == Some(true));
    let next_continuation_token = page.next().map(|name| BASE64.encode_to_string(name));
    let is_truncated = Some(page.0.more);
    let key_count = i32::try_from(page.0.entries.len()).ok();
    let (contents, prefixes) = page.split();
    Ok(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(names.encode(&query.prefix)),
        max_keys: Some(query.max_keys),
        key_count,
        continuation_token: input.continuation_token,
        is_truncated,
        next_continuation_token,
        contents: Some(contents.into_iter().map(|info| object(&names, info, owner)).collect()),
        common_prefixes: Some(names.prefixes(prefixes)),
        delimiter: query.delimiter.as_deref().map(|delimiter| names.encode(delimiter)),
        encoding_type: names.encoding_type(),
        start_after: input.start_after.as_deref().map(|after| names.encode(after)),
        request_charged: None,
    })
}

/// The parameters that all forms of listings have.
struct ListQuery {
    bucket: String,
    prefix: String,
    delimiter: Option<String>,
    after: Option<String>,
    max_keys: i32,
    limit: usize,
}

impl ListQuery {
    fn of(
        bucket: String,
        prefix: Option<String>,
        delimiter: Option<String>,
        after: Option<String>,
        max_keys: Option<i32>,
    ) -> S3Result<Self> {
        let (max_keys, limit) = page_limit(max_keys, "max-keys")?;
        Ok(Self {
            bucket,
            prefix: prefix.unwrap_or_default(),
            delimiter: delimiter.filter(|delimiter| !delimiter.is_empty()),
            after: after.filter(|after| !after.is_empty()),
            max_keys,
            limit,
        })
    }

    /// Returns the parameters, a page and the owner of the bucket.
    async fn run(self, haul: &Haul) -> S3Result<(Self, Page, Owner)> {
        haul.blocking(move |store| {
            let owner = owner_of(store, &self.bucket);
            if self.limit == 0 {
                // A page without entries is never truncated.
                store.bucket(&self.bucket).map_err(from_store)?;
                return Ok((self, Page(ListPage::default()), owner));
            }
            let request = ListRequest {
                prefix: &self.prefix,
                delimiter: self.delimiter.as_deref(),
                after: self.after.as_deref(),
                limit: self.limit,
            };
            let mut page = store.list(&self.bucket, &request).map_err(from_store)?;
            for entry in &mut page.entries {
                if let ListEntry::Object(info) = entry {
                    info.bytes = listed_bytes(store, &self.bucket, info, None)?;
                }
            }
            Ok((self, Page(page), owner))
        })
        .await
    }
}

/// A page of a listing.
struct Page(ListPage);

impl Page {
    /// Returns the name after which the next page starts, if the listing is truncated.
    fn next(&self) -> Option<&str> {
        self.0.entries.last().filter(|_| self.0.more).map(ListEntry::name)
    }

    fn split(self) -> (Vec<ObjectInfo>, Vec<String>) {
        let (mut objects, mut prefixes) = (Vec::new(), Vec::new());
        for line in self.0.entries {
            match line {
                ListEntry::Object(info) => objects.push(info),
                ListEntry::Prefix(prefix) => prefixes.push(prefix),
            }
        }
        (objects, prefixes)
    }
}

fn from_token(token: &str) -> S3Result<String> {
    let name = BASE64.decode_to_vec(token).ok().and_then(|name| String::from_utf8(name).ok());
    name.ok_or_else(|| refuse(S3ErrorCode::InvalidArgument, "The continuation token is malformed"))
}

fn object(names: &NameEncoding, info: ObjectInfo, owner: Option<&Owner>) -> Object {
    Object {
        e_tag: Some(etag(info.etag)),
        key: Some(names.encode(&info.key)),
        last_modified: Some(Timestamp::from(info.modified)),
        owner: owner.cloned(),
        size: Some(length(info.bytes)),
        storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
        ..Object::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_token_round_trips() {
        for name in ["a", "b/ä\u{1}", "?&="] {
            assert_eq!(from_token(&BASE64.encode_to_string(name)).unwrap(), name);
        }
        assert_eq!(from_token("!").unwrap_err().code().as_str(), "InvalidArgument");
    }
}
