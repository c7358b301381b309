//! Collects what the access log line of an exchange needs, while the exchange is forwarded.

use std::net::IpAddr;
use std::time::Instant;

use haul_http_engine::{NO_RESPONSE, Record, RequestOutcome, ThreadLog};
use haul_http1::Request;

use crate::target::Targets;

/// The name of the last field of a line in JSON: the target that received the request last.
const TARGET_FIELD: &str = "upstream";

/// The access log line of the exchange in progress.
#[derive(Debug, Default)]
pub(super) struct AccessRecord {
    /// `None` without an access log, and when no exchange is in progress.
    pending: Option<Record>,
    /// The status of the final response; `None` before it begins.
    status: Option<u16>,
    /// The number of bytes written to the client before the body.
    body_at: u64,
    /// The index of the target of the connection over which the request was sent last.
    target: Option<usize>,
}

/// The access log of one thread and the names that its lines contain.
pub(crate) struct LogContext<'a> {
    /// `None`: no requests are logged.
    pub(crate) log: &'a mut Option<ThreadLog>,
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
        if let Some(log) = log {
            let pending = Some(log.begin(request, now));
            *self = Self { pending, status: None, body_at: 0, target: None };
        }
    }

    /// Records the target of the connection over which the request is sent.
    pub(super) fn set_target(&mut self, index: usize) {
        self.target = Some(index);
    }

    /// Records the status of the final response, and the number of bytes written to the client
    /// before its body.
    pub(super) fn begin_response(&mut self, status: u16, body_at: u64) {
        self.status = Some(status);
        self.body_at = body_at;
    }

    /// Writes the line, if an exchange is in progress. `written_bytes` is the number of bytes
    /// written to the client.
    pub(super) fn end(
        &mut self,
        client: Option<IpAddr>,
        written_bytes: u64,
        context: LogContext<'_>,
        now: Instant,
    ) {
        let Some(record) = self.pending.take() else { return };
        let Some(log) = context.log else { return };
        let target = self.target.map(|index| context.targets.name(index));
        let outcome = RequestOutcome {
            peer: client.map(|address| address.to_canonical()),
            status: self.status.unwrap_or(NO_RESPONSE),
            body_bytes: self.status.map_or(0, |_| written_bytes.saturating_sub(self.body_at)),
            source: Some((TARGET_FIELD, target)),
        };
        log.end(record, outcome, now);
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
