//! The access logs of buckets: their configuration, records and delivery.

mod configuration;
mod delivery;
mod records;
mod requesters;

use std::time::Duration;

use haul_s3_server::Limits;
use haul_testing::eventually;

use crate::client::{Client, Running, assert_refused};

const HOUR: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(20);

/// A policy that lets the delivery store records of all buckets below `log/`.
const POLICY: &str = r#"{"Statement":{"Effect":"Allow",
    "Principal":{"Service":"logging.s3.amazonaws.com"},"Action":"s3:PutObject",
    "Resource":"arn:aws:s3:::logs/log/*","Condition":{
        "ArnLike":{"aws:SourceArn":"arn:aws:s3:::*"},
        "StringEquals":{"aws:SourceAccount":["haul","ann"]}}}}"#;

fn delivered_after(log_delivery_time: Duration) -> Limits {
    Limits { log_delivery_time, ..Limits::default() }
}

/// Returns the document of a configuration, with this format of keys.
fn document(target: &str, prefix: &str, format: &str) -> String {
    format!(
        "<BucketLoggingStatus xmlns=\"http://doc.s3.amazonaws.com/2006-03-01\"><LoggingEnabled>\
         <TargetBucket>{target}</TargetBucket><TargetPrefix>{prefix}</TargetPrefix>{format}\
         </LoggingEnabled></BucketLoggingStatus>"
    )
}

/// Starts a server without keys. The records of `bucket` are delivered to `logs`.
fn logged(limits: Limits) -> Running {
    let server = Running::with(None, limits);
    configure(&server);
    server
}

fn configure(server: &Running) {
    for bucket in ["/bucket", "/other", "/logs"] {
        assert_eq!(server.s3.put(bucket, b"").status, 200);
    }
    assert_refused(&server.s3.put("/logs?policy", POLICY.as_bytes()), 204, "");
    set(&server.s3, &document("logs", "log/", ""));
}

#[track_caller]
fn set(s3: &Client, document: &str) {
    assert_refused(&s3.put("/bucket?logging", document.as_bytes()), 200, "");
}

/// Returns the keys of the delivered objects.
fn keys(s3: &Client) -> Vec<String> {
    s3.get("/logs?list-type=2").all_xml("Key")
}

/// Returns the delivered records.
fn lines(s3: &Client) -> Vec<String> {
    let text = |key: &String| s3.get(&format!("/logs/{key}")).text();
    keys(s3).iter().map(text).collect::<String>().lines().map(str::to_owned).collect()
}

/// Waits for `count` records; returns them in the order of the requests.
fn wait_for(s3: &Client, count: usize) -> Vec<String> {
    eventually("the records are delivered", || lines(s3).len() >= count);
    let mut found = lines(s3);
    found.sort_by_key(|line| fields(line)[5].clone());
    assert_eq!(found.len(), count, "{found:#?}");
    found
}

/// Splits a record into its 26 fields.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut end = None;
    for char in line.chars() {
        let field = fields.last_mut().unwrap();
        match char {
            ' ' if end.is_none() => fields.push(String::new()),
            '[' if field.is_empty() => end = Some(']'),
            '"' if field.is_empty() && end.is_none() => end = Some('"'),
            _ if end == Some(char) => end = None,
            _ => field.push(char),
        }
    }
    assert_eq!(fields.len(), 26, "{line}");
    fields
}

/// Returns the value of a metric.
fn metric(server: &Running, name: &str) -> u64 {
    let text = server.admin.get("/metrics").text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name} is missing")).parse().unwrap()
}

fn lost(server: &Running, reason: &str) -> u64 {
    metric(server, &format!("haul_bucket_log_lost_records_total{{reason=\"{reason}\"}}"))
}
