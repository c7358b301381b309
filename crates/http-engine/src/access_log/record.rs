//! Collects what the log line of a request needs, while the engine responds.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use haul_http1::Request;

use super::destination::AccessLog;
use super::fields::{LogFormat, LoggedRequest, LoggedResponse, NO_RESPONSE};
use super::line::{LogDates, PendingLine};

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
pub(crate) struct Record {
    line: PendingLine,
    identity: Option<RequestIdentity>,
    /// 0 until the response begins.
    status: u16,
    /// Bytes that precede the body of the response.
    head_bytes: u64,
    sent_bytes: u64,
}

impl Record {
    pub(crate) fn set_status(&mut self, status: u16) {
        self.status = status;
    }

    /// Notes that the response failed; a status that was sent remains.
    pub(crate) fn fail(&mut self) {
        if self.status == 0 {
            self.status = 500;
        }
    }

    pub(crate) fn identify(&mut self, identity: Option<RequestIdentity>) {
        self.identity = identity;
    }

    /// Notes bytes that are not part of the body.
    pub(crate) fn add_head(&mut self, bytes: usize) {
        self.head_bytes += bytes as u64;
    }

    /// Notes bytes that the socket took.
    pub(crate) fn add_sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }
}

/// Writes the lines of one thread.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) dates: LogDates,
    line: Vec<u8>,
    /// The memory of a completed line.
    spare: PendingLine,
}

impl Recorder {
    /// Begins the record of a request; `None` if its head was not valid.
    pub(crate) fn begin(
        &mut self,
        format: LogFormat,
        request: Option<&Request<'_>>,
        now: Instant,
    ) -> Record {
        let mut record = Record { line: std::mem::take(&mut self.spare), ..Record::default() };
        let request = request.map(|request| {
            let mut logged = LoggedRequest::of(request);
            if format != LogFormat::Common {
                for field in request.fields {
                    match field.name.len() {
                        7 if field.is("referer") => logged.referer = Some(field.value),
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
    pub(crate) fn end(&mut self, log: &AccessLog, peer: Option<IpAddr>, record: Record) {
        let identity = record.identity.as_ref();
        let response = LoggedResponse {
            peer,
            user: identity.and_then(|identity| identity.user.as_deref()).map(str::as_bytes),
            date: self.dates.in_format(log.format),
            status: if record.status == 0 { NO_RESPONSE } else { record.status },
            bytes: record.sent_bytes.saturating_sub(record.head_bytes),
            duration: record.line.elapsed(),
            fields: &[("request_id", identity.map(|identity| &identity.id[..]))],
        };
        record.line.end(&mut self.line, &response);
        log.lines.append(&self.line);
        self.spare = record.line;
    }
}
