//! Lifecycle configurations in files: the XML of the S3 API, or the JSON of the AWS CLI. Pure.

use haul_file_store::Lifecycle;
use s3s::dto::{self, BucketLifecycleConfiguration, Timestamp, TimestampFormat};
use s3s::xml::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{parse, render};
use crate::error::{Error, Result};

/// Parses a lifecycle configuration: XML of the S3 API (`<LifecycleConfiguration>…`), or JSON of
/// the AWS CLI (`{"Rules": […]}`).
///
/// # Errors
/// [`Error::Lifecycle`], with the error code of the corresponding S3 request.
pub fn lifecycle_from_document(text: &str) -> Result<Lifecycle> {
    let malformed = |message: String| Error::Lifecycle { code: "MalformedXML".to_owned(), message };
    let xml = if text.trim_start().starts_with('{') {
        let json = serde_json::from_str(text)
            .map_err(|error| malformed(format!("the JSON is malformed: {error}")))?;
        xml_of_json(&json).ok_or_else(|| malformed("expected {\"Rules\": [...]}".to_owned()))?
    } else {
        text.to_owned()
    };
    let mut input = Deserializer::new(xml.as_bytes());
    let configuration = BucketLifecycleConfiguration::deserialize(&mut input)
        .and_then(|configuration| input.expect_eof().map(|()| configuration))
        .map_err(|error| malformed(format!("not a lifecycle configuration: {error}")))?;
    parse::lifecycle(configuration.rules).map_err(|error| Error::Lifecycle {
        code: error.code().as_str().to_owned(),
        message: error.message().unwrap_or_default().to_owned(),
    })
}

/// Returns a lifecycle configuration as XML of the S3 API.
#[must_use]
pub fn lifecycle_to_xml(lifecycle: &Lifecycle) -> String {
    let mut xml = Vec::new();
    let rules = render::rules(lifecycle);
    let written = BucketLifecycleConfiguration { rules }.serialize(&mut Serializer::new(&mut xml));
    debug_assert!(written.is_ok(), "writing to memory cannot fail");
    String::from_utf8(xml).unwrap_or_default()
}

/// Returns a lifecycle configuration as JSON of the AWS CLI.
#[must_use]
pub fn lifecycle_to_json(lifecycle: &Lifecycle) -> Value {
    let rules: Vec<Value> = render::rules(lifecycle).iter().map(rule_to_json).collect();
    json!({ "Rules": rules })
}

fn rule_to_json(rule: &dto::LifecycleRule) -> Value {
    let filter = rule.filter.as_ref().map(|filter| {
        let and = filter.and.as_ref().map(|and| {
            conditions(&[
                ("Prefix", and.prefix.clone().map(Value::from)),
                ("ObjectSizeGreaterThan", and.object_size_greater_than.map(Value::from)),
                ("ObjectSizeLessThan", and.object_size_less_than.map(Value::from)),
                ("Tags", and.tags.as_ref().map(|tags| tags.iter().map(tag_to_json).collect())),
            ])
        });
        conditions(&[
            ("Prefix", filter.prefix.clone().map(Value::from)),
            ("ObjectSizeGreaterThan", filter.object_size_greater_than.map(Value::from)),
            ("ObjectSizeLessThan", filter.object_size_less_than.map(Value::from)),
            ("Tag", filter.tag.as_ref().map(tag_to_json)),
            ("And", and),
        ])
    });
    let expiration = rule.expiration.as_ref().map(|expiration| {
        let date = expiration.date.as_ref().map(|date| Value::from(date_time(date)));
        conditions(&[
            ("Days", expiration.days.map(Value::from)),
            ("Date", date),
            ("ExpiredObjectDeleteMarker", expiration.expired_object_delete_marker.map(Value::from)),
        ])
    });
    let noncurrent = rule.noncurrent_version_expiration.as_ref().map(|noncurrent| {
        conditions(&[
            ("NoncurrentDays", noncurrent.noncurrent_days.map(Value::from)),
            ("NewerNoncurrentVersions", noncurrent.newer_noncurrent_versions.map(Value::from)),
        ])
    });
    let abort = rule.abort_incomplete_multipart_upload.as_ref();
    let abort = abort.map(|abort| json!({ "DaysAfterInitiation": abort.days_after_initiation }));
    conditions(&[
        ("ID", rule.id.clone().map(Value::from)),
        ("Status", Some(Value::from(rule.status.as_str()))),
        ("Prefix", rule.prefix.clone().map(Value::from)),
        ("Filter", filter),
        ("Expiration", expiration),
        ("NoncurrentVersionExpiration", noncurrent),
        ("AbortIncompleteMultipartUpload", abort),
    ])
}

fn tag_to_json(tag: &dto::Tag) -> Value {
    json!({ "Key": tag.key, "Value": tag.value })
}

/// Returns a JSON object with those members that have a value.
fn conditions(members: &[(&str, Option<Value>)]) -> Value {
    let given =
        members.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    Value::Object(given.collect::<Map<_, _>>())
}

fn date_time(date: &Timestamp) -> String {
    let mut text = Vec::new();
    let written = date.format(TimestampFormat::DateTime, &mut text);
    debug_assert!(written.is_ok(), "the date was parsed");
    String::from_utf8(text).unwrap_or_default()
}

/// Converts JSON of the AWS CLI to XML: each member becomes an element, and each item of a list
/// becomes an element whose name is the singular of the list's name.
fn xml_of_json(json: &Value) -> Option<String> {
    let rules = json.as_object()?.get("Rules")?;
    let mut xml = String::from("<LifecycleConfiguration>");
    put_element(&mut xml, "Rules", rules)?;
    xml.push_str("</LifecycleConfiguration>");
    Some(xml)
}

fn put_element(xml: &mut String, name: &str, value: &Value) -> Option<()> {
    if let Value::Array(items) = value {
        let singular = name.strip_suffix('s')?;
        return items.iter().try_for_each(|item| put_element(xml, singular, item));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    xml.push_str(&format!("<{name}>"));
    match value {
        Value::Object(members) => {
            members.iter().try_for_each(|(name, value)| put_element(xml, name, value))?;
        }
        Value::String(text) => xml.push_str(&escape(text)),
        Value::Number(_) | Value::Bool(_) => xml.push_str(&value.to_string()),
        Value::Null | Value::Array(_) => return None,
    }
    xml.push_str(&format!("</{name}>"));
    Some(())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
