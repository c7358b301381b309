//! Collects what the access log line of an exchange needs, and the console if the exchange was slow or
//! had an error, while the exchange is forwarded.

use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

use haul_admin_endpoint::{RecentRequest, RecentRequests};
use haul_http_engine::{NO_RESPONSE, Record, RequestOutcome, ThreadLog};
use haul_http1::Request;

use crate::target::Targets;

/// The name of the last field of a line in JSON: the target that received the request last.
const TARGET_FIELD: &str = "upstream";

/// The record of the exchange in progress.
#[derive(Debug, Default)]
pub(super) struct AccessRecord {
    /// The line of the access log. `None` without a log, and when no exchange is in progress.
    pending: Option<Record>,
    request: RequestLine,
    /// The status of the final response, and the time at which it began; `None` before.
    response: Option<(u16, Instant)>,
    /// The number of bytes written to the client before the body.
    body_at: u64,
    /// The index of the target of the connection over which the request was sent last.
    target: Option<usize>,
}

/// A request whose head was valid. Its memory is used for the next one.
#[derive(Debug, Default)]
struct RequestLine {
    method: String,
    path: String,
    /// The time at which its head was received; `None` when no exchange is in progress.
    received: Option<Instant>,
}

/// The access log of one thread, the recent requests, and the names that both contain.
pub(crate) struct LogContext<'a> {
    /// `None`: no requests are logged.
    pub(crate) log: &'a mut Option<ThreadLog>,
    pub(crate) recent: Option<&'a RecentRequests>,
    pub(crate) targets: &'a Targets,
}

impl AccessRecord {
    /// Begins the line of a request; `None` if its head is not valid.
    pub(super) fn begin(
        &mut self,
        log: &mut Option<ThreadLog>,
        request: Option<&Request<'_>>,
        now: Instant,
    ) {
        self.pending = log.as_mut().map(|log| log.begin(request, now));
        (self.response, self.body_at, self.target) = (None, 0, None);
        self.request.set(request, now);
    }

    /// Records the target of the connection over which the request is sent.
    pub(super) fn set_target(&mut self, index: usize) {
        self.target = Some(index);
    }

    /// Records the status of the final response, and the number of bytes written to the client
    /// before its body.
    pub(super) fn begin_response(&mut self, status: u16, body_at: u64, now: Instant) {
        self.response = Some((status, now));
        self.body_at = body_at;
    }

    /// Writes the line, if an exchange is in progress, and adds the request to the recent ones if it
    /// was slow or has an error. `written_bytes` is the number of bytes written to the client.
    pub(super) fn end(
        &mut self,
        client: Option<IpAddr>,
        written_bytes: u64,
        context: LogContext<'_>,
        now: Instant,
    ) {
        let target = self.target.map(|index| context.targets.name(index));
        let client = client.map(|address| address.to_canonical());
        let received = self.request.received.take();
        if let (Some(recent), Some(received), Some((status, begun))) =
            (context.recent, received, self.response)
        {
            let duration = begun.saturating_duration_since(received);
            if recent.includes(status, duration) {
                let request = self.request.to_recent(status, duration, client, target);
                recent.add(request, recent.is_slow(duration));
            }
        }
        let Some(record) = self.pending.take() else { return };
        let Some(log) = context.log else { return };
        let outcome = RequestOutcome {
            peer: client,
            status: self.response.map_or(NO_RESPONSE, |(status, _)| status),
            body_bytes: self.response.map_or(0, |_| written_bytes.saturating_sub(self.body_at)),
            source: Some((TARGET_FIELD, target)),
        };
        log.end(record, outcome, now);
    }
}

impl RequestLine {
    /// Copies the method and the path of a request; `None` if its head is not valid.
    fn set(&mut self, request: Option<&Request<'_>>, now: Instant) {
        self.received = request.map(|_| now);
        self.method.clear();
        self.path.clear();
        if let Some(request) = request {
            let target = request.target.path();
            self.method.push_str(request.method);
            self.path.push_str(target.split_once('?').map_or(target, |(path, _)| path));
        }
    }

    fn to_recent(
        &self,
        status: u16,
        duration: Duration,
        client: Option<IpAddr>,
        target: Option<&str>,
    ) -> RecentRequest {
        RecentRequest {
            ended: SystemTime::now(),
            kind: self.method.as_str().into(),
            path: self.path.as_str().into(),
            status,
            duration,
            answering: None,
            details: vec![
                ("client", client.map(|client| client.to_string().into())),
                (TARGET_FIELD, target.map(Into::into)),
            ],
        }
    }
}

/// Writes the line of a connection that was refused with this response, of which the client got the
/// first `sent_bytes` bytes.
pub(crate) fn log_refusal(
    log: &mut Option<ThreadLog>,
    client: Option<IpAddr>,
    response: &[u8],
    sent_bytes: usize,
    now: Instant,
) {
    let Some(log) = log else { return };
    let record = log.begin(None, now);
    let outcome = RequestOutcome {
        peer: client.map(|address| address.to_canonical()),
        status: if sent_bytes > 0 { 503 } else { NO_RESPONSE },
        body_bytes: sent_bytes.saturating_sub(head_bytes(response)) as u64,
        source: Some((TARGET_FIELD, None)),
    };
    log.end(record, outcome, now);
}

/// Returns the length of the head of a response.
pub(super) fn head_bytes(response: &[u8]) -> usize {
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    end.map_or(response.len(), |at| at + 4)
}
