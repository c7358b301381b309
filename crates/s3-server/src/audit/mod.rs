//! The audit log: a line for each change and for each failed attempt.

mod change;
mod keys;
mod lifecycle;
mod operation;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use haul_http_engine::{JsonLine, Lines, NO_RESPONSE, RequestBody, RequestIdentity};
use haul_line_log::Utc;
use hyper::{Request, Response};
use s3s::Body;

use crate::front::text::{between, decode};

use change::{Change, FormNames};
pub(crate) use change::{Changes, DeletedKey};
pub(crate) use keys::KeyRecord;
use operation::{PUT_OBJECT, operation};

/// An audit log. Each line is a JSON object with the fields `time`, `request_id`, `client`,
/// `access_key`, `operation`, `bucket`, `key`, `status`, `error`, `bytes` and `etag`. A field
/// without a value is `null`. `time` is the time at which the request ended.
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
        request: &Request<RequestBody>,
        identity: &RequestIdentity,
        peer: Option<IpAddr>,
    ) -> Option<AuditRecord> {
        let path = decode(request.uri().path()).unwrap_or(request.uri().path().into());
        let mut names = path.splitn(3, '/').skip(1).map(str::to_owned);
        let mut name = || names.next().filter(|name| !name.is_empty());
        let (bucket, key) = (name(), name());
        let operation = operation(request, key.is_some())?;
        Some(self.record(operation, (bucket, key), identity, peer))
    }

    /// Begins the record of a PUT of an object.
    pub(crate) fn begin_put(
        &self,
        (bucket, key): (&str, &str),
        identity: &RequestIdentity,
        peer: Option<IpAddr>,
    ) -> AuditRecord {
        let names = (Some(bucket.to_owned()), Some(key.to_owned()));
        self.record(PUT_OBJECT, names, identity, peer)
    }

    fn record(
        &self,
        operation: &'static str,
        (bucket, key): (Option<String>, Option<String>),
        identity: &RequestIdentity,
        peer: Option<IpAddr>,
    ) -> AuditRecord {
        AuditRecord {
            operation,
            log: self.clone(),
            identity: identity.clone(),
            peer,
            bucket,
            key,
            changes: Changes::default(),
            status: NO_RESPONSE,
            error: None,
        }
    }
}

/// A request whose audit lines are not yet written. Dropping the record writes them, so a request
/// whose client disconnects is recorded as well.
pub(crate) struct AuditRecord {
    log: AuditLog,
    identity: RequestIdentity,
    peer: Option<IpAddr>,
    operation: &'static str,
    bucket: Option<String>,
    key: Option<String>,
    changes: Changes,
    status: u16,
    error: Option<String>,
}

impl AuditRecord {
    /// Returns the list to which the operation adds its changes.
    pub(crate) fn changes(&self) -> Changes {
        self.changes.clone()
    }

    /// Records the outcome of the request and writes its lines.
    pub(crate) fn end(mut self, response: &Response<Body>) {
        self.status = response.status().as_u16();
        if !response.status().is_success() {
            let xml = response.body().bytes().unwrap_or_default();
            let code = between(str::from_utf8(&xml).unwrap_or_default(), "<Code>", "</Code>");
            self.error = (!code.is_empty()).then(|| code.to_owned());
        }
    }

    fn write(&self, time: &str, change: &Change) {
        let text = |text: &Option<String>| text.clone().map(String::into_bytes);
        let key = text(&change.key).or_else(|| text(&self.key));
        let error = text(&change.error).or_else(|| text(&self.error));
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
            .string("error", error.as_deref())
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
