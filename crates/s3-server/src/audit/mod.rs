//! The audit log: a line for each change and for each failed attempt.

mod change;
mod keys;
mod lifecycle;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use haul_http_engine::{JsonLine, Lines, NO_RESPONSE, RequestIdentity};
use haul_line_log::Utc;
use http::{Method, StatusCode};

use crate::errors::S3ErrorCode;
use crate::request::head::Head;
use crate::request::name::ObjectName;
use crate::request::operation::Operation;

use change::{Change, FormNames};
pub(crate) use change::{Changes, DeletedKey};
pub(crate) use keys::KeyRecord;

/// The operation name for changes that the server does not support.
const OTHER: &str = "Other";

/// The operation name for the creation of a temporary key, which the field `key` names.
const TEMPORARY_KEY: &str = "CreateTemporaryKey";

/// An audit log. Each line is a JSON object with the fields `time`, `request_id`, `client`,
/// `access_key`, `operation`, `bucket`, `key`, `status`, `error`, `bytes` and `etag`. A field
/// without a value is `null`. `time` is the end of the request.
#[derive(Clone)]
pub struct AuditLog {
    lines: Arc<dyn Lines>,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

impl AuditLog {
    /// Creates a log that appends its lines to `lines`.
    pub fn new(lines: Arc<dyn Lines>) -> Self {
        Self { lines }
    }

    /// Starts the record of a request; `None` if the request only reads.
    pub(crate) fn begin(
        &self,
        head: &Head,
        operation: Option<Operation>,
        identity: &RequestIdentity,
        peer: Option<IpAddr>,
    ) -> Option<AuditRecord> {
        // A preflight request changes nothing, either.
        if head.is_read() || head.method == Method::OPTIONS {
            return None;
        }
        let name = match &head.path {
            Some(_) => head.name.clone(),
            // For a malformed path, the record has the names as the client sent them.
            None => ObjectName::in_path(head.raw_path()),
        };
        let given = |name: String| (!name.is_empty()).then_some(name);
        Some(AuditRecord {
            operation: match operation {
                Some(operation) => operation.name(),
                None if head.is_for_sts() => TEMPORARY_KEY,
                None => OTHER,
            },
            log: self.clone(),
            identity: identity.clone(),
            peer,
            bucket: given(name.bucket),
            key: given(name.key),
            changes: Changes::default(),
            status: NO_RESPONSE,
            error: None,
        })
    }
}

/// A request whose audit lines are not yet written. Dropping the record writes them, so a request
/// whose client disconnects is recorded, too.
pub(crate) struct AuditRecord {
    log: AuditLog,
    identity: RequestIdentity,
    peer: Option<IpAddr>,
    operation: &'static str,
    bucket: Option<String>,
    key: Option<String>,
    changes: Changes,
    status: u16,
    error: Option<S3ErrorCode>,
}

impl AuditRecord {
    /// Returns the list to which the operation adds its changes.
    pub(crate) fn changes(&self) -> Changes {
        self.changes.clone()
    }

    /// Sets the request's outcome. The record writes its lines when it is dropped.
    pub(crate) fn end(mut self, status: StatusCode, error: Option<S3ErrorCode>) {
        self.status = status.as_u16();
        self.error = error.filter(|_| !status.is_success());
    }

    fn write(&self, time: &str, change: &Change) {
        let text = |text: &Option<String>| text.clone().map(String::into_bytes);
        let key = text(&change.key).or_else(|| text(&self.key));
        let error = change.error.or(self.error).map(S3ErrorCode::as_str);
        let client = self.peer.map(|peer| peer.to_string().into_bytes());
        let user = self.identity.user.as_deref().map(str::as_bytes);
        let line = JsonLine::new("time", time.as_bytes())
            .string("request_id", Some(&self.identity.id))
            .string("client", client.as_deref())
            .string("access_key", user)
            .string("operation", Some(self.operation.as_bytes()))
            .string("bucket", self.bucket.as_deref().map(str::as_bytes))
            .string("key", key.as_deref())
            .number("status", Some(u64::from(self.status)))
            .string("error", error.map(str::as_bytes))
            .number("bytes", change.bytes)
            .string("etag", text(&change.etag).as_deref());
        self.log.lines.append(&line.end());
    }
}

impl Drop for AuditRecord {
    fn drop(&mut self) {
        let time = format!("{:.3}", Utc::of(SystemTime::now()));
        let (form, changes) = self.changes.all();
        if let Some(FormNames { key, access_key }) = form {
            (self.key, self.identity.user) = (Some(key), access_key);
        }
        if changes.is_empty() {
            self.write(&time, &Change::default());
        }
        changes.iter().for_each(|change| self.write(&time, change));
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::request::head::tests::head;

    #[derive(Default)]
    struct Recorded(Mutex<Vec<u8>>);

    impl Lines for Recorded {
        fn append(&self, line: &[u8]) {
            self.0.lock().extend_from_slice(line);
        }
    }

    /// Returns the audit line for a request with this first line and outcome; empty if there is
    /// none.
    fn line(request: &str, status: StatusCode, error: Option<S3ErrorCode>) -> String {
        let lines = Arc::new(Recorded::default());
        let log = AuditLog::new(lines.clone());
        let head = head(request, &[]);
        let operation = Operation::from_request(&head).ok();
        let identity = RequestIdentity { id: [b'1'; 16], user: None };
        if let Some(record) = log.begin(&head, operation, &identity, None) {
            record.end(status, error);
        }
        let text = lines.0.lock().clone();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn changes_are_named_by_their_operation() {
        for (request, name) in [
            ("GET /b/k", None),
            ("HEAD /b", None),
            ("OPTIONS /b/k", None),
            ("PUT /b/k", Some("PutObject")),
            ("PUT /b/k?partNumber=1&uploadId=a", Some("UploadPart")),
            ("PUT /b?lifecycle=", Some("PutBucketLifecycleConfiguration")),
            ("POST /b?delete", Some("DeleteObjects")),
            ("DELETE /b", Some("DeleteBucket")),
            ("DELETE /b?logging", Some(OTHER)),
            ("PUT /b?website", Some("PutBucketWebsite")),
            ("PUT /b?replication", Some(OTHER)),
            ("POST /b/k?restore", Some(OTHER)),
            ("PATCH /b/k", Some(OTHER)),
        ] {
            let found = line(request, StatusCode::OK, None);
            let name = name.map(|name| format!("\"operation\":\"{name}\""));
            assert_eq!(found.is_empty(), name.is_none(), "{request}: {found}");
            assert!(found.contains(&name.unwrap_or_default()), "{request}: {found}");
        }
    }

    #[test]
    fn line_has_the_names_and_the_error_of_the_request() {
        let refused = (StatusCode::FORBIDDEN, Some(S3ErrorCode::AccessDenied));
        for (request, (status, error), parts) in [
            ("PUT /b/a%20b", refused, r#""bucket":"b","key":"a b","status":403,"error":"Acc"#),
            ("PUT /b/%FF", refused, r#""bucket":"b","key":"%FF","status":403,"error":"Acc"#),
            ("PUT /b", (StatusCode::OK, None), r#""bucket":"b","key":null,"status":200,"error":n"#),
        ] {
            let found = line(request, status, error);
            assert!(found.contains(parts), "{request}: {found}");
        }
    }
}
