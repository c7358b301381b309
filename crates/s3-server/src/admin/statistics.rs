//! The parts of `/stats.json`, and bucket sizes.

use std::time::{SystemTime, UNIX_EPOCH};

use haul_file_store::{LifecycleStats, ReplicationStatus, Stats, Versioning};
use haul_store_pool::Pool;
use serde_json::{Value, json};

use crate::metrics::RequestCounts;

pub(super) fn request_json(seen: &RequestCounts) -> Value {
    json!({
        "kind": seen.kind.name(),
        "by_status": seen.by_status,
        "latency_us": seen.latency,
    })
}

pub(super) fn store_json(stats: &Stats) -> Value {
    json!({
        "buckets": stats.buckets,
        "objects": stats.objects,
        "versions": stats.versions,
        "version_bytes": stats.version_bytes,
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
        "damaged_places": stats.damaged_locations,
        "hidden_places": stats.hidden_ranges,
        "scrubbed_bytes": stats.scrubbed_bytes,
        "scrubs": stats.scrubs,
        "quota_refusals": stats.quota_refusals,
        "lifecycle": lifecycle_json(&stats.lifecycle),
    })
}

pub(super) fn replication_json(status: &ReplicationStatus) -> Value {
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
        "tag_reads": stats.tag_reads,
        "expired_objects": stats.expired_objects,
        "expired_versions": stats.expired_versions,
        "expired_bytes": stats.expired_bytes,
        "aborted_uploads": stats.aborted_uploads,
        "skipped": stats.skipped,
        "locked": stats.locked,
        "last_sweep_unix_s": stats.last_sweep.map(|ended| since(ended).as_secs_f64()),
        "last_sweep_s": stats.last_sweep_us as f64 / 1e6,
    })
}

/// Returns the buckets with their sizes.
pub(super) fn buckets_json(store: &Pool) -> haul_file_store::Result<Value> {
    let buckets = store.buckets()?.into_iter().map(|bucket| {
        let versioning = match store.versioning(&bucket.name) {
            Ok(Versioning::Off) => Some("off"),
            Ok(Versioning::Enabled) => Some("enabled"),
            Ok(Versioning::Suspended) => Some("suspended"),
            Err(_damaged) => None,
        };
        let quota = store.quota(&bucket.name).ok();
        let limit = quota.as_ref().map(|found| found.quota);
        let used = quota.as_ref().map(|found| found.usage);
        json!({
            "name": bucket.name,
            "objects": bucket.objects,
            "bytes": bucket.bytes,
            "versioning": versioning,
            "quota_bytes": limit.and_then(|quota| quota.bytes),
            "quota_objects": limit.and_then(|quota| quota.objects),
            "used_bytes": used.map(|usage| usage.bytes),
            "used_objects": used.map(|usage| usage.objects),
        })
    });
    Ok(buckets.collect())
}
