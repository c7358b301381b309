//! The record of a request that is being answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_file_store::Store;
use haul_http_engine::{RequestBody, RequestIdentity};
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, HOST, HeaderMap, HeaderName, REFERER, USER_AGENT,
};
use hyper::http::Extensions;
use hyper::{Method, Request, Response, StatusCode, Version};
use s3s::Body;
use time::OffsetDateTime;

use crate::access::facts::Connection;
use crate::access::verified::VerifiedClient;
use crate::audit::{Changes, DeletedKey};
use crate::bucket_logs::format::Record;
use crate::bucket_logs::operation::{BATCH_DELETE, operation};
use crate::bucket_logs::queue::LogQueue;
use crate::bucket_logs::target::{LogTarget, Source, logging_of};
use crate::front::forms::fields::is_form;
use crate::front::text::{between, decode};

/// A request to a bucket with logging. Dropping it writes its records, so a request whose client
/// disconnects is recorded as well.
pub(crate) struct LoggedRequest {
    queue: Arc<LogQueue>,
    /// The bucket of the request, if it has logging.
    bucket: Option<(Source, LogTarget)>,
    /// The source of a copy, with its key, if its bucket has logging.
    copied: Option<((Source, LogTarget), String)>,
    head: Head,
    changes: Changes,
    verified: VerifiedClient,
    outcome: Outcome,
}

/// The parts of a record that the request determines.
struct Head {
    identity: RequestIdentity,
    client: Option<String>,
    arrived: (OffsetDateTime, Instant),
    operation: String,
    copy_operation: &'static str,
    key: Option<String>,
    line: String,
    version: Option<String>,
    signature: Option<&'static str>,
    authentication: Option<&'static str>,
    headers: HeaderMap,
}

/// The parts of a record that the response determines.
#[derive(Default)]
struct Outcome {
    status: Option<u16>,
    error: Option<String>,
    object_bytes: Option<u64>,
    answering: Option<Duration>,
    sent_bytes: u64,
}

impl LoggedRequest {
    /// Starts the record of a request; `None` if neither its bucket nor that of the source of its
    /// copy has logging.
    pub(crate) fn begin(
        (queue, store): (&Arc<LogQueue>, &Store),
        request: &Request<RequestBody>,
        identity: &RequestIdentity,
        connection: &Connection,
        started: Instant,
    ) -> Option<Self> {
        let path = decode(request.uri().path())?;
        let mut names = path.splitn(3, '/').skip(1);
        let bucket = names.next()?;
        let key = names.next().filter(|key| !key.is_empty());
        let logging = logging_of(store, bucket);
        let is_put = *request.method() == Method::PUT;
        let copied = is_put.then(|| copied(store, request.headers())).flatten();
        if logging.is_none() && copied.is_none() {
            return None;
        }
        let key = key.map(str::to_owned);
        let client = connection.peer.map(|peer| peer.to_canonical().to_string());
        let arrived = (OffsetDateTime::now_utc(), started);
        Some(Self {
            queue: Arc::clone(queue),
            bucket: logging,
            copied,
            head: Head::new(request, identity.clone(), client, arrived, key),
            changes: Changes::default(),
            verified: VerifiedClient::default(),
            outcome: Outcome::default(),
        })
    }

    /// Adds the places where the operation notes what it did. `changes` are those of the audit
    /// log.
    pub(crate) fn prepare(&mut self, changes: Option<Changes>, extensions: &mut Extensions) {
        self.changes = changes.unwrap_or_default();
        extensions.insert(self.changes.clone());
        extensions.insert(self.verified.clone());
    }

    /// Records the response. `answering` is the time from the last byte of the request.
    pub(crate) fn answered(&mut self, response: &Response<Body>, answering: Duration) {
        let status = response.status();
        self.outcome.status = Some(status.as_u16());
        self.outcome.answering = Some(answering);
        if status.is_success() {
            let is_read = ["REST.GET.OBJECT", "REST.HEAD.OBJECT"].contains(&&*self.head.operation);
            let of_response = is_read.then(|| object_bytes(response.headers())).flatten();
            self.outcome.object_bytes = of_response.or_else(|| self.changes.stored_bytes());
        } else if status != StatusCode::NOT_MODIFIED {
            let xml = response.body().bytes().unwrap_or_default();
            let code = between(str::from_utf8(&xml).unwrap_or_default(), "<Code>", "</Code>");
            self.outcome.error = (!code.is_empty()).then(|| code.to_owned());
        }
        if let Some(key) = self.changes.form_key() {
            self.head.key = Some(key);
        }
    }

    /// Counts sent bytes of the body of the response.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.outcome.sent_bytes += bytes;
    }

    fn record<'a>(&'a self, source: &'a Source, requester: Option<&'a str>) -> Record<'a> {
        let (head, outcome) = (&self.head, &self.outcome);
        let header = |name: HeaderName| head.headers.get(name).map(|value| value.as_bytes());
        Record {
            owner: &source.owner,
            bucket: &source.bucket,
            time: head.arrived.0,
            client: head.client.as_deref(),
            requester,
            request_id: str::from_utf8(&head.identity.id).unwrap_or_default(),
            operation: &head.operation,
            key: head.key.as_deref(),
            request_line: Some(&head.line),
            status: outcome.status,
            error: outcome.error.as_deref(),
            sent_bytes: outcome.sent_bytes,
            object_bytes: outcome.object_bytes,
            total: Some(head.arrived.1.elapsed()),
            answering: outcome.answering,
            referer: header(REFERER),
            user_agent: header(USER_AGENT),
            version: head.version.as_deref(),
            signature: head.signature,
            authentication: head.authentication,
            host: header(HOST),
            needs_list: self.verified.needs_list(),
        }
    }

    fn add(&self, (source, target): &(Source, LogTarget), record: &Record<'_>) {
        self.queue.add((source, target), &record.line(), self.head.arrived.0.date());
    }
}

impl Drop for LoggedRequest {
    fn drop(&mut self) {
        let requester = self.verified.user();
        if let Some(logging) = &self.bucket {
            let record = self.record(&logging.0, requester.as_deref());
            self.add(logging, &record);
            // As in S3, each key of a multi-object delete has a record beside that of the request.
            for DeletedKey { key, version, status, error } in self.changes.deleted_keys() {
                let of_key = Record {
                    operation: BATCH_DELETE,
                    key: Some(&key),
                    request_line: None,
                    status: Some(status),
                    error: error.as_deref(),
                    sent_bytes: 0,
                    object_bytes: None,
                    version: version.as_deref(),
                    ..record.clone()
                };
                self.add(logging, &of_key);
            }
        }
        if let Some((logging, key)) = &self.copied {
            let operation = self.head.copy_operation;
            let (sent_bytes, version) = (0, None);
            let record = self.record(&logging.0, requester.as_deref());
            self.add(logging, &Record { operation, key: Some(key), sent_bytes, version, ..record });
        }
    }
}

impl Head {
    fn new(
        request: &Request<RequestBody>,
        identity: RequestIdentity,
        client: Option<String>,
        arrived: (OffsetDateTime, Instant),
        key: Option<String>,
    ) -> Self {
        let (uri, headers) = (request.uri(), request.headers());
        let query = uri.query().unwrap_or_default();
        let is_form = *request.method() == Method::POST && is_form(headers);
        let (operation, copy_operation) =
            operation(request.method(), query, key.is_some(), is_form);
        let target = uri.path_and_query().map_or(uri.path(), |target| target.as_str());
        let protocol = if request.version() == Version::HTTP_10 { "1.0" } else { "1.1" };
        let line = format!("{} {} HTTP/{protocol}", request.method(), without_signature(target));
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let version = pairs.find(|(name, _)| name == "versionId");
        let version = version.map(|(_, version)| version.into_owned());
        let (signature, authentication) = authentication(headers, query);
        let names = [REFERER, USER_AGENT, HOST];
        let of_record = |name: HeaderName| Some((name.clone(), headers.get(name)?.clone()));
        let headers = names.into_iter().filter_map(of_record).collect();
        Self {
            identity,
            client,
            arrived,
            operation,
            copy_operation,
            key,
            line,
            version,
            signature,
            authentication,
            headers,
        }
    }
}

/// Returns the source of a copy and its key, if its bucket has logging.
fn copied(store: &Store, headers: &HeaderMap) -> Option<((Source, LogTarget), String)> {
    let source = headers.get("x-amz-copy-source")?.to_str().ok()?;
    let source = source.split('?').next().unwrap_or_default();
    let path = decode(source.strip_prefix('/').unwrap_or(source))?;
    let (bucket, key) = path.split_once('/')?;
    Some((logging_of(store, bucket)?, key.to_owned()))
}

/// Returns the length of the whole object that a response describes.
fn object_bytes(headers: &HeaderMap) -> Option<u64> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let of_range = || text(CONTENT_RANGE)?.rsplit('/').next()?.parse().ok();
    of_range().or_else(|| text(CONTENT_LENGTH)?.parse().ok())
}

/// Returns the version of the signature of a request, and its place.
fn authentication(
    headers: &HeaderMap,
    query: &str,
) -> (Option<&'static str>, Option<&'static str>) {
    let has = |wanted: &str| query.split('&').any(|pair| pair.split('=').next() == Some(wanted));
    let header = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
    let (version, place) = match header {
        Some(value) if value.starts_with(b"AWS4-") => ("SigV4", "AuthHeader"),
        Some(value) if value.starts_with(b"AWS ") => ("SigV2", "AuthHeader"),
        None if has("X-Amz-Signature") => ("SigV4", "QueryString"),
        None if has("Signature") => ("SigV2", "QueryString"),
        _ => return (None, None),
    };
    (Some(version), Some(place))
}

/// Returns a target without the values of signatures, with which a reader of the log could repeat
/// the request.
fn without_signature(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name @ ("X-Amz-Signature" | "X-Amz-Security-Token" | "Signature"), _)) => {
            format!("{name}=REDACTED")
        }
        _ => pair.to_owned(),
    };
    let pairs: Vec<_> = query.split('&').map(pair).collect();
    format!("{path}?{}", pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut headers = HeaderMap::new();
            if !header.is_empty() {
                headers.insert(AUTHORIZATION, header.parse().unwrap());
            }
            let (version, place) = authentication(&headers, query);
            assert_eq!([version, place], expected, "{header} {query}");
        }
    }

    #[test]
    fn signatures_are_not_recorded() {
        for (target, expected) in [
            ("/b/k", "/b/k"),
            ("/b/k?a=b&X-Amz-Signature=c&d", "/b/k?a=b&X-Amz-Signature=REDACTED&d"),
            ("/b/k?Signature=c%2B&Expires=1", "/b/k?Signature=REDACTED&Expires=1"),
            ("/b/k?X-Amz-Security-Token=c", "/b/k?X-Amz-Security-Token=REDACTED"),
        ] {
            assert_eq!(without_signature(target), expected);
        }
    }

    #[test]
    fn object_is_as_long_as_its_range_or_response_says() {
        for (name, value, expected) in [
            ("content-length", "5", Some(5)),
            ("content-range", "bytes 0-1/70", Some(70)),
            ("content-range", "bytes */x", None),
        ] {
            let headers = [(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect();
            assert_eq!(object_bytes(&headers), expected, "{name}");
        }
    }
}
