//! Formats queued events as S3's records.

use std::time::SystemTime;

use haul_file_store::QueuedEvent;
use haul_line_log::Utc;
use serde_json::{Value, json};

use crate::acl::owner::ADMINISTRATOR;
use crate::auth::REGION;
use crate::auth::canonical::push_encoded;
use crate::events::new::{ADDRESS, BUCKET_OWNER, NAME, REQUEST, SIZE, USER, rule_attribute};

/// Returns the message with some events, in their order.
pub(super) fn message(events: &[QueuedEvent]) -> Vec<u8> {
    let records: Vec<Value> = events.iter().map(record).collect();
    json!({ "Records": records }).to_string().into_bytes()
}

/// Returns the record of an event, in version 2.1 of S3's format.
pub(crate) fn record(event: &QueuedEvent) -> Value {
    let attribute = |name: &str| event.attributes.get(name);
    let text = |name: &str| attribute(name).unwrap_or_default();
    let name = text(NAME);
    let owner = attribute(BUCKET_OWNER).unwrap_or(ADMINISTRATOR);
    let bucket = text("bucket");
    let mut key = String::new();
    push_encoded(&mut key, text("key"));
    let mut object = json!({
        "key": key,
        "sequencer": format!("{:016X}", event.sequence),
    });
    if !name.starts_with("ObjectRemoved:") && !name.starts_with("LifecycleExpiration:") {
        let size = attribute(SIZE).unwrap_or_else(|| text("bytes"));
        object["size"] = size.parse::<u64>().unwrap_or_default().into();
        object["eTag"] = text("etag").into();
    }
    if let Some(version) = attribute("version") {
        object["versionId"] = version.into();
    }
    json!({
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": REGION,
        "eventTime": time(event.time()),
        "eventName": name,
        "userIdentity": { "principalId": attribute(USER).unwrap_or(LIFECYCLE) },
        "requestParameters": { "sourceIPAddress": text(ADDRESS) },
        "responseElements": { "x-amz-request-id": text(REQUEST), "x-amz-id-2": "haul" },
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": text(&rule_attribute(&event.queue)),
            "bucket": {
                "name": bucket,
                "ownerIdentity": { "principalId": owner },
                "arn": format!("arn:aws:s3:::{bucket}"),
            },
            "object": object,
        },
    })
}

/// The principal of changes that the server makes by itself, as in S3.
const LIFECYCLE: &str = "s3.amazonaws.com";

/// Formats a time in milliseconds: `2026-11-28T12:00:00.000Z`.
fn time(time: SystemTime) -> String {
    format!("{:.3}", Utc::of(time))
}
