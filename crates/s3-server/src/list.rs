//! Listing the objects of a bucket, in the three forms S3 has for it.

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use haul_file_store::{ListPage, ListRequest, Listed, ObjectInfo};
use s3s::dto::{
    ListObjectVersionsInput, ListObjectVersionsOutput, ListObjectsInput, ListObjectsOutput,
    ListObjectsV2Input, ListObjectsV2Output, Object, ObjectStorageClass, ObjectVersion,
    ObjectVersionStorageClass, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::bucket::owner;
use crate::errors::{from_store, refuse};
use crate::names::Names;
use crate::read::{etag, length};
use crate::service::Haul;

/// The most lines of one answer, as in S3.
pub(crate) const LINES_MAX: usize = 1000;

pub(crate) async fn list_objects(
    haul: &Haul,
    request: S3Request<ListObjectsInput>,
) -> S3Result<ListObjectsOutput> {
    let ListObjectsInput { bucket, delimiter, encoding_type, marker, max_keys, prefix, .. } =
        request.input;
    let names = Names::of(encoding_type)?;
    let query = Query::of(bucket.clone(), prefix, delimiter, marker.clone(), max_keys)?;
    let (query, page) = query.run(haul).await?;
    // Without a delimiter, S3 leaves it to the client to go on from the last key.
    let next = page.next().filter(|_| query.delimiter.is_some());
    let next_marker = next.map(|name| names.tell(name));
    let is_truncated = Some(page.0.more);
    let (contents, prefixes) = page.split();
    Ok(ListObjectsOutput {
        name: Some(bucket),
        prefix: Some(names.tell(&query.prefix)),
        marker: Some(names.tell(marker.as_deref().unwrap_or_default())),
        max_keys: Some(query.max_keys),
        is_truncated,
        contents: Some(contents.into_iter().map(|info| object(&names, info, true)).collect()),
        common_prefixes: Some(names.prefixes(prefixes)),
        delimiter: query.delimiter.as_deref().map(|delimiter| names.tell(delimiter)),
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
    let names = Names::of(input.encoding_type)?;
    let after = match input.continuation_token.as_deref() {
        None | Some("") => input.start_after.clone(),
        Some(token) => Some(from_token(token)?),
    };
    let query =
        Query::of(input.bucket.clone(), input.prefix, input.delimiter, after, input.max_keys)?;
    let (query, page) = query.run(haul).await?;
    let with_owner = input.fetch_owner == Some(true);
    let next_continuation_token = page.next().map(|name| BASE64.encode_to_string(name));
    let is_truncated = Some(page.0.more);
    let key_count = i32::try_from(page.0.lines.len()).ok();
    let (contents, prefixes) = page.split();
    Ok(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(names.tell(&query.prefix)),
        max_keys: Some(query.max_keys),
        key_count,
        continuation_token: input.continuation_token,
        is_truncated,
        next_continuation_token,
        contents: Some(contents.into_iter().map(|info| object(&names, info, with_owner)).collect()),
        common_prefixes: Some(names.prefixes(prefixes)),
        delimiter: query.delimiter.as_deref().map(|delimiter| names.tell(delimiter)),
        encoding_type: names.encoding_type(),
        start_after: input.start_after.as_deref().map(|after| names.tell(after)),
        request_charged: None,
    })
}

/// Every object is the latest of its versions, and the only one: "null".
pub(crate) async fn list_object_versions(
    haul: &Haul,
    request: S3Request<ListObjectVersionsInput>,
) -> S3Result<ListObjectVersionsOutput> {
    let input = request.input;
    let names = Names::of(input.encoding_type)?;
    let after = input.key_marker.clone();
    let query =
        Query::of(input.bucket.clone(), input.prefix, input.delimiter, after, input.max_keys)?;
    let (query, page) = query.run(haul).await?;
    let next_key_marker = page.next().map(|name| names.tell(name));
    let next_version_id_marker = next_key_marker.as_ref().map(|_| "null".to_owned());
    let is_truncated = Some(page.0.more);
    let (contents, prefixes) = page.split();
    Ok(ListObjectVersionsOutput {
        common_prefixes: Some(names.prefixes(prefixes)),
        delimiter: query.delimiter.as_deref().map(|delimiter| names.tell(delimiter)),
        encoding_type: names.encoding_type(),
        is_truncated,
        key_marker: Some(names.tell(input.key_marker.as_deref().unwrap_or_default())),
        max_keys: Some(query.max_keys),
        name: Some(input.bucket),
        next_key_marker,
        next_version_id_marker,
        prefix: Some(names.tell(&query.prefix)),
        version_id_marker: input.version_id_marker,
        versions: Some(contents.into_iter().map(|info| version(&names, info)).collect()),
        ..ListObjectVersionsOutput::default()
    })
}

/// What is asked, whatever the form.
struct Query {
    bucket: String,
    prefix: String,
    delimiter: Option<String>,
    after: Option<String>,
    max_keys: i32,
    limit: usize,
}

impl Query {
    fn of(
        bucket: String,
        prefix: Option<String>,
        delimiter: Option<String>,
        after: Option<String>,
        max_keys: Option<i32>,
    ) -> S3Result<Self> {
        let (max_keys, limit) = lines(max_keys, "max-keys")?;
        Ok(Self {
            bucket,
            prefix: prefix.unwrap_or_default(),
            delimiter: delimiter.filter(|delimiter| !delimiter.is_empty()),
            after: after.filter(|after| !after.is_empty()),
            max_keys,
            limit,
        })
    }

    async fn run(self, haul: &Haul) -> S3Result<(Self, Page)> {
        haul.blocking(move |store| {
            if self.limit == 0 {
                // Nothing is left out of an answer that was not to have anything.
                store.bucket(&self.bucket).map_err(from_store)?;
                return Ok((self, Page(ListPage::default())));
            }
            let request = ListRequest {
                prefix: &self.prefix,
                delimiter: self.delimiter.as_deref(),
                after: self.after.as_deref(),
                limit: self.limit,
            };
            let page = store.list(&self.bucket, &request).map_err(from_store)?;
            Ok((self, Page(page)))
        })
        .await
    }
}

/// One page.
struct Page(ListPage);

impl Page {
    /// The name to go on after, if there is more.
    fn next(&self) -> Option<&str> {
        self.0.lines.last().filter(|_| self.0.more).map(Listed::name)
    }

    fn split(self) -> (Vec<ObjectInfo>, Vec<String>) {
        let (mut objects, mut prefixes) = (Vec::new(), Vec::new());
        for line in self.0.lines {
            match line {
                Listed::Object(info) => objects.push(info),
                Listed::Prefix(prefix) => prefixes.push(prefix),
            }
        }
        (objects, prefixes)
    }
}

/// The number of lines asked for, as it is told and as it is used.
pub(crate) fn lines(asked: Option<i32>, name: &str) -> S3Result<(i32, usize)> {
    const MOST: i32 = 1000;
    let told = asked.unwrap_or(MOST).min(MOST);
    match usize::try_from(told) {
        Ok(limit) => Ok((told, limit.min(LINES_MAX))),
        Err(_) => {
            let message = format!("{name} must not be negative");
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
    }
}

fn from_token(token: &str) -> S3Result<String> {
    let name = BASE64.decode_to_vec(token).ok().and_then(|name| String::from_utf8(name).ok());
    name.ok_or_else(|| {
        refuse(S3ErrorCode::InvalidArgument, "The continuation token is not one of ours")
    })
}

fn object(names: &Names, info: ObjectInfo, with_owner: bool) -> Object {
    Object {
        e_tag: Some(etag(info.etag)),
        key: Some(names.tell(&info.key)),
        last_modified: Some(Timestamp::from(info.modified)),
        owner: with_owner.then(owner),
        size: Some(length(info.bytes)),
        storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
        ..Object::default()
    }
}

fn version(names: &Names, info: ObjectInfo) -> ObjectVersion {
    let class = ObjectVersionStorageClass::from_static(ObjectVersionStorageClass::STANDARD);
    ObjectVersion {
        e_tag: Some(etag(info.etag)),
        is_latest: Some(true),
        key: Some(names.tell(&info.key)),
        last_modified: Some(Timestamp::from(info.modified)),
        owner: Some(owner()),
        size: Some(length(info.bytes)),
        storage_class: Some(class),
        version_id: Some("null".to_owned()),
        ..ObjectVersion::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_tokens_read_back() {
        for name in ["a", "b/ä\u{1}", "?&="] {
            assert_eq!(from_token(&BASE64.encode_to_string(name)).unwrap(), name);
        }
        assert_eq!(from_token("!").unwrap_err().code().as_str(), "InvalidArgument");
    }

    #[test]
    fn the_number_of_lines_is_capped_and_never_negative() {
        assert_eq!(lines(None, "x").unwrap(), (1000, 1000));
        assert_eq!(lines(Some(0), "x").unwrap(), (0, 0));
        assert_eq!(lines(Some(5000), "x").unwrap(), (1000, 1000));
        assert!(lines(Some(-1), "x").is_err());
    }
}
