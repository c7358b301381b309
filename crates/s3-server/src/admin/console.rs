//! The console's static files, and the values for its charts.

use haul_admin_endpoint::Unit::{Bytes, Count};
use haul_admin_endpoint::{LatencyStats, Overview, Series, console_file, console_page};
use haul_file_store::Stats;

use crate::metrics::Metrics;

const SERIES: &[Series] = &[
    Series::counter("Requests", "get", Count),
    Series::counter("Requests", "head", Count),
    Series::counter("Requests", "put", Count),
    Series::counter("Requests", "delete", Count),
    Series::counter("Requests", "list", Count),
    Series::counter("Requests", "multipart", Count),
    Series::counter("Requests", "other", Count),
    Series::counter("Bytes", "sent", Bytes),
    Series::counter("Bytes", "received", Bytes),
    Series::counter("Errors", "refused (4xx)", Count),
    Series::counter("Errors", "failed (5xx)", Count),
    Series::gauge("Connections", "open", Count),
    Series::gauge("Objects", "objects", Count),
    Series::gauge("Stored", "live", Bytes),
    Series::gauge("Stored", "big files", Bytes),
    Series::gauge("Stored", "dead", Bytes),
];

/// Returns the present values, for the console's charts.
pub(super) fn overview(store: &Stats, metrics: &Metrics, connections_open: u64) -> Overview {
    let mut values = Vec::with_capacity(SERIES.len());
    let (mut refused, mut failed) = (0, 0);
    let [mut requests, mut syncs] = [LatencyStats::default(), LatencyStats::default()];
    for seen in metrics.requests() {
        values.push(seen.by_status.iter().sum());
        refused += seen.by_status[3];
        failed += seen.by_status[4];
        requests.add_counts(&seen.latency, seen.latency_us_sum);
    }
    syncs.add_counts(&store.sync_us, store.sync_us_total);
    values.extend([metrics.sent_bytes(), metrics.received_bytes(), refused, failed]);
    values.extend([connections_open, store.objects]);
    values.extend([store.live_volume_bytes, store.big_file_bytes, store.dead_volume_bytes]);
    let latencies = vec![("Latency", requests), ("Sync latency", syncs)];
    Overview { title: TITLE.to_owned(), series: SERIES, values, latencies }
}

/// The page at which browsers log in.
pub(super) const LOGIN_PAGE: &str = include_str!("console/login.html");

const TITLE: &str = "haul serve";

pub(super) fn page() -> String {
    let scripts = [
        "/serve/account.js",
        "/serve/requests.js",
        "/serve/objects.js",
        "/serve/keys.js",
        "/serve/storage.js",
    ];
    console_page(TITLE, &scripts)
}

/// Returns the content type and the text of a file that the page loads.
pub(super) fn file(path: &str) -> Option<(&'static str, &'static str)> {
    let script = match path {
        "/login.js" => include_str!("console/login.js"),
        "/serve/account.js" => include_str!("console/account.js"),
        "/serve/buckets.js" => include_str!("console/buckets.js"),
        "/serve/controls.js" => include_str!("console/controls.js"),
        "/serve/deletion.js" => include_str!("console/deletion.js"),
        "/serve/keys.js" => include_str!("console/keys.js"),
        "/serve/lifecycle.js" => include_str!("console/lifecycle.js"),
        "/serve/listing.js" => include_str!("console/listing.js"),
        "/serve/new_key.js" => include_str!("console/new_key.js"),
        "/serve/objects.js" => include_str!("console/objects.js"),
        "/serve/places.js" => include_str!("console/places.js"),
        "/serve/policies.js" => include_str!("console/policies.js"),
        "/serve/policy.js" => include_str!("console/policy.js"),
        "/serve/preview.js" => include_str!("console/preview.js"),
        "/serve/quota.js" => include_str!("console/quota.js"),
        "/serve/requests.js" => include_str!("console/requests.js"),
        "/serve/s3.js" => include_str!("console/s3.js"),
        "/serve/settings.js" => include_str!("console/settings.js"),
        "/serve/storage.js" => include_str!("console/storage.js"),
        "/serve/uploads.js" => include_str!("console/uploads.js"),
        "/serve/versions.js" => include_str!("console/versions.js"),
        _ => return console_file(path),
    };
    Some(("text/javascript; charset=utf-8", script))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::*;
    use crate::metrics::Kind;

    #[test]
    fn each_series_has_its_value() {
        let metrics = Metrics::new(None);
        metrics.answered(Kind::Get, StatusCode::NOT_FOUND, Duration::ZERO);
        metrics.answered(Kind::Put, StatusCode::OK, Duration::ZERO);
        metrics.answered(Kind::Put, StatusCode::INTERNAL_SERVER_ERROR, Duration::ZERO);
        metrics.received(7);
        let store = Stats { objects: 3, dead_volume_bytes: 9, ..Stats::default() };
        let overview = overview(&store, &metrics, 5);
        assert_eq!(overview.values.len(), SERIES.len());
        for (name, expected) in [
            ("get", 1),
            ("put", 2),
            ("head", 0),
            ("received", 7),
            ("refused (4xx)", 1),
            ("failed (5xx)", 1),
            ("open", 5),
            ("objects", 3),
            ("dead", 9),
        ] {
            let at = SERIES.iter().position(|series| series.name == name).unwrap();
            assert_eq!(overview.values[at], expected, "{name}");
        }
        for (kind, series) in Kind::ALL.iter().zip(SERIES) {
            assert_eq!(kind.name(), series.name);
        }
        assert_eq!(overview.latencies[0].1.count(), 3);
    }

    #[test]
    fn files_of_the_pages_exist() {
        let mut texts = vec![page(), LOGIN_PAGE.to_owned()];
        let mut at = 0;
        while at < texts.len() {
            let text = texts[at].clone();
            let quoted = text.split('"').filter(|word| word.starts_with('/'));
            let loaded = quoted.filter(|word| word.ends_with(".js") || word.ends_with(".css"));
            for path in loaded {
                let (_, file) = file(path).unwrap_or_else(|| panic!("{path} is missing"));
                for outside in ["https://", "innerHTML", "eval("] {
                    let text = file.replace("https://www.example.com", "");
                    assert!(!text.contains(outside), "{outside} is in {path}");
                }
                if !texts.iter().any(|known| known == file) {
                    texts.push(file.to_owned());
                }
            }
            at += 1;
        }
    }
}
