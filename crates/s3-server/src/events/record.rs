//! Formats queued events as S3's records.

use std::time::SystemTime;

use haul_file_store::{EventFields, QueuedEvent};
use haul_line_log::Utc;

use crate::acl::owner::ADMINISTRATOR;
use crate::auth::REGION;
use crate::auth::canonical::push_encoded;
use crate::events::fields::{ADDRESS, BUCKET_OWNER, NAME, REQUEST, SIZE, USER, rule_field};

/// The length of most records, in bytes.
const RECORD_BYTES: usize = 800;

/// The principal of changes that the server makes by itself, as in S3.
const LIFECYCLE: &str = "s3.amazonaws.com";

/// Returns the message with some events, in their order.
pub(super) fn message(events: &[QueuedEvent]) -> Vec<u8> {
    records(events, "")
}

/// Returns the line about an event for a client that listens. As in MinIO, its name begins with
/// `s3:`.
pub(super) fn line(event: &QueuedEvent) -> Vec<u8> {
    let mut line = records(std::slice::from_ref(event), "s3:");
    line.push(b'\n');
    line
}

fn records(events: &[QueuedEvent], name_prefix: &str) -> Vec<u8> {
    let mut out = Json(Vec::with_capacity(RECORD_BYTES * events.len()));
    out.raw("{\"Records\":[");
    for (number, event) in events.iter().enumerate() {
        out.raw(if number == 0 { "{" } else { ",{" });
        record(&mut out, event, name_prefix);
        out.raw("}");
    }
    out.raw("]}");
    out.0
}

/// Appends the members of an event's record, in version 2.1 of S3's format.
fn record(out: &mut Json, event: &QueuedEvent, name_prefix: &str) {
    let fields: &EventFields = &event.fields;
    let text = |name: &str| fields.get(name).unwrap_or_default();
    let name = text(NAME);
    out.raw("\"eventVersion\":\"2.1\",\"eventSource\":\"aws:s3\"");
    out.member(",", "awsRegion", REGION);
    out.member(",", "eventTime", &time(event.time()));
    out.member(",", "eventName", &format!("{name_prefix}{name}"));
    out.member(",\"userIdentity\":{", "principalId", fields.get(USER).unwrap_or(LIFECYCLE));
    out.member("},\"requestParameters\":{", "sourceIPAddress", text(ADDRESS));
    out.member("},\"responseElements\":{", "x-amz-request-id", text(REQUEST));
    out.member(",", "x-amz-id-2", "haul");
    out.raw("},\"s3\":{\"s3SchemaVersion\":\"1.0\"");
    out.member(",", "configurationId", text(&rule_field(&event.queue)));
    let bucket = text("bucket");
    out.member(",\"bucket\":{", "name", bucket);
    let owner = fields.get(BUCKET_OWNER).unwrap_or(ADMINISTRATOR);
    out.member(",\"ownerIdentity\":{", "principalId", owner);
    out.member("},", "arn", &format!("arn:aws:s3:::{bucket}"));
    let mut key = String::new();
    push_encoded(&mut key, text("key"));
    out.member("},\"object\":{", "key", &key);
    if !name.starts_with("ObjectRemoved:") && !name.starts_with("LifecycleExpiration:") {
        let size = fields.get(SIZE).unwrap_or_else(|| text("bytes"));
        out.raw(&format!(",\"size\":{}", size.parse::<u64>().unwrap_or_default()));
        out.member(",", "eTag", text("etag"));
    }
    if let Some(version) = fields.get("version") {
        out.member(",", "versionId", version);
    }
    out.member(",", "sequencer", &format!("{:016X}", event.sequence));
    out.raw("}}");
}

/// JSON that is being written.
struct Json(Vec<u8>);

impl Json {
    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends `before`, and a member with a text.
    fn member(&mut self, before: &str, name: &str, value: &str) {
        self.raw(before);
        self.raw("\"");
        self.raw(name);
        self.raw("\":");
        // Writing to memory does not fail.
        serde_json::to_writer(&mut self.0, value).unwrap_or_default();
    }
}

/// Formats a time in milliseconds: `2026-11-28T12:00:00.000Z`.
fn time(time: SystemTime) -> String {
    format!("{:.3}", Utc::of(time))
}
