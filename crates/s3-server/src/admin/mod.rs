//! The admin address: the console, the statistics and their history as JSON, Prometheus metrics,
//! and health checks. All of it is read-only.

mod console;
mod login;
mod prometheus;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use haul_admin_endpoint::{CONSOLE_POLICY, History, Overview, Span};
use haul_file_store::{LifecycleStats, ReplicationStatus, Stats};
use haul_http_engine::{Connections, PeerRate, RequestBody};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::access::key_ring::AllKeys;
use crate::body::memory::PeerMemory;
use crate::config::Addresses;
use crate::front::hot::HotObjects;
use crate::metrics::{Metrics, RequestCounts};
use crate::served::ServedStore;

/// The handler of requests to the admin address.
pub(crate) struct Admin {
    pub(crate) store: Arc<ServedStore>,
    pub(crate) metrics: Arc<Metrics>,
    /// The keys for HTTP Basic authentication, which public addresses require.
    pub(crate) keys: AllKeys,
    pub(crate) addresses: Addresses,
    /// The connections of S3 and plain HTTP.
    pub(crate) connections: Arc<Connections<PeerMemory>>,
    /// The rate of S3 requests of each client.
    pub(crate) peer_rate: Option<Arc<PeerRate>>,
    pub(crate) hot: Arc<HotObjects>,
    /// The values of the last 24 hours.
    pub(crate) history: Arc<History>,
}

/// Returns the values of the console at this time.
pub(crate) fn overview(
    store: &ServedStore,
    metrics: &Metrics,
    connections: &Connections<PeerMemory>,
) -> Overview {
    console::overview(&store.load().stats(), metrics, connections.stats().open)
}

impl Admin {
    /// Returns the response to a request.
    pub(crate) fn answer(&self, request: &Request<RequestBody>) -> Response<Bytes> {
        let path = request.uri().path();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let is_check = matches!(path, "/health" | "/ready");
        let keys = (!self.addresses.admin.ip().is_loopback()).then_some(&self.keys);
        if let Some((status, text)) = login::refusal(keys, path, request.headers())
            && !is_check
        {
            let mut response = plain(status, text);
            if status == StatusCode::UNAUTHORIZED {
                let basic = HeaderValue::from_static("Basic realm=\"haul\", charset=\"UTF-8\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, basic);
            }
            return response;
        }
        match path {
            "/" => page(),
            "/history.json" => self.history(request.uri().query()),
            "/stats.json" => {
                let text = self.stats_json().to_string();
                respond(StatusCode::OK, "application/json", text)
            }
            "/metrics" => {
                let text = prometheus::text(
                    &self.store.load().stats(),
                    &self.metrics,
                    (&self.connections.stats(), self.refused_requests()),
                    &self.hot.stats(),
                    self.free(),
                    self.store.load().replication_status().as_ref(),
                    self.keys.ring.as_ref().map(|_| self.key_failure().is_some()),
                );
                respond(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
            }
            "/health" | "/ready" if self.store.load().stats().latched => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "A sync failed: writes are refused until the server is restarted\n",
            ),
            "/health" | "/ready" if self.stopped_copy().is_some() => {
                let reason = self.stopped_copy().unwrap_or_default();
                let text = format!("The copy of the store has ended: {reason}; writes fail\n");
                respond(StatusCode::SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", text)
            }
            "/health" | "/ready" if self.has_no_lease() => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "The lease of the copy ran out: writes are refused until it is renewed\n",
            ),
            "/health" => respond(
                StatusCode::OK,
                "text/plain; charset=utf-8",
                health(&self.store.load().stats(), self.key_failure().as_deref()),
            ),
            // A draining server does not listen on this address.
            "/ready" => plain(StatusCode::OK, "ok\n"),
            _ => match console::file(path) {
                Some((content_type, text)) => respond(StatusCode::OK, content_type, text),
                None => plain(
                    StatusCode::NOT_FOUND,
                    "The paths are /, /history.json, /stats.json, /metrics, /health and /ready\n",
                ),
            },
        }
    }

    /// Returns the values that the console draws now.
    pub(crate) fn overview(&self) -> Overview {
        overview(&self.store, &self.metrics, &self.connections)
    }

    fn history(&self, query: Option<&str>) -> Response<Bytes> {
        let Some(span) = Span::of_query(query) else {
            let text = "The query is span=now, span=hour or span=day\n";
            return plain(StatusCode::BAD_REQUEST, text);
        };
        let (uptime, now, current) = (self.metrics.uptime(), SystemTime::now(), self.overview());
        let text = self.history.json(span, uptime, now, &current);
        respond(StatusCode::OK, "application/json", text)
    }

    /// Returns the reason why the key file could not be read, if the last attempt failed.
    fn key_failure(&self) -> Option<Arc<String>> {
        self.keys.ring.as_ref().and_then(|ring| ring.failure())
    }

    fn refused_requests(&self) -> u64 {
        self.peer_rate.as_ref().map_or(0, |rate| rate.limit.refused())
    }

    /// Returns the size and the free bytes of the store's file system.
    fn free(&self) -> Option<(u64, u64)> {
        let status = rustix::fs::statvfs(self.store.load().dir()).ok()?;
        Some((status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize))
    }

    /// Returns the reason why the store is no longer copied, if it was.
    fn stopped_copy(&self) -> Option<String> {
        self.store.load().replication_status().and_then(|status| status.stopped)
    }

    /// `true` if the store has a copy with a lease that has run out.
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
            "requests": self.metrics.requests().map(|seen| request_json(&seen)).collect::<Vec<_>>(),
            "store": store_json(&self.store.load().stats()),
            "replication": self.store.load().replication_status().map(|status| replication_json(&status)),
            "lifecycle_error": self.store.load().last_lifecycle_error(),
            "file_system_bytes": file_system_bytes,
            "free_bytes": free_bytes,
        })
    }
}

fn request_json(seen: &RequestCounts) -> Value {
    json!({
        "kind": seen.kind.name(),
        "by_status": seen.by_status,
        "latency_us": seen.latency,
    })
}

fn store_json(stats: &Stats) -> Value {
    json!({
        "buckets": stats.buckets,
        "objects": stats.objects,
        "object_bytes": stats.object_bytes,
        "uploads": stats.uploads,
        "volumes": stats.volumes,
        "volume_bytes": stats.volume_bytes,
        "live_volume_bytes": stats.live_volume_bytes,
        "dead_volume_bytes": stats.dead_volume_bytes,
        "free_bytes": stats.free_bytes,
        "index_run_bytes": stats.index_run_bytes,
        "index_recent_bytes": stats.index_recent_bytes,
        "big_files": stats.big_files,
        "big_file_bytes": stats.big_file_bytes,
        "pinned_bytes": stats.pinned_bytes,
        "log_records": stats.log_records,
        "log_batches": stats.log_batches,
        "log_syncs": stats.log_syncs,
        "log_written_bytes": stats.log_written_bytes,
        "sync_us": stats.sync_us,
        "latched": stats.latched,
        "damaged_places": stats.damaged_places,
        "hidden_places": stats.hidden_places,
        "scrubbed_bytes": stats.scrubbed_bytes,
        "scrubs": stats.scrubs,
        "lifecycle": lifecycle_json(&stats.lifecycle),
    })
}

fn replication_json(status: &ReplicationStatus) -> Value {
    json!({
        "copied": status.copied.to_string(),
        "behind_s": status.behind.map_or(0.0, |behind| behind.as_secs_f64()),
        "requests": status.requests,
        "sent_bytes": status.sent_bytes,
        "last_error": status.last_error,
        "stopped": status.stopped,
        "lease_s": status.lease.map(|left| left.as_secs_f64()),
    })
}

fn lifecycle_json(stats: &LifecycleStats) -> Value {
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "sweeping": stats.sweeping,
        "sweeps": stats.sweeps,
        "errors": stats.errors,
        "scanned_keys": stats.scanned_keys,
        "expired_objects": stats.expired_objects,
        "expired_bytes": stats.expired_bytes,
        "aborted_uploads": stats.aborted_uploads,
        "skipped": stats.skipped,
        "last_sweep_unix_s": stats.last_sweep.map(|ended| since(ended).as_secs_f64()),
        "last_sweep_s": stats.last_sweep_us as f64 / 1e6,
    })
}

/// Returns the body of `/health` for a server that accepts writes. The status is 200 even if data
/// is damaged: another server does not have the objects either.
fn health(stats: &Stats, key_failure: Option<&String>) -> String {
    if let Some(why) = key_failure {
        let store = health(stats, None);
        return format!("degraded: {why}; the keys of before remain in force\n{store}");
    }
    match (stats.damaged_places, stats.hidden_places) {
        (0, _) => "ok\n".to_owned(),
        (places, 0) => format!(
            "degraded: {places} damaged places; requests for objects there fail, all others are \
             unaffected (\"haul store verify\" lists the objects)\n"
        ),
        (places, hidden) => format!(
            "degraded: {places} damaged places, {hidden} of them held objects whose keys are \
             unknown; listings, and requests for keys that may have been there, fail (see \
             \"haul store accept-damage\")\n"
        ),
    }
}

fn page() -> Response<Bytes> {
    let mut response = respond(StatusCode::OK, "text/html; charset=utf-8", console::page());
    let policy = HeaderValue::from_static(CONSOLE_POLICY);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Bytes> {
    respond(status, "text/plain; charset=utf-8", text)
}

fn respond(
    status: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<Bytes> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_damage_degrades_health() {
        let stats = |damaged_places, hidden_places| Stats {
            damaged_places,
            hidden_places,
            ..Stats::default()
        };
        assert_eq!(health(&stats(0, 0), None), "ok\n");
        assert!(health(&stats(2, 0), None).starts_with("degraded: 2 damaged places; "));
        assert!(
            health(&stats(2, 1), None).contains("1 of them held objects whose keys are unknown")
        );
        let why = "it is damaged".to_owned();
        let text = health(&stats(0, 0), Some(&why));
        assert_eq!(text, "degraded: it is damaged; the keys of before remain in force\nok\n");
    }
}
