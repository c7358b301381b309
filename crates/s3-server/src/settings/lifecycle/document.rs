//! Lifecycle configurations in files: the S3 API's XML, or the AWS CLI's JSON. Pure.

use haul_file_store::Lifecycle;
use serde_json::{Map, Value, json};

use super::configuration::{Abort, Conditions, Filter, LifecycleConfiguration, Rule};
use super::{parse, render};
use crate::error::{Error, Result};
use crate::errors::S3Error;
use crate::times::document_time;
use crate::xml::Document;

/// Parses a lifecycle configuration: the S3 API's XML (`<LifecycleConfiguration>…`), or the AWS
/// CLI's JSON (`{"Rules": […]}`).
///
/// # Errors
/// [`Error::Lifecycle`], with the error code of the corresponding S3 request.
pub fn lifecycle_from_document(text: &str) -> Result<Lifecycle> {
    let malformed = |message: String| Error::Lifecycle { code: "MalformedXML".to_owned(), message };
    let xml = match text.trim_start_matches('\u{feff}').trim_start().chars().next() {
        Some('{') => {
            let json = serde_json::from_str(text)
                .map_err(|error| malformed(format!("the JSON is malformed: {error}")))?;
            xml_of_json(&json).ok_or_else(|| malformed("expected {\"Rules\": [...]}".to_owned()))?
        }
        Some('<') => text.to_owned(),
        _ => {
            let message = "it is not a lifecycle configuration: expected <LifecycleConfiguration> \
                           or {\"Rules\": [...]}";
            return Err(malformed(message.to_owned()));
        }
    };
    let configuration = LifecycleConfiguration::parse(xml.as_bytes()).map_err(refused)?;
    parse::lifecycle(configuration).map_err(refused)
}

fn refused(error: S3Error) -> Error {
    let (code, message) = (error.code().as_str().to_owned(), error.message().to_owned());
    Error::Lifecycle { code, message }
}

/// Returns a lifecycle configuration as the S3 API's XML.
#[must_use]
pub fn lifecycle_to_xml(lifecycle: &Lifecycle) -> String {
    render::configuration(lifecycle).text()
}

/// Returns a lifecycle configuration as the AWS CLI's JSON.
#[must_use]
pub fn lifecycle_to_json(lifecycle: &Lifecycle) -> Value {
    let LifecycleConfiguration { rules } = render::configuration(lifecycle);
    json!({ "Rules": rules.iter().map(rule_to_json).collect::<Vec<_>>() })
}

fn rule_to_json(rule: &Rule) -> Value {
    let expiration = rule.expiration.as_ref().map(|expiration| {
        object(&[
            ("Days", expiration.days.map(Value::from)),
            ("Date", expiration.date.map(|date| Value::from(document_time(date)))),
            ("ExpiredObjectDeleteMarker", expiration.expire_markers.map(Value::from)),
        ])
    });
    let noncurrent = rule.noncurrent.map(|noncurrent| {
        object(&[
            ("NoncurrentDays", noncurrent.days.map(Value::from)),
            ("NewerNoncurrentVersions", noncurrent.newer_versions.map(Value::from)),
        ])
    });
    let abort = rule.abort.map(|Abort { days }| json!({ "DaysAfterInitiation": days }));
    object(&[
        ("ID", rule.id.clone().map(Value::from)),
        ("Status", Some(Value::from(rule.status.as_str()))),
        ("Prefix", rule.prefix.clone().map(Value::from)),
        ("Filter", rule.filter.as_ref().map(filter_to_json)),
        ("Expiration", expiration),
        ("NoncurrentVersionExpiration", noncurrent),
        ("AbortIncompleteMultipartUpload", abort),
    ])
}

fn filter_to_json(Filter { and, one }: &Filter) -> Value {
    let members = |conditions: &Conditions| {
        [
            ("Prefix", conditions.prefix.clone().map(Value::from)),
            ("ObjectSizeGreaterThan", conditions.greater_than.map(Value::from)),
            ("ObjectSizeLessThan", conditions.less_than.map(Value::from)),
        ]
    };
    let and = and.as_ref().map(|and| {
        let tags: Vec<Value> =
            and.tags.iter().map(|(key, value)| tag_to_json(key, value)).collect();
        let tags = (!tags.is_empty()).then_some(Value::from(tags));
        object(&[&members(and)[..], &[("Tags", tags)]].concat())
    });
    let tag = one.tags.first().map(|(key, value)| tag_to_json(key, value));
    let others = [("Tag", tag), ("And", and)];
    object(&[&members(one)[..], &others].concat())
}

fn tag_to_json(key: &str, value: &str) -> Value {
    json!({ "Key": key, "Value": value })
}

/// Returns a JSON object with the members that have a value.
fn object(members: &[(&str, Option<Value>)]) -> Value {
    let given =
        members.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    Value::Object(given.collect::<Map<_, _>>())
}

/// Converts the AWS CLI's JSON to XML: each member becomes an element, and each item in a list
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
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // An XML parser would read a bare carriage return as a line feed.
    escaped.replace('\r', "&#13;")
}
