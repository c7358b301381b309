//! Collects what the log line of a request needs, while the engine responds.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use haul_http1::Request;

use super::destination::AccessLog;
use super::fields::{LogFormat, LoggedRequest, LoggedResponse};
use super::line::{LogDates, PendingLine};
use super::redact::without_secrets;

/// The identity of a request in the access log. A handler adds it to the extensions of a response,
/// or passes it to [`ResponseHead::identify`](crate::ResponseHead::identify).
#[derive(Debug, Clone)]
pub struct RequestIdentity {
    /// The identifier of the request.
    pub id: [u8; 16],
    /// The name by which the client authenticates.
    pub user: Option<Arc<str>>,
}

/// A request whose line is not written yet.
#[derive(Debug, Default)]
pub struct Record {
    line: PendingLine,
    identity: Option<RequestIdentity>,
}

impl Record {
    pub(crate) fn identify(&mut self, identity: Option<RequestIdentity>) {
        self.identity = identity;
    }
}

/// The lines whose memory is kept for later requests.
const SPARE_LINES_MAX: usize = 32;

/// Writes the lines of one thread.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) dates: LogDates,
    line: Vec<u8>,
    /// The memory of completed lines.
    spare: Vec<PendingLine>,
}

/// The outcome of a request, for its line.
#[derive(Debug, Clone, Copy)]
pub struct RequestOutcome<'a> {
    /// The address of the client; `None` for a unix socket.
    pub peer: Option<IpAddr>,
    /// The status that was sent; [`NO_RESPONSE`](crate::NO_RESPONSE) if the connection ended before
    /// there was one.
    pub status: u16,
    /// The bytes of the body that the socket took.
    pub body_bytes: u64,
    /// The name in JSON and the value of the last field, in place of the identifier of the request.
    pub source: Option<(&'static str, Option<&'a str>)>,
}

impl Recorder {
    /// Begins the record of a request; `None` if its head was not valid.
    pub(crate) fn begin(
        &mut self,
        format: LogFormat,
        request: Option<&Request<'_>>,
        now: Instant,
    ) -> Record {
        let line = self.spare.pop().unwrap_or_default();
        let mut record = Record { line, identity: None };
        let request = request.map(|request| {
            let mut logged = LoggedRequest::of(request);
            if format != LogFormat::Common {
                for field in request.fields {
                    match field.name.len() {
                        7 if field.is("referer") => {
                            logged.referer = Some(without_secrets(field.value))
                        }
                        10 if field.is("user-agent") => logged.user_agent = Some(field.value),
                        _ => {}
                    }
                }
            }
            logged
        });
        record.line.begin(format, request.as_ref(), now);
        record
    }

    /// Writes the line of a request that has ended.
    pub(crate) fn end(&mut self, log: &AccessLog, record: Record, outcome: RequestOutcome<'_>) {
        let identity = record.identity.as_ref();
        let field = match outcome.source {
            Some((name, value)) => (name, value.map(str::as_bytes)),
            None => ("request_id", identity.map(|identity| &identity.id[..])),
        };
        let response = LoggedResponse {
            peer: outcome.peer,
            user: identity.and_then(|identity| identity.user.as_deref()).map(str::as_bytes),
            date: self.dates.in_format(log.format),
            status: outcome.status,
            bytes: outcome.body_bytes,
            duration: record.line.elapsed(),
            fields: &[field],
        };
        record.line.end(&mut self.line, &response);
        log.lines.append(&self.line);
        if self.spare.len() < SPARE_LINES_MAX {
            self.spare.push(record.line);
        }
    }
}
