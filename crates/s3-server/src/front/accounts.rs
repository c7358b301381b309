//! The accounting for a request: counts it, ends its audit log line, logs it if it was slow, and
//! records it for the console if it was slow or failed.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use haul_admin_endpoint::RecentRequest;
use haul_http_engine::{Arrival, BoxError, RequestIdentity};
use http::{Response, StatusCode};

use crate::access::authorize::Principal;
use crate::access::decision::Basis;
use crate::access::facts::Connection;
use crate::access::keys::names::ANONYMOUS;
use crate::answer::Content;
use crate::audit::{AuditRecord, Changes};
use crate::bucket_logs::logged::LoggedRequest;
use crate::errors::{S3Error, S3ErrorCode, chain};
use crate::events::requester::Requester;
use crate::front::cors;
use crate::front::respond::{Outcome, response};
use crate::front::response::{Counted, InFlight};
use crate::metrics::{Kind, Metrics};
use crate::request::head::Head;
use crate::request::operation::Operation;
use crate::settings::cors::AllowHeaders;

/// The accounting for a request in progress.
pub(super) struct Accounts {
    kind: Kind,
    path: Box<str>,
    started: Instant,
    identity: RequestIdentity,
    audited: Option<AuditRecord>,
    logged: Option<LoggedRequest>,
    changes: Option<Changes>,
    in_flight: InFlight,
}

impl Accounts {
    pub(super) fn begin(
        metrics: &Arc<Metrics>,
        head: &Head,
        operation: Option<Operation>,
        started: Instant,
        identity: RequestIdentity,
        audited: Option<AuditRecord>,
        mut logged: Option<LoggedRequest>,
    ) -> Self {
        let kind = Kind::of(operation, &head.method);
        let in_flight = InFlight::begin(metrics);
        let changes = audited.as_ref().map(AuditRecord::changes);
        let changes = match &mut logged {
            Some(logged) => Some(logged.prepare(changes)),
            None => changes,
        };
        let path = head.raw_path().into();
        Self { kind, path, started, identity, audited, logged, changes, in_flight }
    }

    /// Returns the list to which the operation adds its changes.
    pub(super) fn changes(&self) -> Option<Changes> {
        self.changes.clone()
    }

    /// Returns the requester, as events name it.
    pub(super) fn requester(&self, principal: &Principal, connection: &Connection) -> Requester {
        let user = match principal {
            Principal::Key(key) => key.user.clone(),
            Principal::Anonymous(_) => Some(ANONYMOUS.into()),
            Principal::Open => None,
        };
        Requester { request_id: self.identity.id, user, peer: connection.peer }
    }

    /// Notes the client, after its signature is verified.
    pub(super) fn note_client(&mut self, principal: &Principal) {
        if let Some(logged) = &mut self.logged {
            logged.note_client(principal);
        }
    }

    /// Notes the reason why the client may execute its operation.
    pub(super) fn note_basis(&mut self, basis: Basis) {
        if let Some(logged) = &mut self.logged {
            logged.note_basis(basis);
        }
    }

    /// Ends the request with its operation's outcome. `page` has the headers that allow a web page
    /// to use the response, and `arrival` has the end of the request body.
    pub(super) fn end(
        mut self,
        head: &Head,
        outcome: Outcome,
        page: Option<&AllowHeaders>,
        arrival: &Arrival,
    ) -> Result<Response<Counted>, BoxError> {
        let id = self.identity.id;
        let id = str::from_utf8(&id).unwrap_or_default();
        let Outcome { mut answer, error } = outcome;
        if let Some(allowed) = page {
            cors::add(&mut answer.headers, allowed);
        }
        let status = answer.status;
        let code = error.as_ref().map(S3Error::code);
        if let Some(audited) = self.audited.take() {
            audited.end(status, code);
        }
        let now = Instant::now();
        if let Some(error) = &error {
            self.log_failure(error, now);
        }
        self.in_flight.0.answered(self.kind, status, now - self.started);
        let received = arrival.ended();
        let [receiving, answering] = times(self.started, received.unwrap_or(now), now);
        let is_slow = received.is_some() && self.in_flight.0.recent.is_slow(answering);
        if is_slow {
            self.log_slow(status, receiving, answering);
        }
        if let Some(logged) = &mut self.logged {
            let bytes = content_bytes(&answer.content);
            logged.answered(status, &answer.headers, code, bytes, answering);
        }
        if is_slow || is_error(status) {
            self.record(status, code, now - self.started, (answering, is_slow));
        }
        let mut response = response(answer, head, id);
        response.extensions_mut().insert(self.identity);
        let (in_flight, logged) = (self.in_flight, self.logged);
        Ok(response.map(|body| Counted::new(body, in_flight, logged)))
    }

    /// Logs a failure that the operator must know, such as corruption, or the reason why the store
    /// rejects requests, such as a failed sync. The number of lines about rejections is limited,
    /// because all further requests may be rejected for the same reason.
    fn log_failure(&self, error: &S3Error, now: Instant) {
        let id = str::from_utf8(&self.identity.id).unwrap_or_default();
        let (response, code) = (error.to_string(), error.code());
        // The cause is logged only, because the response does not name files on the server.
        let cause = error.source().map(chain);
        let cause = cause.as_deref();
        match code {
            S3ErrorCode::InternalError => {
                tracing::error!(id, %response, cause, "a request failed");
            }
            S3ErrorCode::ServiceUnavailable | S3ErrorCode::StorageFull
                if self.in_flight.0.refusals.permits(code, now) =>
            {
                tracing::error!(id, %response, cause, "requests are refused");
            }
            _ => {}
        }
    }

    /// Logs a request for which the server took long. The time for receiving the body does not
    /// count.
    fn log_slow(&self, status: StatusCode, receiving: Duration, answering: Duration) {
        self.in_flight.0.slow();
        tracing::warn!(
            id = str::from_utf8(&self.identity.id).unwrap_or_default(),
            user = self.identity.user.as_deref(),
            kind = self.kind.name(),
            path = &*self.path,
            status = status.as_u16(),
            receiving_ms = millis(receiving),
            answering_ms = millis(answering),
            "a slow request"
        );
    }

    /// Records the request for the console.
    fn record(
        &mut self,
        status: StatusCode,
        code: Option<S3ErrorCode>,
        duration: Duration,
        (answering, is_slow): (Duration, bool),
    ) {
        let id = str::from_utf8(&self.identity.id).unwrap_or_default();
        let code = code.map(S3ErrorCode::as_str).unwrap_or_default();
        let details = vec![
            ("code", Some(code.into())),
            ("access_key", self.identity.user.as_deref().map(Into::into)),
            ("id", Some(id.into())),
        ];
        let request = RecentRequest {
            ended: SystemTime::now(),
            kind: self.kind.name().into(),
            path: std::mem::take(&mut self.path),
            status: status.as_u16(),
            duration,
            answering: Some(answering),
            details,
        };
        self.in_flight.0.recent.add(request, is_slow);
    }
}

/// Returns the length of a response's content; for HEAD, the length in the response to a GET.
fn content_bytes(content: &Content) -> Option<u64> {
    match content {
        Content::Bytes(bytes) => Some(bytes.len() as u64),
        Content::Object(body) => haul_http_engine::ResponseBody::bytes_left(body),
        Content::Events(_) => None,
        Content::Head(bytes) => Some(*bytes),
    }
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Returns the time for receiving a request's body, and the time for responding to it. The body may
/// have arrived before the request started, together with its head.
fn times(started: Instant, received: Instant, answered: Instant) -> [Duration; 2] {
    let received = received.max(started);
    [received - started, answered.saturating_duration_since(received)]
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_the_client_is_not_the_time_for_the_answer() {
        let started = Instant::now();
        let at = |seconds| started + Duration::from_secs(seconds);
        for (received, answered, expected) in [(at(0), at(2), [0, 2]), (at(9), at(10), [9, 1])] {
            assert_eq!(times(started, received, answered), expected.map(Duration::from_secs));
        }
        assert_eq!(times(at(5), at(4), at(6)), [0, 1].map(Duration::from_secs));
    }
}
