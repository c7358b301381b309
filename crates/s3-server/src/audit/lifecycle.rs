//! The audit lines for changes by lifecycle rules.

use std::time::SystemTime;

use haul_file_store::{LifecycleAction, LifecycleObserver};
use haul_http_engine::JsonLine;
use haul_line_log::Utc;

use super::AuditLog;

impl AuditLog {
    /// Returns the observer for [`haul_file_store::Options::lifecycle_observer`], which appends a
    /// line for each change by a lifecycle rule. `operation` is the name in S3 server access logs;
    /// there is no request, client or status. An expired version's line has the version ID.
    #[must_use]
    pub fn lifecycle_observer(&self) -> LifecycleObserver {
        let log = self.clone();
        LifecycleObserver::new(move |action, bucket, key| {
            let operation: &[u8] = match action {
                LifecycleAction::ExpireObject | LifecycleAction::ExpireVersion(_) => {
                    b"S3.EXPIRE.OBJECT"
                }
                LifecycleAction::CreateMarker => b"S3.CREATE.DELETEMARKER",
                LifecycleAction::AbortUpload => b"S3.DELETE.UPLOAD",
            };
            let time = format!("{:.3}", Utc::of(SystemTime::now()));
            let version = match action {
                LifecycleAction::ExpireVersion(version) => Some(version.to_string()),
                _ => None,
            };
            let mut line = JsonLine::new("time", time.as_bytes())
                .string("request_id", None)
                .string("client", None)
                .string("access_key", None)
                .string("operation", Some(operation))
                .string("bucket", Some(bucket.as_bytes()))
                .string("key", Some(key.as_bytes()))
                .number("status", None)
                .string("error", None)
                .number("bytes", None)
                .string("etag", None);
            if let Some(version) = version {
                line = line.string("version_id", Some(version.as_bytes()));
            }
            log.lines.append(&line.end());
        })
    }
}
