//! Metrics in the Prometheus text format, version 0.0.4. Pure.

use std::time::UNIX_EPOCH;

use haul_admin_endpoint::Exposition;
use haul_admin_endpoint::MetricType::{Counter, Gauge, Histogram};
use haul_file_store::{LifecycleStats, QuotaState, ReplicationStatus, Stats, WorkKind};
use haul_http_engine::ConnectionStats;

use crate::hot::HotStats;
use crate::metrics::Metrics;
use crate::metrics::log_counts::LogCounts;

/// Returns all metrics. `refused_requests` counts requests above their client's rate limit;
/// `file_system` is the file system's size and free space in bytes, if known; `key_file_failing` is
/// `None` without a key file.
pub(super) fn text(
    stats: &Stats,
    metrics: &Metrics,
    (connections, refused_requests): (&ConnectionStats, u64),
    cache: &HotStats,
    file_system: Option<(u64, u64)>,
    copy: Option<&ReplicationStatus>,
    key_file_failing: Option<bool>,
) -> String {
    let mut out = Exposition::default();
    requests(&mut out, metrics);
    connections_of_s3(&mut out, connections);
    let help = "Requests for which the server took longer than --slow-request.";
    out.counter("haul_requests_slow_total", help, metrics.slow_requests());
    let help = "Requests above the rate of their client.";
    out.counter("haul_requests_refused_total", help, refused_requests);
    out.gauge("haul_cache_objects", "Hot objects in memory.", cache.objects);
    out.gauge("haul_cache_bytes", "Memory of hot objects.", cache.bytes);
    let help = "GET and HEAD requests served from hot objects.";
    out.counter("haul_cache_hits_total", help, cache.hits);
    bucket_logs(&mut out, &metrics.logs);
    store(&mut out, stats);
    let help = "Requests that a quota of a bucket or of a user rejected.";
    out.counter("haul_s3_quota_refused_total", help, stats.quota_refusals);
    failing(&mut out, stats);
    if let Some((bytes, free_bytes)) = file_system {
        out.gauge("haul_file_system_bytes", "Size of the file system of the store.", bytes);
        out.gauge("haul_file_system_free_bytes", "Free bytes of the file system.", free_bytes);
    }
    if let Some(status) = copy {
        replication(&mut out, status);
    }
    if let Some(failing) = key_file_failing {
        let help = "1 if the last change of the key file could not be read.";
        out.gauge("haul_key_file_failing", help, u64::from(failing));
    }
    out.process();
    out.into_text()
}

/// A gauge for a quota: the end of its name, its help, and its value if the quota has this limit.
type QuotaGauge = (&'static str, &'static str, fn(&QuotaState) -> Option<u64>);

const QUOTA_GAUGES: [QuotaGauge; 4] = [
    ("bytes", "Bytes that a quota allows.", |state| state.quota.bytes),
    ("used_bytes", "Bytes that count against a quota.", |state| {
        state.quota.bytes.map(|_limit| state.usage.bytes)
    }),
    ("objects", "Objects that a quota allows.", |state| state.quota.objects),
    ("used_objects", "Objects that count against a quota.", |state| {
        state.quota.objects.map(|_limit| state.usage.objects)
    }),
];

/// Returns the metrics of the quotas of buckets and of users.
pub(super) fn quotas(buckets: &[QuotaState], users: &[QuotaState]) -> String {
    let mut out = Exposition::default();
    for (label, states) in [("bucket", buckets), ("user", users)] {
        for (end, help, value) in QUOTA_GAUGES {
            let sample = |state: &QuotaState| Some((state.name.clone(), value(state)?));
            let samples: Vec<_> = states.iter().filter_map(sample).collect();
            if samples.is_empty() {
                continue;
            }
            let name = format!("haul_s3_{label}_quota_{end}");
            let mut family = out.family(&name, Gauge, help);
            for (state, value) in samples {
                family.sample(&[(label, &state)], value);
            }
        }
    }
    out.into_text()
}

fn failing(out: &mut Exposition, stats: &Stats) {
    let help = "1 while work of the store fails because the disk is full or refuses files.";
    let mut family = out.family("haul_store_failing", Gauge, help);
    for (work, is_failing) in WorkKind::ALL.into_iter().zip(stats.failing) {
        family.sample(&[("work", work.name())], u64::from(is_failing));
    }
}

fn replication(out: &mut Exposition, status: &ReplicationStatus) {
    let behind = status.behind.map_or(0.0, |behind| behind.as_secs_f64());
    let help = "Time for which the copy has not contained all durable writes.";
    out.gauge("haul_replication_behind_seconds", help, behind);
    let help = "Requests to the remote store.";
    out.counter("haul_replication_requests_total", help, status.requests);
    let help = "Bytes sent to the remote store.";
    out.counter("haul_replication_sent_bytes_total", help, status.sent_bytes);
    let help = "1 if the last attempt to copy failed.";
    out.gauge("haul_replication_failing", help, u64::from(status.last_error.is_some()));
    if let Some(left) = status.lease {
        let help = "Time for which the lease of the copy is held; at 0, writes are refused.";
        out.gauge("haul_replication_lease_seconds", help, left.as_secs_f64());
    }
    let help = "1 once another server took over the copy, when writes are refused.";
    out.gauge("haul_replication_stopped", help, u64::from(status.stopped.is_some()));
}

fn requests(out: &mut Exposition, metrics: &Metrics) {
    let up = metrics.uptime().as_secs_f64();
    out.gauge("haul_uptime_seconds", "Time since the server started.", up);
    out.gauge("haul_requests_in_flight", "Requests in flight.", metrics.in_flight());
    let (received, sent) = (metrics.received_bytes(), metrics.sent_bytes());
    out.counter("haul_received_bytes_total", "Bytes of objects received.", received);
    out.counter("haul_sent_bytes_total", "Bytes of responses sent.", sent);

    let mut family = out.family("haul_requests_total", Counter, "Requests answered.");
    for seen in metrics.requests() {
        for (class, count) in seen.by_status.iter().enumerate().skip(1) {
            let status = format!("{}xx", class + 1);
            family.sample(&[("kind", seen.kind.name()), ("status", &status)], *count);
        }
    }
    let help = "Time from the head of a request to the head of its response.";
    let mut family = out.family("haul_request_duration_seconds", Histogram, help);
    for seen in metrics.requests() {
        let latency = Latency::of(&seen.latency);
        let (sum_s, labels) = (seen.latency_us_sum as f64 / 1e6, [("kind", seen.kind.name())]);
        family.histogram(&labels, latency.buckets, sum_s, latency.count);
    }
}

fn bucket_logs(out: &mut Exposition, counts: &LogCounts) {
    let help = "Records of access logs of buckets that were delivered.";
    out.counter("haul_bucket_log_records_total", help, counts.delivered.get());
    let help = "Records of access logs of buckets that were lost, by reason.";
    out.family("haul_bucket_log_lost_records_total", Counter, help)
        .sample(&[("reason", "memory")], counts.without_memory.get())
        .sample(&[("reason", "refused")], counts.refused.get())
        .sample(&[("reason", "failed")], counts.failed.get());
    let help = "Objects with records of access logs that were stored.";
    out.counter("haul_bucket_log_objects_total", help, counts.objects.get());
    let help = "Failed attempts to store an object with records, most of which are repeated.";
    out.counter("haul_bucket_log_errors_total", help, counts.errors.get());
    let help = "Memory of records of access logs that are not delivered yet.";
    out.gauge("haul_bucket_log_pending_bytes", help, counts.pending_bytes.get());
}

fn connections_of_s3(out: &mut Exposition, stats: &ConnectionStats) {
    out.gauge("haul_connections", "Open connections of S3 clients.", stats.open);
    let name = "haul_connections_refused_total";
    out.counter(name, "Connections refused because their peer had too many.", stats.refused);
    let help = "Connections that the server closed while they waited for a request.";
    out.family("haul_connections_closed_total", Counter, help)
        .sample(&[("reason", "room")], stats.evicted)
        .sample(&[("reason", "time")], stats.timed_out);
}

fn store(out: &mut Exposition, stats: &Stats) {
    out.gauge("haul_buckets", "Buckets.", stats.buckets);
    out.gauge("haul_objects", "Objects.", stats.objects);
    out.gauge("haul_object_bytes", "Bytes of all objects.", stats.object_bytes);
    out.gauge(
        "haul_uploads",
        "Multipart uploads that are neither completed nor aborted.",
        stats.uploads,
    );
    out.gauge("haul_volumes", "Volumes of small objects.", stats.volumes);
    out.gauge("haul_volume_bytes", "Bytes of all volumes.", stats.volume_bytes);
    let live = stats.live_volume_bytes;
    out.gauge("haul_volume_live_bytes", "Bytes in volumes that belong to objects.", live);
    let help = "Bytes in volumes that belonged to replaced or deleted objects.";
    out.gauge("haul_volume_dead_bytes", help, stats.dead_volume_bytes);
    if let Some(free_bytes) = stats.free_bytes {
        let help = "Bytes of small objects that fit before compaction must free space.";
        out.gauge("haul_store_free_bytes", help, free_bytes);
    }
    let help = "Bytes of the sorted runs of keys on disk.";
    out.gauge("haul_index_run_bytes", help, stats.index_run_bytes);
    let help = "Memory of keys that are not in a run yet.";
    out.gauge("haul_index_recent_bytes", help, stats.index_recent_bytes);
    out.gauge("haul_versions", "Older versions and delete markers.", stats.versions);
    out.gauge("haul_version_bytes", "Bytes of these versions.", stats.version_bytes);
    out.gauge("haul_big_files", "Files of big objects and of parts.", stats.big_files);
    out.gauge("haul_big_file_bytes", "Bytes of these files.", stats.big_file_bytes);
    out.gauge("haul_pinned_bytes", "Bytes of big objects locked in memory.", stats.pinned_bytes);
    let help = "Bytes of objects in volumes that are locked in memory, and sent without a copy.";
    out.gauge("haul_locked_bytes", help, stats.locked_bytes);
    let latched = u64::from(stats.latched);
    out.gauge("haul_latched", "1 after a failed sync, when writes are refused.", latched);
    out.gauge("haul_damaged_places", "Known damaged places.", stats.damaged_locations);
    out.gauge(
        "haul_damaged_hidden_places",
        "Damaged places with objects whose keys are unknown and whose loss is not accepted.",
        stats.hidden_ranges,
    );
    out.counter(
        "haul_scrubbed_bytes_total",
        "Bytes read by the background scrub.",
        stats.scrubbed_bytes,
    );
    out.counter("haul_scrubs_total", "Completed scrubs of the whole store.", stats.scrubs);
    lifecycle(out, &stats.lifecycle);

    out.counter("haul_store_puts_total", "Objects stored.", stats.puts);
    out.counter("haul_store_gets_total", "Objects read.", stats.gets);
    out.counter("haul_store_deletes_total", "Objects deleted.", stats.deletes);
    out.counter("haul_store_lists_total", "Listed pages.", stats.lists);
    out.counter("haul_store_reads_total", "Reads of volumes.", stats.needle_reads);
    let read_bytes = stats.needle_read_bytes;
    out.counter("haul_store_read_bytes_total", "Bytes read from volumes.", read_bytes);
    out.counter("haul_log_records_total", "Records appended to the log.", stats.log_records);
    out.counter("haul_log_batches_total", "Batches of records written.", stats.log_batches);
    let written_bytes = stats.log_written_bytes;
    out.counter("haul_log_written_bytes_total", "Bytes written to the log.", written_bytes);
    let sync = Latency::of(&stats.sync_us);
    let help = "Duration of syncs of the log.";
    out.family("haul_sync_duration_seconds", Histogram, help).histogram(
        &[],
        sync.buckets,
        sync.estimated_sum_s,
        sync.count,
    );
}

fn lifecycle(out: &mut Exposition, stats: &LifecycleStats) {
    let help = "1 while a sweep searches a bucket for expired objects and stale uploads.";
    out.gauge("haul_lifecycle_sweeping", help, u64::from(stats.sweeping));
    let help = "Completed sweeps of a bucket.";
    out.counter("haul_lifecycle_sweeps_total", help, stats.sweeps);
    let help = "Failed sweeps, which are repeated.";
    out.counter("haul_lifecycle_errors_total", help, stats.errors);
    let help = "Keys listed by sweeps.";
    out.counter("haul_lifecycle_scanned_keys_total", help, stats.scanned_keys);
    let help = "Objects whose tags were read, because only rules with tags may expire them.";
    out.counter("haul_lifecycle_tag_reads_total", help, stats.tag_reads);
    let help = "Objects deleted because they expired.";
    out.counter("haul_lifecycle_expired_objects_total", help, stats.expired_objects);
    let help = "Noncurrent versions and delete markers removed because they expired.";
    out.counter("haul_lifecycle_expired_versions_total", help, stats.expired_versions);
    let help = "Bytes of expired objects and versions that were deleted.";
    out.counter("haul_lifecycle_expired_bytes_total", help, stats.expired_bytes);
    let help = "Stale uploads aborted.";
    out.counter("haul_lifecycle_aborted_uploads_total", help, stats.aborted_uploads);
    let help = "Objects and uploads not deleted because damage may hide their newest state.";
    out.counter("haul_lifecycle_skipped_total", help, stats.skipped);
    let help = "Expired versions not removed because a lock protects them, at each sweep.";
    out.counter("haul_lifecycle_locked_total", help, stats.locked);
    if let Some(ended) = stats.last_sweep {
        let since = ended.duration_since(UNIX_EPOCH).unwrap_or_default();
        let help = "Time at which the last complete sweep ended, in seconds since 1970.";
        out.gauge("haul_lifecycle_last_sweep_timestamp_seconds", help, since.as_secs_f64());
        let help = "Duration of the last complete sweep.";
        let seconds = stats.last_sweep_us as f64 / 1e6;
        out.gauge("haul_lifecycle_last_sweep_duration_seconds", help, seconds);
    }
}

/// A latency histogram in Prometheus form.
struct Latency {
    /// Upper bounds in seconds, and the cumulative counts of shorter latencies.
    buckets: Vec<(f64, u64)>,
    /// The sum of all latencies in seconds, estimated from the middles of the buckets.
    estimated_sum_s: f64,
    count: u64,
}

impl Latency {
    /// Converts counts: bucket i counts latencies below 2^i µs; the last one also counts all longer
    /// latencies.
    fn of(counts: &[u64]) -> Self {
        let mut latency = Self { buckets: Vec::new(), estimated_sum_s: 0.0, count: 0 };
        for (index, count) in counts.iter().enumerate() {
            latency.count += count;
            let bound_s = (1_u64 << index) as f64 / 1e6;
            latency.estimated_sum_s += *count as f64 * bound_s * 0.75;
            // Bounds from 16 µs to 67 s; shorter and longer latencies need no finer bounds.
            if (4..27).contains(&index) {
                latency.buckets.push((bound_s, latency.count));
            }
        }
        latency
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_file_store::{Quota, Usage};
    use http::StatusCode;

    use super::*;
    use crate::metrics::Kind;

    #[test]
    fn histogram_buckets_are_cumulative() {
        let metrics = Metrics::new(None);
        for us in [3, 100, 100, 5_000, 90_000_000] {
            metrics.answered(Kind::Get, StatusCode::OK, Duration::from_micros(us));
        }
        let text = text(
            &Stats::default(),
            &metrics,
            (&ConnectionStats::default(), 6),
            &HotStats::default(),
            Some((10, 4)),
            None,
            None,
        );
        let value = |line: &str| {
            let found = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '));
            found.unwrap_or_else(|| panic!("{line} is missing")).parse::<f64>().unwrap()
        };
        let bucket = |le: &str| {
            value(&format!("haul_request_duration_seconds_bucket{{kind=\"get\",le=\"{le}\"}}"))
        };
        assert_eq!(bucket("0.000016"), 1.0);
        assert_eq!(bucket("0.000128"), 3.0);
        assert_eq!(bucket("0.008192"), 4.0);
        assert_eq!(bucket("67.108864"), 4.0);
        assert_eq!(bucket("+Inf"), 5.0);
        assert_eq!(value("haul_request_duration_seconds_count{kind=\"get\"}"), 5.0);
        assert!(value("haul_request_duration_seconds_sum{kind=\"get\"}") > 90.0);
        assert_eq!(value("haul_requests_total{kind=\"get\",status=\"2xx\"}"), 5.0);
        assert_eq!(value("haul_file_system_free_bytes"), 4.0);
        assert_eq!(value("haul_sync_duration_seconds_count"), 0.0);
    }

    #[test]
    fn live_dead_and_free_bytes_of_the_store_are_gauges() {
        let shown = |stats: &Stats| {
            text(
                stats,
                &Metrics::new(None),
                (&ConnectionStats::default(), 6),
                &HotStats::default(),
                Some((10, 4)),
                None,
                None,
            )
        };
        let stats = Stats {
            live_volume_bytes: 100,
            dead_volume_bytes: 20,
            free_bytes: Some(3),
            index_run_bytes: 7,
            index_recent_bytes: 8,
            ..Stats::default()
        };
        let exposed = shown(&stats);
        for line in [
            "haul_volume_live_bytes 100",
            "haul_volume_dead_bytes 20",
            "haul_store_free_bytes 3",
            "haul_requests_refused_total 6",
            "haul_index_run_bytes 7",
            "haul_index_recent_bytes 8",
        ] {
            assert!(exposed.lines().any(|found| found == line), "{line} is not in\n{exposed}");
        }
        let unlimited = shown(&Stats { free_bytes: None, ..stats });
        assert!(!unlimited.contains("haul_store_free_bytes"), "the disk is unlimited");
    }

    #[test]
    fn only_limits_that_exist_are_gauges() {
        let state = |name: &str, bytes, objects| QuotaState {
            name: name.to_owned(),
            quota: Quota { bytes, objects },
            usage: Usage { bytes: 3, objects: 4 },
        };
        let buckets = [state("a", Some(10), None), state("b", Some(20), Some(5))];
        let text = quotas(&buckets, &[state("alice", None, Some(6))]);
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "haul_s3_bucket_quota_bytes{bucket=\"a\"} 10",
            "haul_s3_bucket_quota_bytes{bucket=\"b\"} 20",
            "haul_s3_bucket_quota_used_bytes{bucket=\"a\"} 3",
            "haul_s3_bucket_quota_used_bytes{bucket=\"b\"} 3",
            "haul_s3_bucket_quota_objects{bucket=\"b\"} 5",
            "haul_s3_bucket_quota_used_objects{bucket=\"b\"} 4",
            "haul_s3_user_quota_objects{user=\"alice\"} 6",
            "haul_s3_user_quota_used_objects{user=\"alice\"} 4",
        ];
        assert_eq!(samples, expected);
        assert_eq!(quotas(&[], &[]), "");
    }

    #[test]
    fn each_metric_has_one_type() {
        let text = text(
            &Stats::default(),
            &Metrics::new(None),
            (&ConnectionStats::default(), 6),
            &HotStats::default(),
            None,
            Some(&ReplicationStatus::default()),
            Some(true),
        );
        let mut types: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let count = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), count);
        assert!(count > 20);
    }
}
