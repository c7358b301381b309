//! The accounts of a request: counts it, ends its line in the audit log, logs it if it was slow, and
//! records it for the console if it was slow or had an error.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use haul_admin_endpoint::RecentRequest;
use haul_http_engine::{Arrival, RequestIdentity};
use hyper::http::Extensions;
use hyper::{Response, StatusCode};
use s3s::{Body, StdError};

use crate::audit::{AuditRecord, Changes};
use crate::body::send::BodySlot;
use crate::bucket_logs::logged::LoggedRequest;
use crate::front::answer::finish;
use crate::front::response::{Counted, InFlight, Source};
use crate::front::text::between;
use crate::metrics::{Kind, Metrics};

/// The accounts of a request that is being answered.
pub(super) struct Accounts {
    kind: Kind,
    path: Box<str>,
    started: Instant,
    identity: RequestIdentity,
    audited: Option<AuditRecord>,
    logged: Option<LoggedRequest>,
    in_flight: InFlight,
}

impl Accounts {
    pub(super) fn begin(
        metrics: &Arc<Metrics>,
        (kind, path): (Kind, &str),
        started: Instant,
        identity: RequestIdentity,
        audited: Option<AuditRecord>,
    ) -> Self {
        let (path, in_flight) = (path.into(), InFlight::begin(metrics));
        Self { kind, path, started, identity, audited, logged: None, in_flight }
    }

    /// Records the request in the access log of its bucket.
    pub(super) fn log(&mut self, mut logged: LoggedRequest, extensions: &mut Extensions) {
        logged.prepare(self.changes(), extensions);
        self.logged = Some(logged);
    }

    /// Returns the place where an audited operation adds its changes.
    pub(super) fn changes(&self) -> Option<Changes> {
        self.audited.as_ref().map(AuditRecord::changes)
    }

    /// Ends the request with this response, or with the object in the slot. `arrival` is that of
    /// the body of the request.
    pub(super) fn end(
        mut self,
        mut response: Response<Body>,
        arrival: &Arrival,
        slot: Option<&BodySlot>,
    ) -> Result<Response<Counted>, StdError> {
        finish(&mut response, str::from_utf8(&self.identity.id).unwrap_or_default());
        if let Some(audited) = self.audited.take() {
            audited.end(&response);
        }
        let now = Instant::now();
        self.log_failure(&response, now);
        self.in_flight.0.answered(self.kind, response.status(), now - self.started);
        let received = arrival.ended();
        let [receiving, answering] = times(self.started, received.unwrap_or(now), now);
        let is_slow = received.is_some() && self.in_flight.0.recent.is_slow(answering);
        if is_slow {
            self.log_slow(response.status(), receiving, answering);
        }
        if let Some(logged) = &mut self.logged {
            logged.answered(&response, answering);
        }
        if is_slow || is_error(response.status()) {
            self.record(&response, now - self.started, (answering, is_slow));
        }
        response.extensions_mut().insert(self.identity);
        let object = slot.and_then(BodySlot::take).filter(|_| response.status().is_success());
        let body = |body| object.map_or(Source::Service(body), Source::Object);
        let logged = self.logged;
        Ok(response.map(|of_service| Counted::new(body(of_service), self.in_flight, logged)))
    }

    /// Logs a failure that the operator must learn about, not only the client: mostly damage, or the
    /// reason for which the store refuses requests, such as a failed sync. All further requests may
    /// be refused for the same reason, so that these lines are limited.
    fn log_failure(&self, response: &Response<Body>, now: Instant) {
        let status = response.status();
        if status != StatusCode::INTERNAL_SERVER_ERROR && status != StatusCode::SERVICE_UNAVAILABLE
        {
            return;
        }
        let body = response.body().bytes().unwrap_or_default();
        let response = String::from_utf8_lossy(&body);
        let id = str::from_utf8(&self.identity.id).unwrap_or_default();
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(id, %response, "a request failed");
        } else if between(&response, "<Code>", "</Code>") == "ServiceUnavailable"
            && self.in_flight.0.refusals.permits(now)
        {
            tracing::error!(id, %response, "requests are refused");
        }
    }

    /// Logs a request for which the server took long. The time in which the client sent the body is
    /// not the server's.
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
        response: &Response<Body>,
        duration: Duration,
        (answering, is_slow): (Duration, bool),
    ) {
        let xml = response.body().bytes().filter(|_| is_error(response.status()));
        let xml = xml.unwrap_or_default();
        let code = between(str::from_utf8(&xml).unwrap_or_default(), "<Code>", "</Code>");
        let id = str::from_utf8(&self.identity.id).unwrap_or_default();
        let details = vec![
            ("code", Some(code.into())),
            ("access_key", self.identity.user.as_deref().map(Into::into)),
            ("id", Some(id.into())),
        ];
        let request = RecentRequest {
            ended: SystemTime::now(),
            kind: self.kind.name().into(),
            path: std::mem::take(&mut self.path),
            status: response.status().as_u16(),
            duration,
            answering: Some(answering),
            details,
        };
        self.in_flight.0.recent.add(request, is_slow);
    }
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Returns the times for receiving the body of a request and for answering it. The body may have
/// arrived before the request started, together with its head.
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
