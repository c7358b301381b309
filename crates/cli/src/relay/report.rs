//! Formats the statistics of a relay as text and JSON.

use std::fmt::Write;

use haul_tcp_relay::{DirectionStats, EndReason, HttpStats, Stats};
use serde_json::{Value, json};

use crate::units::{Bytes, Count, Grouped, Time};

/// Returns the statistics as text.
pub(super) fn text(stats: &Stats) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").unwrap_or_default();
    let connections = Count(stats.accepted, "connection");
    line(format!("{connections} in {}, {} active", Time(stats.uptime), Grouped(stats.active)));
    let ended: Vec<_> = EndReason::ALL
        .iter()
        .filter(|how| stats.ended(**how) > 0)
        .map(|how| format!("{} {}", Grouped(stats.ended(*how)), words(*how)))
        .collect();
    if !ended.is_empty() {
        line(format!("  ended: {}", ended.join(", ")));
    }
    if stats.refused > 0 {
        line(format!("  refused at the limit of a client: {}", Count(stats.refused, "connection")));
    }
    line(format!("  up    {}", moved(stats.up)));
    line(format!("  down  {}", moved(stats.down)));
    let pipes = stats.pipes;
    line(format!(
        "  pipes {} created, {} closed while not empty, {} in use",
        Grouped(pipes.created),
        Grouped(pipes.closed),
        Grouped(pipes.leased as u64)
    ));
    if stats.no_pipe + stats.splice_refused > 0 {
        let bursts = Count(stats.no_pipe, "burst");
        let refused = Count(stats.splice_refused, "direction");
        line(format!("  copied because no pipe was free: {bursts}; splice refused: {refused}"));
    }
    let answers: u64 = stats.http.error_responses.iter().map(|answer| answer.1).sum();
    if stats.http.requests + answers > 0 {
        line(format!(
            "  {}, {} on reused connections, {} answered by the relay",
            Count(stats.http.requests, "request"),
            Grouped(stats.http.reused),
            Grouped(answers)
        ));
    }
    for target in &stats.targets {
        line(format!(
            "  {} {}: {}, {} failed, {} active",
            target.address,
            if target.is_up { "is up" } else { "is down" },
            Count(target.connected, "connection"),
            Grouped(target.failed),
            Grouped(target.active)
        ));
    }
    text
}

fn words(how: EndReason) -> &'static str {
    match how {
        EndReason::Clean => "cleanly",
        EndReason::Reset => "by a reset",
        EndReason::Idle => "idle too long",
        EndReason::HalfClosed => "half-closed too long",
        EndReason::NoTarget => "without a target",
        EndReason::BadProxy => "without a valid PROXY header",
        EndReason::BadTls => "without a TLS handshake",
        EndReason::Drained => "at shutdown",
        EndReason::Evicted => "in favor of a new connection of the same client",
    }
}

fn moved(moved: DirectionStats) -> String {
    let amount = |bytes, bursts| format!("{} in {}", Bytes(bytes), Count(bursts, "burst"));
    format!(
        "copied {}, spliced {}",
        amount(moved.bytes_copied, moved.bursts_copied),
        amount(moved.bytes_spliced, moved.bursts_spliced)
    )
}

/// Returns the statistics as a JSON object.
pub(super) fn json(stats: &Stats) -> Value {
    let moved = |moved: DirectionStats| {
        json!({
            "bytes_copied": moved.bytes_copied,
            "bytes_spliced": moved.bytes_spliced,
            "bursts_copied": moved.bursts_copied,
            "bursts_spliced": moved.bursts_spliced,
        })
    };
    let ended: serde_json::Map<_, _> = EndReason::ALL
        .iter()
        .map(|how| (how.name().to_owned(), stats.ended(*how).into()))
        .collect();
    let targets: Vec<_> = stats
        .targets
        .iter()
        .map(|target| {
            json!({
                "address": target.address,
                "up": target.is_up,
                "active": target.active,
                "connected": target.connected,
                "failed": target.failed,
                "checks_failed": target.checks_failed,
            })
        })
        .collect();
    json!({
        "seconds": stats.uptime.as_secs_f64(),
        "accepted": stats.accepted,
        "active": stats.active,
        "refused": stats.refused,
        "ended": ended,
        "up": moved(stats.up),
        "down": moved(stats.down),
        "http": http(&stats.http),
        "no_pipe": stats.no_pipe,
        "splice_refused": stats.splice_refused,
        "pipes": {
            "created": stats.pipes.created,
            "closed": stats.pipes.closed,
            "undersized": stats.pipes.undersized,
            "leased": stats.pipes.leased,
            "free": stats.pipes.free,
        },
        "targets": targets,
    })
}

fn http(http: &HttpStats) -> Value {
    let generated: serde_json::Map<_, _> = http
        .error_responses
        .iter()
        .map(|(status, count)| (status.to_string(), (*count).into()))
        .collect();
    json!({
        "requests": http.requests,
        "responses": http.responses,
        "generated_responses": generated,
        "reused": http.reused,
        "retried": http.retried,
        "tunnels": http.tunnels,
    })
}
