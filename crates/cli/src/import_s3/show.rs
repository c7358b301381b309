//! Formats the events and the summary of a copy.

use haul_s3_copy::{Event, NotCarried};
use serde_json::{Value, json};

use crate::output::Name;
use crate::progress::Summary as Totals;
use crate::report::chain;
use crate::units::{Bytes, Count};

/// Returns the name of an object in messages.
fn object(bucket: &str, key: &str) -> String {
    match key.is_empty() {
        true => Name(bucket).to_string(),
        false => Name(&format!("{bucket}/{key}")).to_string(),
    }
}

/// Returns the line about an event in a dry run.
pub(super) fn line(event: &Event<'_>) -> String {
    match event {
        Event::BucketCreated { bucket } => format!("create bucket {}", object(bucket, "")),
        Event::Setting { bucket, setting } => format!("set {setting} of {}", object(bucket, "")),
        Event::NotCarried { bucket, setting, .. } => {
            format!("leave out {setting} of {}", object(bucket, ""))
        }
        Event::Copied { bucket, key, versions: 1, bytes } => {
            format!("copy {} ({})", object(bucket, key), Bytes(*bytes))
        }
        Event::Copied { bucket, key, versions, bytes } => {
            let versions = Count(*versions, "version");
            format!("copy {} ({versions}, {})", object(bucket, key), Bytes(*bytes))
        }
        Event::Deleted { bucket, key } => format!("delete {}", object(bucket, key)),
        Event::Different { bucket, key } => {
            format!("leave {}, which has other versions", object(bucket, key))
        }
        Event::Failed { bucket, key, .. } => format!("fail at {}", object(bucket, key)),
    }
}

/// Returns the message about an event that users must know.
pub(super) fn message(event: &Event<'_>, is_dry_run: bool) -> Option<String> {
    match event {
        Event::NotCarried { bucket, setting, reason } => {
            Some(format!("note: {setting} of {} is not copied: {reason}", object(bucket, "")))
        }
        Event::Different { bucket, key } if !is_dry_run => Some(format!(
            "{} has other versions at the target, and is left alone",
            object(bucket, key)
        )),
        Event::Failed { bucket, key, error } => {
            let text = chain(&format!("cannot copy {}", object(bucket, key)), Some(*error));
            Some(error.advice().map_or(text.clone(), |advice| format!("{text}\n  {advice}")))
        }
        _ => None,
    }
}

/// Returns an event as JSON.
pub(super) fn json_event(event: &Event<'_>) -> Value {
    match event {
        Event::BucketCreated { bucket } => json!({ "kind": "bucket", "bucket": bucket }),
        Event::Setting { bucket, setting } => {
            json!({ "kind": "setting", "bucket": bucket, "setting": setting })
        }
        Event::NotCarried { bucket, setting, reason } => {
            json!({
                "kind": "not_carried", "bucket": bucket, "setting": setting, "reason": reason,
            })
        }
        Event::Copied { bucket, key, versions, bytes } => {
            json!({
                "kind": "object", "bucket": bucket, "key": key, "versions": versions,
                "bytes": bytes,
            })
        }
        Event::Deleted { bucket, key } => {
            json!({ "kind": "deleted", "bucket": bucket, "key": key })
        }
        Event::Different { bucket, key } => {
            json!({ "kind": "different", "bucket": bucket, "key": key })
        }
        Event::Failed { bucket, key, error } => {
            let reason = chain(&error.to_string(), std::error::Error::source(*error));
            json!({ "kind": "failed", "bucket": bucket, "key": key, "reason": reason })
        }
    }
}

/// Returns the summary as JSON.
pub(super) fn json_summary(
    summary: &haul_s3_copy::Summary,
    totals: &Totals,
    is_dry_run: bool,
) -> Value {
    let not_carried = summary.not_carried.iter().map(|it: &NotCarried| {
        json!({ "bucket": it.bucket, "setting": it.setting, "reason": it.reason })
    });
    json!({
        "kind": "summary",
        "dry_run": is_dry_run,
        "buckets": summary.buckets,
        "objects": summary.objects,
        "versions": summary.versions,
        "bytes": summary.bytes,
        "skipped": summary.skipped,
        "deleted": summary.deleted,
        "different": summary.different,
        "failed": summary.failed,
        "verified_by_length": summary.verified_by_length,
        "not_carried": not_carried.collect::<Vec<_>>(),
        "complete": !summary.is_stopped,
        "seconds": totals.time.as_secs_f64(),
    })
}
