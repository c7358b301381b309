//! The admin address: the console, the statistics and their history as JSON, Prometheus metrics,
//! health checks, and the console's S3 requests.

pub(crate) mod account;
mod console;
mod cookie;
mod events;
mod key_change;
pub(crate) mod keys;
mod login;
mod members;
pub(crate) mod operation;
mod page;
pub(crate) mod pending_logins;
mod policy_change;
mod presign;
mod prometheus;
mod provider_login;
pub(crate) mod sessions;
mod statistics;
mod volume_map;

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use haul_admin_endpoint::{History, Overview, Span};
use haul_file_store::{OngoingFailure, Stats, WorkKind};
use haul_http_engine::{Connections, PeerRate, RequestBody};
use haul_reactor::RateLimit;
use http::header::{ALLOW, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::access::authorize::Principal;
use crate::access::caller::Caller;
use crate::access::keys::key_file::KeyFile;
use crate::access::keys::key_ring::AllKeys;
use crate::admin::keys::{KeyLog, KeyPage};
use crate::admin::login::{LOGIN, LOGIN_PROVIDERS, LoginStep, Logins};
use crate::admin::page::{
    JSON, Rejection, Sender, error_response, json_page, login_page, page, plain, respond,
};
use crate::admin::pending_logins::PendingLogins;
use crate::admin::presign::Link;
use crate::admin::sessions::{Proof, Sessions};
use crate::config::Addresses;
use crate::events::target::EventTargets;
use crate::hot::HotObjects;
use crate::memory::PeerMemory;
use crate::metrics::Metrics;
use crate::oidc::config::REDIRECT_PATH;
use crate::oidc::provider::Providers;
use crate::served::ServedStore;

/// The path to which key changes are posted.
const KEYS: &str = "/keys";

/// The path to which a request for delivery without delay is posted.
const RETRY: &str = "/events/retry";

/// The path to which a logout is posted.
const LOGOUT: &str = "/logout";

/// The volume map's path.
const VOLUMES: &str = "/volumes.json";

/// The handler of requests to the admin address.
pub(crate) struct Admin {
    pub(crate) store: Arc<ServedStore>,
    pub(crate) metrics: Arc<Metrics>,
    /// The keys with which clients log in, which public addresses require.
    pub(crate) keys: AllKeys,
    pub(crate) sessions: Sessions,
    /// The OpenID Connect providers with which users log in.
    pub(crate) providers: Option<Arc<Providers>>,
    pub(crate) pending_logins: PendingLogins,
    pub(crate) login_limit: RateLimit,
    /// The key file, which the console changes.
    pub(crate) key_file: Option<Arc<dyn KeyFile>>,
    pub(crate) addresses: Addresses,
    /// The connections that send S3 and plain HTTP requests.
    pub(crate) connections: Arc<Connections<PeerMemory>>,
    /// The S3 request rate of each client.
    pub(crate) peer_rate: Option<Arc<PeerRate>>,
    pub(crate) hot: Arc<HotObjects>,
    pub(crate) events: Option<Arc<EventTargets>>,
    /// Locked while the volume map is read.
    pub(crate) map_lock: Mutex<()>,
    /// The values in the last 24 hours.
    pub(crate) history: Arc<History>,
}

/// The means of responding to a request to the admin address.
pub(crate) enum Answer {
    Page(Response<Bytes>),
    /// An S3 request and its client, whose response must be [confined](operation::confine).
    S3(Request<RequestBody>, Principal),
    /// The response of [`Admin::volumes`].
    Volumes,
    /// The response of [`Admin::change_keys`].
    Keys(Request<RequestBody>, Caller),
    /// The response of [`Admin::log_in`].
    LogIn(LoginStep, Request<RequestBody>),
}

/// Returns the present values, for the console's charts.
pub(crate) fn overview(
    store: &ServedStore,
    metrics: &Metrics,
    connections: &Connections<PeerMemory>,
) -> Overview {
    console::overview(&store.load().stats(), metrics, connections.stats().open)
}

impl Admin {
    /// Returns the response to a request, or the S3 request that it contains.
    pub(crate) fn answer(&self, request: Request<RequestBody>) -> Answer {
        let sender = Sender::of(&request);
        match self.answer_any(request) {
            Answer::Page(response) => Answer::Page(sender.adapt(response)),
            other => other,
        }
    }

    fn answer_any(&self, request: Request<RequestBody>) -> Answer {
        let path = request.uri().path();
        if path == VOLUMES && request.method() == Method::GET {
            return match self.volumes_rejection(&request) {
                Some(refused) => Answer::Page(error_response(refused)),
                None => Answer::Volumes,
            };
        }
        if path == KEYS && request.method() == Method::POST {
            return match self.caller(&request) {
                Ok(caller) => Answer::Keys(request, caller),
                Err(refused) => Answer::Page(error_response(refused)),
            };
        }
        if path == RETRY && request.method() == Method::POST {
            return Answer::Page(self.retry_events(&request).unwrap_or_else(error_response));
        }
        if request.method() == Method::POST
            && let Some(step) = LoginStep::at(path)
        {
            return Answer::LogIn(step, request);
        }
        if path == LOGOUT && request.method() == Method::POST {
            return Answer::Page(self.log_out(&request));
        }
        if !operation::is_operation(path) {
            return Answer::Page(self.page(&request));
        }
        match self.caller(&request) {
            Ok(caller) => match operation::to_s3(request) {
                Some(request) => Answer::S3(request, caller.principal),
                None => Answer::Page(plain(StatusCode::BAD_REQUEST, "The path is not valid\n")),
            },
            Err(refused) => Answer::Page(error_response(refused)),
        }
    }

    /// Makes the next attempts to deliver events follow at once.
    fn retry_events(&self, request: &Request<RequestBody>) -> Result<Response<Bytes>, Rejection> {
        let caller = self.caller(request)?;
        if !key_change::may_change(&caller.principal, self.keys.administrator.is_some()) {
            return Err((StatusCode::FORBIDDEN, "Only the administrator may retry events\n"));
        }
        if let Some(targets) = &self.events {
            targets.retry();
        }
        Ok(json_page(&self.events_json()))
    }

    fn events_json(&self) -> Value {
        let pool = self.store.load();
        self.events
            .as_ref()
            .map_or(Value::Array(Vec::new()), |targets| events::json(&pool, targets))
    }

    /// Returns the reason to reject a request for the volume map, which costs disk reads.
    fn volumes_rejection(&self, request: &Request<RequestBody>) -> Option<Rejection> {
        let (path, headers) = (request.uri().path(), request.headers());
        let foreign = operation::foreign(request.method(), headers);
        let foreign = foreign.map(|reason| (StatusCode::FORBIDDEN, reason));
        foreign.or_else(|| self.logins().rejection(self.is_loopback(), path, headers))
    }

    /// Returns the volume map: the live and dead parts of the volumes. Only one request at a time
    /// reads it.
    pub(crate) async fn volumes(&self) -> Response<Bytes> {
        let Ok(_reads) = self.map_lock.try_lock() else {
            let text = "The map is being read for another page: try again later\n";
            return plain(StatusCode::SERVICE_UNAVAILABLE, text);
        };
        let store = self.store.get();
        let read = spawn_blocking(move || store.volume_maps().map(|maps| volume_map::json(&maps)));
        let reason = match read.await {
            Ok(Ok(json)) => return json_page(&json),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let text = format!("The volumes cannot be read: {reason}\n");
        respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", text)
    }

    /// Returns `true` for an address that only clients on this machine can reach.
    fn is_loopback(&self) -> bool {
        self.addresses.admin.ip().is_loopback()
    }

    fn logins(&self) -> Logins<'_> {
        Logins { keys: &self.keys, sessions: &self.sessions }
    }

    fn key_page(&self) -> KeyPage {
        let used = self.store.load().owner_quotas();
        KeyPage { keys: self.keys.clone(), file: self.key_file.clone(), used }
    }

    /// Changes the key file as requested.
    pub(crate) async fn change_keys(
        &self,
        request: Request<RequestBody>,
        caller: Caller,
        log: KeyLog,
    ) -> Response<Bytes> {
        let response = self.key_page().change(request.into_body(), caller.principal, log).await;
        self.sessions.end_revoked(&self.keys);
        response
    }

    /// Returns the client that sent a console request, with its user's rights.
    fn caller(&self, request: &Request<RequestBody>) -> Result<Caller, Rejection> {
        if let Some(reason) = operation::foreign(request.method(), request.headers()) {
            return Err((StatusCode::FORBIDDEN, reason));
        }
        let is_download = operation::is_download(request.method(), request.uri().path());
        let proof = if is_download { Proof::Cookie } else { Proof::Page };
        self.logins().login(request.headers(), proof).map(Caller::new)
    }

    fn page(&self, request: &Request<RequestBody>) -> Response<Bytes> {
        let path = request.uri().path();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let is_check = matches!(path, "/health" | "/ready");
        let refused = self.logins().rejection(self.is_loopback(), path, request.headers());
        if let Some(refused) = refused
            && !is_check
        {
            return error_response(refused);
        }
        match path {
            "/" => page(),
            LOGIN if !self.keys.is_empty() => login_page(),
            _ if path.starts_with(REDIRECT_PATH) && !self.keys.is_empty() => login_page(),
            LOGIN_PROVIDERS => json_page(&self.login_providers_json()),
            "/session.json" => json_page(&self.session_json(request.headers())),
            "/history.json" => self.history(request.uri().query()),
            "/requests.json" => self.recent_requests(request).unwrap_or_else(error_response),
            "/stats.json" => json_page(&self.stats_json()),
            "/buckets.json" => self.buckets(),
            "/events.json" => json_page(&self.events_json()),
            "/keys.json" => match self.caller(request) {
                Ok(caller) => {
                    self.key_page().page(&caller.principal).unwrap_or_else(error_response)
                }
                Err(refused) => error_response(refused),
            },
            "/presign" => self.presign(request).unwrap_or_else(error_response),
            "/metrics" => self.metrics_page(),
            "/health" | "/ready" => self.check(path == "/health"),
            _ => match console::file(path) {
                Some((content_type, text)) => respond(StatusCode::OK, content_type, text),
                None => plain(
                    StatusCode::NOT_FOUND,
                    "The paths are /, /login, /session.json, /history.json, /requests.json, \
                     /stats.json, /buckets.json, /events.json, /keys.json, /volumes.json, \
                     /metrics, /health and /ready\n",
                ),
            },
        }
    }

    fn metrics_page(&self) -> Response<Bytes> {
        let mut text = prometheus::text(
            &self.store.load().stats(),
            &self.metrics,
            (&self.connections.stats(), self.refused_requests()),
            &self.hot.stats(),
            self.free(),
            self.store.load().replication_status().as_ref(),
            self.keys.ring.as_ref().map(|_| self.key_failure().is_some()),
        );
        let store = self.store.load();
        text.push_str(&prometheus::quotas(&store.quotas(), &store.owner_quotas()));
        text.push_str(&members::metrics(&store));
        if let Some(targets) = &self.events {
            text.push_str(&events::metrics(&store, targets));
        }
        respond(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
    }

    /// Returns the response to a health check.
    fn check(&self, is_health: bool) -> Response<Bytes> {
        const TEXT: &str = "text/plain; charset=utf-8";
        let store = self.store.load();
        let stats = store.stats();
        // The failure of one of several disks concerns only its keys.
        if stats.latched && store.own_store().is_some() {
            let text = "A sync failed: writes are refused until the server is restarted\n";
            return plain(StatusCode::SERVICE_UNAVAILABLE, text);
        }
        if let Some(reason) = self.stopped_copy() {
            let text = format!("The copy of the store has ended: {reason}; writes fail\n");
            return respond(StatusCode::SERVICE_UNAVAILABLE, TEXT, text);
        }
        if self.has_no_lease() {
            let text = "The lease of the copy ran out: writes are refused until it is renewed\n";
            return plain(StatusCode::SERVICE_UNAVAILABLE, text);
        }
        let failures = store.ongoing_failures();
        let mut parts = members::health(&store);
        if let Some(targets) = &self.events {
            parts += &events::health(&store, targets);
        }
        let text = match is_health {
            true => health(&stats, &failures, self.key_failure().as_deref()),
            // A draining server does not listen on this address.
            false => ready(&failures),
        };
        let text = if parts.is_empty() { text } else { parts + text.trim_start_matches("ok\n") };
        respond(StatusCode::OK, TEXT, text)
    }

    /// Returns the recent requests, for clients that may change keys: the paths contain object
    /// names.
    fn recent_requests(
        &self,
        request: &Request<RequestBody>,
    ) -> Result<Response<Bytes>, Rejection> {
        let caller = self.caller(request)?;
        if !key_change::may_change(&caller.principal, self.keys.administrator.is_some()) {
            return Err((StatusCode::FORBIDDEN, "Only the administrator may read requests\n"));
        }
        Ok(json_page(&self.metrics.recent.json()))
    }

    /// Returns the buckets and their sizes.
    fn buckets(&self) -> Response<Bytes> {
        match statistics::buckets_json(&self.store.load()) {
            Ok(buckets) => json_page(&buckets),
            Err(error) => {
                let text = format!("The buckets are not known: {error}\n");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                respond(status, "text/plain; charset=utf-8", text)
            }
        }
    }

    /// Returns a link to an object, with the rights of the key that logged in.
    fn presign(&self, request: &Request<RequestBody>) -> Result<Response<Bytes>, Rejection> {
        let Some(link) = Link::from_query(request.uri().query()) else {
            let text = "The query has bucket, key, and seconds from 1 to 604800\n";
            return Err((StatusCode::BAD_REQUEST, text));
        };
        let caller = self.caller(request)?;
        let key = match &caller.principal {
            Principal::Key(key) => Some(&**key),
            _ => None,
        };
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let host = self.addresses.listen_host(host.unwrap_or_default());
        let scheme = if self.addresses.has_tls { "https" } else { "http" };
        let url = link.url((scheme, &host), key, OffsetDateTime::now_utc());
        let text = (StatusCode::INTERNAL_SERVER_ERROR, "The link could not be signed\n");
        let url = url.ok_or(text)?;
        Ok(respond(StatusCode::OK, "text/plain; charset=utf-8", url))
    }

    /// Returns the present values, for the console's charts.
    pub(crate) fn overview(&self) -> Overview {
        overview(&self.store, &self.metrics, &self.connections)
    }

    fn history(&self, query: Option<&str>) -> Response<Bytes> {
        let Some(span) = Span::from_query(query) else {
            let text = "The query is span=now, span=hour or span=day\n";
            return plain(StatusCode::BAD_REQUEST, text);
        };
        let (uptime, now, current) = (self.metrics.uptime(), SystemTime::now(), self.overview());
        let text = self.history.json(span, uptime, now, &current);
        respond(StatusCode::OK, JSON, text)
    }

    /// Returns the reason why the last attempt to read the key file failed; `None` if it succeeded.
    fn key_failure(&self) -> Option<Arc<String>> {
        self.keys.ring.as_ref().and_then(|ring| ring.failure())
    }

    fn refused_requests(&self) -> u64 {
        self.peer_rate.as_ref().map_or(0, |rate| rate.limit.refused())
    }

    /// Returns the size of the store's file systems and their free space, in bytes.
    fn free(&self) -> Option<(u64, u64)> {
        members::total_space(&self.store.load())
    }

    /// Returns the reason why replication has stopped, if it has. That of one of several disks
    /// concerns only its keys.
    fn stopped_copy(&self) -> Option<String> {
        self.store.load().own_store()?.replication_status()?.stopped
    }

    /// Returns `true` if the store is replicated with a lease, and the lease has run out.
    fn has_no_lease(&self) -> bool {
        let status = self.store.load().replication_status();
        status.and_then(|status| status.lease).is_some_and(|left| left.is_zero())
    }

    fn stats_json(&self) -> Value {
        let (file_system_bytes, free_bytes) = self.free().unzip();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "address": self.addresses.listen.to_string(),
            "directory": self.store.load().dir().display().to_string(),
            "uptime_s": self.metrics.uptime().as_secs_f64(),
            "in_flight": self.metrics.in_flight(),
            "received_bytes": self.metrics.received_bytes(),
            "sent_bytes": self.metrics.sent_bytes(),
            "requests": self.metrics.requests().map(|seen| statistics::request_json(&seen)).collect::<Vec<_>>(),
            "store": statistics::store_json(&self.store.load().stats()),
            "replication": self.store.load().replication_status().map(|status| statistics::replication_json(&status)),
            "lifecycle_error": self.store.load().last_lifecycle_error(),
            "file_system_bytes": file_system_bytes,
            "free_bytes": free_bytes,
            "disks": members::json(&self.store.load()),
            "events": self.events_json(),
        })
    }
}

/// Returns the body of `/ready` for a server that accepts requests. The status is 200 even if
/// changes may fail: reads still succeed, and no other server has the space that this one lacks.
fn ready(failures: &[OngoingFailure]) -> String {
    if failures.is_empty() {
        return "ok\n".to_owned();
    }
    let line = |OngoingFailure { work, reason, .. }: &OngoingFailure| {
        format!("degraded: {} fails: {reason}; it is tried again\n", name(*work))
    };
    failures.iter().map(line).collect()
}

/// Returns the name for `work` in a sentence.
fn name(work: WorkKind) -> &'static str {
    match work {
        WorkKind::Changes => "storing objects",
        WorkKind::BigObjects => "storing big objects",
        _ => work.name(),
    }
}

/// Returns the body of `/health` for a server that accepts writes. The status is 200 even if data
/// is corrupt: another server does not have the objects either.
fn health(stats: &Stats, failures: &[OngoingFailure], key_failure: Option<&String>) -> String {
    let mut text = String::new();
    if let Some(why) = key_failure {
        text += &format!("degraded: {why}; the keys of before remain in force\n");
    }
    if !failures.is_empty() {
        text += &ready(failures);
    }
    match (stats.damaged_locations, stats.hidden_ranges) {
        (0, _) => {}
        (places, 0) => {
            text += &format!(
                "degraded: {places} damaged places; requests for objects there fail, all others \
                 are unaffected (\"haul store verify\" lists the objects)\n"
            );
        }
        (places, hidden) => {
            text += &format!(
                "degraded: {places} damaged places, {hidden} of them held objects whose keys are \
                 unknown; listings, and requests for keys that may have been there, fail (see \
                 \"haul store accept-damage\")\n"
            );
        }
    }
    if text.is_empty() { "ok\n".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn health_has_a_line_for_each_reason() {
        let stats = |damaged_locations, hidden_ranges| Stats {
            damaged_locations,
            hidden_ranges,
            ..Stats::default()
        };
        let (reason, error) = ("the disk is full".to_owned(), "/d/1: the disk is full".to_owned());
        let full = OngoingFailure { work: WorkKind::Changes, reason, error, since: Instant::now() };
        let why = "it is damaged".to_owned();
        assert_eq!(health(&stats(0, 0), &[], None), "ok\n");
        assert_eq!(ready(&[]), "ok\n");
        let text = health(&stats(2, 0), std::slice::from_ref(&full), Some(&why));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "degraded: it is damaged; the keys of before remain in force");
        assert_eq!(
            lines[1],
            "degraded: storing objects fails: the disk is full; it is tried again"
        );
        assert!(lines[2].starts_with("degraded: 2 damaged places; "), "{text}");
        assert_eq!((lines.len(), ready(&[full])), (3, format!("{}\n", lines[1])));
        let text = health(&stats(2, 1), &[], None);
        assert!(text.contains("1 of them held objects whose keys are unknown"), "{text}");
    }
}
