//! The log record of a request in progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_http_engine::{RequestIdentity, without_secrets};
use haul_store_pool::Pool;
use http::StatusCode;
use http::header::{CONTENT_RANGE, HeaderMap};
use time::OffsetDateTime;

use crate::access::authorize::Principal;
use crate::access::decision::Basis;
use crate::access::facts::Connection;
use crate::acl::owner::ADMINISTRATOR;
use crate::audit::{Changes, DeletedKey};
use crate::bucket_logs::format::Record;
use crate::bucket_logs::operation::{BATCH_DELETE, copy_log_name, log_name};
use crate::bucket_logs::queue::LogQueue;
use crate::bucket_logs::target::{LogTarget, Source, logging_of};
use crate::errors::S3ErrorCode;
use crate::request::copy_source::CopySource;
use crate::request::head::Head;
use crate::request::operation::Operation;

/// A request to a bucket with logging. Dropping it writes its records, so a request whose client
/// disconnects is recorded, too.
pub(crate) struct LoggedRequest {
    queue: Arc<LogQueue>,
    /// The request's bucket, if it has logging.
    bucket: Option<(Source, LogTarget)>,
    /// A copy's source, if the source bucket has logging.
    copied: Option<Copied>,
    head: Arc<Head>,
    operation: Option<Operation>,
    identity: RequestIdentity,
    /// The client's address.
    client: Option<String>,
    arrived: OffsetDateTime,
    started: Instant,
    changes: Changes,
    /// The user whose key signed the request; `None` until the signature is verified.
    user: Option<String>,
    /// `true` if only an ACL allowed the request.
    needs_list: bool,
    outcome: Outcome,
}

/// A copy's source.
struct Copied {
    logging: (Source, LogTarget),
    key: String,
    /// The log name for reading the source.
    operation: &'static str,
}

/// The parts of a record that come from the response.
#[derive(Default)]
struct Outcome {
    status: Option<u16>,
    error: Option<&'static str>,
    object_bytes: Option<u64>,
    answering: Option<Duration>,
    sent_bytes: u64,
}

impl LoggedRequest {
    /// Starts a request's record; `None` if neither its bucket nor a copy's source bucket has
    /// logging.
    pub(crate) fn begin(
        queue: &Arc<LogQueue>,
        store: &Pool,
        head: &Arc<Head>,
        operation: Option<Operation>,
        identity: &RequestIdentity,
        connection: &Connection,
        started: Instant,
    ) -> Option<Self> {
        let bucket = logging_of(store, &head.name.bucket);
        let copied = copy_log_name(operation).and_then(|name| Copied::find(store, head, name));
        if bucket.is_none() && copied.is_none() {
            return None;
        }
        Some(Self {
            queue: Arc::clone(queue),
            bucket,
            copied,
            head: Arc::clone(head),
            operation,
            identity: identity.clone(),
            client: connection.peer.map(|peer| peer.to_canonical().to_string()),
            arrived: OffsetDateTime::now_utc(),
            started,
            changes: Changes::default(),
            user: None,
            needs_list: false,
            outcome: Outcome::default(),
        })
    }

    /// Returns the list to which the operation adds its changes: the audit log's list, if there is
    /// one.
    pub(crate) fn prepare(&mut self, audited: Option<Changes>) -> Changes {
        self.changes = audited.unwrap_or_default();
        self.changes.clone()
    }

    /// Notes the client, after its signature is verified.
    pub(crate) fn note_client(&mut self, principal: &Principal) {
        if let Principal::Key(key) = principal {
            self.user = Some(key.user.as_deref().unwrap_or(ADMINISTRATOR).to_owned());
        }
    }

    /// Notes the reason why the client may execute its operation.
    pub(crate) fn note_basis(&mut self, basis: Basis) {
        self.needs_list = basis == Basis::Acl;
    }

    /// Records the response; `content_bytes` is the content's length, if it is known. `answering`
    /// is the time since the request's last byte.
    pub(crate) fn answered(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        error: Option<S3ErrorCode>,
        content_bytes: Option<u64>,
        answering: Duration,
    ) {
        let is_read = matches!(self.operation, Some(Operation::GetObject | Operation::HeadObject));
        let object_bytes = || match is_read {
            true => object_bytes(headers).or(content_bytes),
            false => self.changes.stored_bytes(),
        };
        let is_failure = !status.is_success() && status != StatusCode::NOT_MODIFIED;
        self.outcome = Outcome {
            status: Some(status.as_u16()),
            error: error.filter(|_| is_failure).map(S3ErrorCode::as_str),
            object_bytes: status.is_success().then(object_bytes).flatten(),
            answering: Some(answering),
            sent_bytes: self.outcome.sent_bytes,
        };
    }

    /// Counts sent bytes of the response body.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.outcome.sent_bytes += bytes;
    }

    fn record<'a>(&'a self, source: &'a Source, texts: &'a Texts) -> Record<'a> {
        let (head, outcome) = (&*self.head, &self.outcome);
        let (signature, authentication) = authentication(head);
        Record {
            owner: &source.owner,
            bucket: &source.bucket,
            time: self.arrived,
            client: self.client.as_deref(),
            requester: self.user.as_deref(),
            request_id: str::from_utf8(&self.identity.id).unwrap_or_default(),
            operation: &texts.operation,
            key: texts.key.as_deref(),
            request_line: Some(&texts.request_line),
            status: outcome.status,
            error: outcome.error,
            sent_bytes: outcome.sent_bytes,
            object_bytes: outcome.object_bytes,
            total: Some(self.started.elapsed()),
            answering: outcome.answering,
            referer: head.fields.first("referer"),
            user_agent: head.fields.first("user-agent"),
            version: head.query.get("versionId"),
            signature,
            authentication,
            host: head.fields.first("host"),
            needs_list: self.needs_list,
        }
    }

    fn add(&self, (source, target): &(Source, LogTarget), record: &Record<'_>) {
        self.queue.add((source, target), &record.line(), self.arrived.date());
    }
}

impl Drop for LoggedRequest {
    fn drop(&mut self) {
        let texts = Texts::new(self);
        if let Some(logging) = &self.bucket {
            let record = self.record(&logging.0, &texts);
            self.add(logging, &record);
            // As in S3, each key in a multi-object delete has a record beside the request's record.
            for DeletedKey { key, version, status, error } in self.changes.deleted_keys() {
                let deletion = Record {
                    operation: BATCH_DELETE,
                    key: Some(&key),
                    request_line: None,
                    status: Some(status),
                    error: error.map(S3ErrorCode::as_str),
                    sent_bytes: 0,
                    object_bytes: None,
                    version: version.as_deref(),
                    ..record.clone()
                };
                self.add(logging, &deletion);
            }
        }
        if let Some(Copied { logging, key, operation }) = &self.copied {
            let record = self.record(&logging.0, &texts);
            let (sent_bytes, version) = (0, None);
            self.add(logging, &Record { operation, key: Some(key), sent_bytes, version, ..record });
        }
    }
}

/// The texts in a record that are built when it is written.
struct Texts {
    operation: String,
    key: Option<String>,
    request_line: String,
}

impl Texts {
    fn new(request: &LoggedRequest) -> Self {
        let head = &*request.head;
        let key = (!head.name.key.is_empty()).then(|| head.name.key.clone());
        let protocol = if head.is_old { "1.0" } else { "1.1" };
        let target = without_secrets(head.target.as_bytes());
        let target = String::from_utf8_lossy(&target);
        Self {
            operation: log_name(head, request.operation),
            key: request.changes.form_key().or(key),
            request_line: format!("{} {target} HTTP/{protocol}", head.method),
        }
    }
}

impl Copied {
    /// Returns a copy's source, if its bucket has logging. An invalid source has no record.
    fn find(store: &Pool, head: &Head, operation: &'static str) -> Option<Self> {
        let name = CopySource::from_request(head).ok()?.name;
        Some(Self { logging: logging_of(store, &name.bucket)?, key: name.key, operation })
    }
}

/// Returns the length of the whole object, from the `Content-Range` of a partial response.
fn object_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_RANGE)?.to_str().ok()?.rsplit('/').next()?.parse().ok()
}

/// Returns the version and the location of a request's signature.
fn authentication(head: &Head) -> (Option<&'static str>, Option<&'static str>) {
    let (version, place) = match head.fields.first("authorization") {
        Some(value) if value.starts_with(b"AWS4-") => ("SigV4", "AuthHeader"),
        Some(value) if value.starts_with(b"AWS ") => ("SigV2", "AuthHeader"),
        None if head.query.has("X-Amz-Signature") => ("SigV4", "QueryString"),
        None if head.query.has("Signature") => ("SigV2", "QueryString"),
        _ => return (None, None),
    };
    (Some(version), Some(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;

    #[test]
    fn signature_has_a_version_and_a_place() {
        for (header, query, expected) in [
            ("AWS4-HMAC-SHA256 Credential=a", "", [Some("SigV4"), Some("AuthHeader")]),
            ("AWS a:b", "", [Some("SigV2"), Some("AuthHeader")]),
            ("", "a=b&X-Amz-Signature=c", [Some("SigV4"), Some("QueryString")]),
            ("", "AWSAccessKeyId=a&Signature=c", [Some("SigV2"), Some("QueryString")]),
            ("", "X=Signature", [None, None]),
            ("Basic a", "Signature=c", [None, None]),
        ] {
            let fields = [("authorization", header)];
            let fields = if header.is_empty() { &[][..] } else { &fields };
            let (version, place) = authentication(&head(&format!("GET /b/k?{query}"), fields));
            assert_eq!([version, place], expected, "{header} {query}");
        }
    }

    #[test]
    fn object_is_as_long_as_its_range_says() {
        for (value, expected) in [("bytes 0-1/70", Some(70)), ("bytes */x", None)] {
            let headers = [(CONTENT_RANGE, value.parse().unwrap())].into_iter().collect();
            assert_eq!(object_bytes(&headers), expected, "{value}");
        }
        assert_eq!(object_bytes(&HeaderMap::new()), None);
    }
}
