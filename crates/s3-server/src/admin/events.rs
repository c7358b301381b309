//! The event targets, in the pages of the admin address.

use std::time::{SystemTime, UNIX_EPOCH};

use haul_admin_endpoint::Exposition;
use haul_admin_endpoint::MetricType::{Counter, Gauge};
use haul_store_pool::Pool;
use serde_json::{Value, json};

use crate::events::target::{EventTargets, TargetReport};

/// Returns the lines of `/health` about targets that do not accept events.
pub(super) fn health(pool: &Pool, targets: &EventTargets) -> String {
    let line = |target: TargetReport| {
        let (name, why) = (&target.name, target.error?);
        let events = pool.events().state(name).events;
        Some(format!(
            "degraded: the event target {name} accepts no events, {events} are queued: {why}\n"
        ))
    };
    targets.reports().filter_map(line).collect()
}

pub(super) fn json(pool: &Pool, targets: &EventTargets) -> Value {
    let target = |target: TargetReport| {
        let queue = pool.events().state(&target.name);
        json!({
            "name": &*target.name,
            "url": target.url,
            "queued_events": queue.events,
            "queued_bytes": queue.bytes,
            "delivered_events": target.delivered,
            "dropped_events": target.dropped,
            "failures": target.failures,
            "error": target.error,
            "failing_since_unix_s": target.failing_since.map(unix_s),
        })
    };
    targets.reports().map(target).collect()
}

fn unix_s(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(super) fn metrics(pool: &Pool, targets: &EventTargets) -> String {
    let mut out = Exposition::default();
    let reports: Vec<TargetReport> = targets.reports().collect();
    let mut family = |name: &str, kind, help: &str, value: &dyn Fn(&TargetReport) -> u64| {
        let mut family = out.family(name, kind, help);
        for report in &reports {
            family.sample(&[("target", &report.name)], value(report));
        }
    };
    let queued = |report: &TargetReport| pool.events().state(&report.name).events;
    family("haul_events_queued", Gauge, "Events that are not delivered yet.", &queued);
    let help = "Events that the target has accepted.";
    family("haul_events_delivered_total", Counter, help, &|report| report.delivered);
    let help = "Events that were dropped because the queue was full or they were too old.";
    family("haul_events_dropped_total", Counter, help, &|report| report.dropped);
    let help = "Failed attempts to send events.";
    family("haul_events_failures_total", Counter, help, &|report| report.failures);
    let help = "1 if the last attempt to send events failed.";
    let failing = |report: &TargetReport| u64::from(report.error.is_some());
    family("haul_events_failing", Gauge, help, &failing);
    out.into_text()
}
