//! The tags of an object. They are stored in one attribute, in the format of the header
//! `x-amz-tagging`.

use std::collections::BTreeMap;

use haul_file_store::{Attributes, Precondition, Store, VersionId};
use s3s::dto::{
    DeleteObjectTaggingInput, DeleteObjectTaggingOutput, GetObjectTaggingInput,
    GetObjectTaggingOutput, PutObjectTaggingInput, PutObjectTaggingOutput, Tag,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::errors::{from_store, refuse};
use crate::objects::{attributes, versions};
use crate::service::Haul;

const ATTRIBUTE: &str = "x-amz-tagging";
const TAGS_MAX: usize = 10;
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;

/// Tags, sorted by key.
pub(crate) type Tags = BTreeMap<String, String>;

pub(crate) async fn get_object_tagging(
    haul: &Haul,
    request: S3Request<GetObjectTaggingInput>,
) -> S3Result<GetObjectTaggingOutput> {
    let GetObjectTaggingInput { bucket, key, version_id, .. } = request.input;
    let version = versions::parse(version_id.as_deref())?;
    let (tags, version_id) = haul
        .blocking(move |store| {
            let object = versions::head(store, &bucket, &key, version)?;
            let version_id = versions::shown(store, &bucket, object.info.version_id);
            Ok((from_attributes(&object.attributes), version_id))
        })
        .await?;
    let tag_set =
        tags.into_iter().map(|(key, value)| Tag { key: Some(key), value: Some(value) }).collect();
    Ok(GetObjectTaggingOutput { tag_set, version_id })
}

pub(crate) async fn put_object_tagging(
    haul: &Haul,
    request: S3Request<PutObjectTaggingInput>,
) -> S3Result<PutObjectTaggingOutput> {
    let PutObjectTaggingInput { bucket, key, version_id, tagging, .. } = request.input;
    let version = versions::parse(version_id.as_deref())?;
    let pairs = tagging
        .tag_set
        .into_iter()
        .map(|tag| (tag.key.unwrap_or_default(), tag.value.unwrap_or_default()));
    let tags = checked(pairs, TAGS_MAX)?;
    let replaced = haul.blocking(move |store| replace(store, &bucket, &key, version, &tags));
    Ok(PutObjectTaggingOutput { version_id: replaced.await? })
}

pub(crate) async fn delete_object_tagging(
    haul: &Haul,
    request: S3Request<DeleteObjectTaggingInput>,
) -> S3Result<DeleteObjectTaggingOutput> {
    let DeleteObjectTaggingInput { bucket, key, version_id, .. } = request.input;
    let version = versions::parse(version_id.as_deref())?;
    let replaced = haul.blocking(move |store| replace(store, &bucket, &key, version, &Tags::new()));
    Ok(DeleteObjectTaggingOutput { version_id: replaced.await? })
}

/// Replaces the tags of an object or version. In a bucket without versions, the object is copied to
/// itself, so its modification time changes. Returns the version ID of the response.
fn replace(
    store: &Store,
    bucket: &str,
    key: &str,
    version: Option<VersionId>,
    tags: &Tags,
) -> S3Result<Option<String>> {
    let object = versions::head(store, bucket, key, version)?;
    let mut changed = object.attributes;
    set(&mut changed, tags);
    attributes::check(&mut changed)?;
    let same = Precondition::Matches(object.info.etag);
    let replaced = match versions::has_versions(store, bucket) {
        // A copy would be another version.
        true => {
            let version = Some(object.info.version_id);
            store.set_attributes(bucket, key, version, &changed, &same)
        }
        // A new object with the same content has another data key, which is in the attributes.
        false if object.info.etag.is_encoded() => {
            let object = versions::get(store, bucket, key, None)?;
            let mut changed = object.attributes.clone();
            set(&mut changed, tags);
            attributes::check(&mut changed)?;
            store.copy_object(&object, (bucket, key), Some(&changed), &same)
        }
        false => store.copy((bucket, key), (bucket, key), Some(&changed), &same),
    };
    let replaced = replaced.map_err(from_store)?;
    Ok(versions::shown(store, bucket, replaced.version_id))
}

/// Parses the value of the header `x-amz-tagging`.
pub(crate) fn parse(header: &str) -> S3Result<Tags> {
    checked(form_urlencoded::parse(header.as_bytes()).into_owned(), TAGS_MAX)
}

/// Returns the tags in the attributes.
pub(crate) fn from_attributes(attributes: &Attributes) -> Tags {
    let header = attributes.get(ATTRIBUTE).unwrap_or_default();
    form_urlencoded::parse(header.as_bytes()).into_owned().collect()
}

/// Replaces the tags in the attributes.
pub(crate) fn set(attributes: &mut Attributes, tags: &Tags) {
    if tags.is_empty() {
        attributes.remove(ATTRIBUTE);
    } else {
        let mut header = form_urlencoded::Serializer::new(String::new());
        attributes.set(ATTRIBUTE, header.extend_pairs(tags).finish());
    }
}

/// Returns the tags if there are at most `count_max` of them and all are valid.
pub(crate) fn checked(
    pairs: impl Iterator<Item = (String, String)>,
    count_max: usize,
) -> S3Result<Tags> {
    let invalid = |message: &str| Err(refuse(S3ErrorCode::InvalidTag, message));
    let mut tags = Tags::new();
    for (key, value) in pairs {
        if key.is_empty() || key.chars().count() > KEY_CHARS_MAX {
            return invalid("A tag key must have 1 to 128 characters");
        }
        if value.chars().count() > VALUE_CHARS_MAX {
            return invalid("A tag value must have at most 256 characters");
        }
        if tags.insert(key, value).is_some() {
            return invalid("The keys of tags must be unique");
        }
    }
    if tags.len() > count_max {
        return invalid(&format!("There can be at most {count_max} tags"));
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_round_trip_through_the_attribute() {
        let tags = parse("b=2&a=1%20x%26&c").unwrap();
        let mut attributes = Attributes::new();
        set(&mut attributes, &tags);
        assert_eq!(from_attributes(&attributes), tags);
        assert_eq!(tags["a"], "1 x&");
        set(&mut attributes, &Tags::new());
        assert_eq!(attributes, Attributes::new());
    }

    #[test]
    fn tags_beyond_the_limits_are_refused() {
        let many: Vec<_> = (0..=TAGS_MAX).map(|i| format!("k{i}=v")).collect();
        let long_key = format!("{}=v", "k".repeat(KEY_CHARS_MAX + 1));
        let long_value = format!("k={}", "v".repeat(VALUE_CHARS_MAX + 1));
        for header in [many.join("&").as_str(), "a=1&a=2", "=1", &long_key, &long_value] {
            assert_eq!(parse(header).unwrap_err().code().as_str(), "InvalidTag", "{header}");
        }
    }
}
