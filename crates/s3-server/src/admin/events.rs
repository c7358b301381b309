//! The event targets, in the pages of the admin address.

use std::time::{SystemTime, UNIX_EPOCH};

use haul_admin_endpoint::Exposition;
use haul_admin_endpoint::MetricType::{Counter, Gauge};
use haul_store_pool::Pool;
use serde_json::{Value, json};

use crate::events::target::{EventTargets, TargetReport};
use crate::events::unknown::UnknownTarget;

const QUEUED: &str = "haul_events_queued";
const DROPPED: &str = "haul_events_dropped_total";

/// The state of a queue without a target.
const NO_TARGET: &str = "the server has no such target";

/// Returns the lines of `/health` about targets that do not accept events, and about buckets whose
/// events are lost because the server does not have their target.
pub(super) fn health(pool: &Pool, targets: &EventTargets) -> String {
    let line = |target: TargetReport| {
        let (name, why) = (&target.name, target.error?);
        let events = pool.events().state(name).events;
        Some(format!(
            "degraded: the event target {name} accepts no events, {events} are queued: {why}\n"
        ))
    };
    let losing = targets.losing_buckets(pool).into_iter().map(|(bucket, target, events)| {
        format!(
            "degraded: the notification of the bucket {bucket} names the event target {target}, \
             which the server does not have; events lost since the start: {events}\n"
        )
    });
    targets.reports().filter_map(line).chain(losing).collect()
}

pub(super) fn json(pool: &Pool, targets: &EventTargets) -> Value {
    let target = |target: TargetReport| {
        let queue = pool.events().state(&target.name);
        json!({
            "name": &*target.name,
            "configured": true,
            "url": target.url,
            "queued_events": queue.events,
            "queued_bytes": queue.bytes,
            "delivered_events": target.delivered,
            "dropped_events": target.dropped,
            "failures": target.failures,
            "error": target.error,
            "failing_since_unix_s": target.failing_since.map(unix_s),
            "retrying": target.is_retrying,
            "timeout_s": target.timeout.as_secs_f64(),
        })
    };
    let unknown = |target: UnknownTarget| {
        json!({
            "name": target.name,
            "configured": false,
            "buckets": target.buckets,
            "url": null,
            "queued_events": target.queue.events,
            "queued_bytes": target.queue.bytes,
            "delivered_events": 0,
            "dropped_events": target.lost,
            "failures": 0,
            "error": NO_TARGET,
            "failing_since_unix_s": null,
        })
    };
    let is_shown = |target: &UnknownTarget| target.queue.events > 0 || !target.buckets.is_empty();
    let unknown = targets.unknown(pool).into_iter().filter(is_shown).map(unknown);
    targets.reports().map(target).chain(unknown).collect()
}

fn unix_s(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(super) fn metrics(pool: &Pool, targets: &EventTargets) -> String {
    let mut out = Exposition::default();
    let reports: Vec<TargetReport> = targets.reports().collect();
    // From the start, so that the first lost event is an increase.
    let unknown = targets.unknown(pool);
    let mut family = |name: &str, kind, help: &str, value: &dyn Fn(&TargetReport) -> u64| {
        let mut family = out.family(name, kind, help);
        for report in &reports {
            family.sample(&[("target", &report.name)], value(report));
        }
        for target in &unknown {
            let value = match name {
                QUEUED => target.queue.events,
                DROPPED => target.lost,
                _ => continue,
            };
            family.sample(&[("target", &target.name)], value);
        }
    };
    let queued = |report: &TargetReport| pool.events().state(&report.name).events;
    family(QUEUED, Gauge, "Events that are not delivered yet.", &queued);
    let help = "Events that the target has accepted.";
    family("haul_events_delivered_total", Counter, help, &|report| report.delivered);
    let help = "Events that were dropped: the queue was full, they were too old, or the server does \
                not have the target.";
    family(DROPPED, Counter, help, &|report| report.dropped);
    let help = "Failed attempts to send events.";
    family("haul_events_failures_total", Counter, help, &|report| report.failures);
    let help = "1 if the last attempt to send events failed.";
    let failing = |report: &TargetReport| u64::from(report.error.is_some());
    family("haul_events_failing", Gauge, help, &failing);
    out.into_text()
}
