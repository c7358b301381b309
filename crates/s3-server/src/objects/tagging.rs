//! The tags of an object.

use haul_file_store::{Attributes, Store, Tags, VersionId};
use s3s::dto::{
    DeleteObjectTaggingInput, DeleteObjectTaggingOutput, GetObjectTaggingInput,
    GetObjectTaggingOutput, PutObjectTaggingInput, PutObjectTaggingOutput, Tag,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::errors::refuse;
use crate::objects::update::update;
use crate::objects::versions;
use crate::service::Haul;

/// The maximum number of tags of an object.
const TAGS_MAX: usize = 10;
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;

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
            Ok((object.attributes.tags(), version_id))
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

/// Replaces the tags of an object or version. Returns the version ID of the response.
fn replace(
    store: &Store,
    bucket: &str,
    key: &str,
    version: Option<VersionId>,
    tags: &Tags,
) -> S3Result<Option<String>> {
    let replaced = update(store, bucket, key, version, |attributes| {
        attributes.set_tags(tags);
        Ok(())
    })?;
    Ok(versions::shown(store, bucket, replaced.version_id))
}

/// Parses the value of the header `x-amz-tagging`.
pub(crate) fn parse(header: &str) -> S3Result<Tags> {
    checked(form_urlencoded::parse(header.as_bytes()).into_owned(), TAGS_MAX)
}

/// Returns the tags of a rule if an object can have all of them.
pub(crate) fn of_rule(pairs: impl Iterator<Item = (String, String)>) -> S3Result<Tags> {
    checked(pairs, TAGS_MAX)
}

/// Returns attributes that contain nothing but the tags of these.
pub(crate) fn alone(attributes: &Attributes) -> Attributes {
    let mut tags = Attributes::new();
    tags.set_tags(&attributes.tags());
    tags
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
        assert_eq!(tags["a"], "1 x&");
        let mut attributes = Attributes::new();
        attributes.set_tags(&tags);
        attributes.set("content-type", "text/plain");
        assert_eq!(alone(&attributes).tags(), tags);
        assert_eq!(alone(&attributes).iter().count(), 1);
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
