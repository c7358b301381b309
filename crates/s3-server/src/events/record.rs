//! Formats queued events as S3's records.

use std::fmt::{Arguments, Write};

use haul_file_store::QueuedEvent;
use haul_line_log::Utc;

use crate::acl::owner::ADMINISTRATOR;
use crate::auth::REGION;
use crate::auth::canonical::push_encoded;
use crate::events::fields::{ADDRESS, BUCKET_OWNER, NAME, REQUEST, RULE, SIZE, USER};

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
    let mut out = Json(String::with_capacity(RECORD_BYTES * events.len()));
    out.raw("{\"Records\":[");
    for (number, event) in events.iter().enumerate() {
        out.raw(if number == 0 { "{" } else { ",{" });
        record(&mut out, event, name_prefix);
        out.raw("}");
    }
    out.raw("]}");
    out.0.into_bytes()
}

/// The fields of an event; those that it lacks are empty.
#[derive(Default)]
struct Described<'a> {
    name: &'a str,
    user: Option<&'a str>,
    address: &'a str,
    request: &'a str,
    rule: &'a str,
    bucket: &'a str,
    owner: Option<&'a str>,
    key: &'a str,
    bytes: &'a str,
    size: Option<&'a str>,
    etag: &'a str,
    version: Option<&'a str>,
}

impl<'a> Described<'a> {
    fn of(event: &'a QueuedEvent) -> Self {
        let mut found = Self::default();
        for (name, value) in event.fields.iter() {
            match name {
                NAME => found.name = value,
                USER => found.user = Some(value),
                ADDRESS => found.address = value,
                REQUEST => found.request = value,
                BUCKET_OWNER => found.owner = Some(value),
                SIZE => found.size = Some(value),
                "bucket" => found.bucket = value,
                "key" => found.key = value,
                "bytes" => found.bytes = value,
                "etag" => found.etag = value,
                "version" => found.version = Some(value),
                _ if name.strip_prefix(RULE) == Some(&*event.queue) => found.rule = value,
                _ => {}
            }
        }
        found
    }
}

/// Appends the members of an event's record, in version 2.1 of S3's format.
fn record(out: &mut Json, event: &QueuedEvent, name_prefix: &str) {
    let found = Described::of(event);
    out.raw("\"eventVersion\":\"2.1\",\"eventSource\":\"aws:s3\"");
    out.member(",", "awsRegion", REGION);
    // In milliseconds: 2026-11-28T12:00:00.000Z.
    out.plain(",", "eventTime", format_args!("{:.3}", Utc::of(event.time())));
    out.plain(",", "eventName", format_args!("{name_prefix}{}", found.name));
    out.member(",\"userIdentity\":{", "principalId", found.user.unwrap_or(LIFECYCLE));
    out.member("},\"requestParameters\":{", "sourceIPAddress", found.address);
    out.member("},\"responseElements\":{", "x-amz-request-id", found.request);
    out.member(",", "x-amz-id-2", "haul");
    out.raw("},\"s3\":{\"s3SchemaVersion\":\"1.0\"");
    out.member(",", "configurationId", found.rule);
    out.member(",\"bucket\":{", "name", found.bucket);
    let owner = found.owner.unwrap_or(ADMINISTRATOR);
    out.member(",\"ownerIdentity\":{", "principalId", owner);
    out.plain("},", "arn", format_args!("arn:aws:s3:::{}", found.bucket));
    out.raw("},\"object\":{\"key\":\"");
    push_encoded(&mut out.0, found.key);
    out.raw("\"");
    if !found.name.starts_with("ObjectRemoved:") && !found.name.starts_with("LifecycleExpiration:")
    {
        let size: u64 = found.size.unwrap_or(found.bytes).parse().unwrap_or_default();
        out.write(format_args!(",\"size\":{size}"));
        out.member(",", "eTag", found.etag);
    }
    if let Some(version) = found.version {
        out.member(",", "versionId", version);
    }
    out.plain(",", "sequencer", format_args!("{:016X}", event.sequence));
    out.raw("}}");
}

/// JSON that is being written.
struct Json(String);

impl Json {
    fn raw(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn write(&mut self, text: Arguments<'_>) {
        // Writing to memory does not fail.
        self.0.write_fmt(text).unwrap_or_default();
    }

    /// Appends `before`, and a member whose value has no characters with an escape: names of events
    /// and buckets, times and numbers.
    fn plain(&mut self, before: &str, name: &str, value: Arguments<'_>) {
        for text in [before, "\"", name, "\":\""] {
            self.raw(text);
        }
        let begin = self.0.len();
        self.write(value);
        debug_assert!(!needs_escape(&self.0[begin..]), "{name} needs an escape");
        self.raw("\"");
    }

    /// Appends `before`, and a member with a text.
    fn member(&mut self, before: &str, name: &str, value: &str) {
        if !needs_escape(value) {
            return self.plain(before, name, format_args!("{value}"));
        }
        for text in [before, "\"", name, "\":"] {
            self.raw(text);
        }
        // Texts always have a form in JSON.
        self.raw(&serde_json::to_string(value).unwrap_or_default());
    }
}

/// Returns `true` if JSON cannot have the text as it is.
fn needs_escape(text: &str) -> bool {
    text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'))
}
