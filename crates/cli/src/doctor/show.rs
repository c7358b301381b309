//! Formats the results of `haul doctor` as text and as JSON. The module does no I/O.

use std::fmt::Write;

use haul_tuning::{Check, Status};
use serde_json::{Map, Value, json};

use super::facts::Facts;
use crate::output::Name;
use crate::probe::storage_json;
use crate::units::Bytes;

/// The version of this program, and the processor for which it was built.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROCESSOR: &str = std::env::consts::ARCH;

const UNKNOWN: &str = "unknown";

/// Returns all results as text.
pub(super) fn text(facts: &Facts) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| UNKNOWN.to_owned());
    let bytes = |bytes: Option<u64>| bytes.map_or(UNKNOWN.to_owned(), |n| Bytes(n).to_string());
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let mut text = format!("haul {VERSION} ({PROCESSOR}, {build} build)\n\nmachine\n");
    let mut line = |name: &str, value: String| {
        writeln!(text, "  {name:<14} {}", Name(&value)).ok();
    };
    line("system", known(&facts.system));
    line("kernel", known(&facts.kernel));
    line("cores", facts.cores.map_or(UNKNOWN.to_owned(), |cores| cores.to_string()));
    line("load", known(&facts.load));
    let (total, available) = (bytes(facts.memory_bytes), bytes(facts.available_bytes));
    line("memory", format!("{total}, {available} available; swap {}", bytes(facts.swap_bytes)));
    line("clock", clock(facts.is_clock_synchronized).to_owned());
    line("io_uring", ring(facts));
    line("descriptors", limit(facts.descriptors_max, |n| n.to_string()));
    line("locked memory", limit(facts.locked_bytes_max, |n| Bytes(n).to_string()));
    for (name, value) in &facts.settings {
        writeln!(text, "  {name} = {}", Name(value)).ok();
    }
    writeln!(text, "\n{}", facts.storage).ok();
    writeln!(text, "  {:<14} {}", "free space", bytes(facts.free_bytes)).ok();
    text.push_str("\nchecks\n");
    for check in &facts.checks {
        let status = status(check.status);
        writeln!(text, "  {status:<8} {}: {}", check.name, Name(&check.text)).ok();
        if let Some(remedy) = &check.remedy {
            writeln!(text, "  {:<8}   {}", "", Name(remedy)).ok();
        }
    }
    text
}

/// Returns all results as one JSON object.
pub(super) fn json(facts: &Facts) -> Value {
    let settings: Map<String, Value> =
        facts.settings.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    json!({
        "version": VERSION,
        "processor": PROCESSOR,
        "debug_build": cfg!(debug_assertions),
        "machine": {
            "system": facts.system,
            "kernel": facts.kernel,
            "cores": facts.cores,
            "load": facts.load,
            "memory_bytes": facts.memory_bytes,
            "available_bytes": facts.available_bytes,
            "swap_bytes": facts.swap_bytes,
            "clock_synchronized": facts.is_clock_synchronized,
            "io_uring": facts.ring_refusal.is_empty(),
            "io_uring_error": Some(&facts.ring_refusal).filter(|reason| !reason.is_empty()),
            "descriptors_max": facts.descriptors_max,
            "locked_bytes_max": facts.locked_bytes_max,
            "settings": settings,
        },
        "storage": storage_json(&facts.storage),
        "free_bytes": facts.free_bytes,
        "checks": facts.checks.iter().map(check_json).collect::<Vec<_>>(),
    })
}

fn check_json(check: &Check) -> Value {
    json!({
        "name": check.name,
        "status": status(check.status),
        "text": check.text,
        "remedy": check.remedy,
    })
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Warning => "warning",
        Status::Problem => "problem",
    }
}

fn clock(is_synchronized: Option<bool>) -> &'static str {
    match is_synchronized {
        Some(true) => "synchronized",
        Some(false) => "not synchronized",
        None => UNKNOWN,
    }
}

fn ring(facts: &Facts) -> String {
    match facts.ring_refusal.as_str() {
        "" => "available".to_owned(),
        reason => format!("not available: {reason}"),
    }
}

fn limit(limit: Option<u64>, show: impl Fn(u64) -> String) -> String {
    limit.map_or("unlimited".to_owned(), |limit| format!("at most {}", show(limit)))
}
