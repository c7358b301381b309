//! What a relay did, for people and for programs.

use std::fmt::Write;

use haul_tcp_relay::{Ended, HttpStats, Moved, Stats};
use serde_json::{Value, json};

use crate::units::{Bytes, Count, Grouped, Time};

/// A few lines for people.
pub(super) fn text(stats: &Stats) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").unwrap_or_default();
    let connections = Count(stats.accepted, "connection");
    line(format!("{connections} in {}, {} now", Time(stats.since), Grouped(stats.active)));
    let ended: Vec<_> = Ended::ALL
        .iter()
        .filter(|how| stats.ended(**how) > 0)
        .map(|how| format!("{} {}", Grouped(stats.ended(*how)), words(*how)))
        .collect();
    if !ended.is_empty() {
        line(format!("  ended: {}", ended.join(", ")));
    }
    line(format!("  up    {}", moved(stats.up)));
    line(format!("  down  {}", moved(stats.down)));
    let pipes = stats.pipes;
    line(format!(
        "  pipes {} made, {} closed with bytes inside, {} in use",
        Grouped(pipes.made),
        Grouped(pipes.closed),
        Grouped(pipes.leased as u64)
    ));
    if stats.no_pipe + stats.splice_refused > 0 {
        let bursts = Count(stats.no_pipe, "burst");
        let refused = Count(stats.splice_refused, "direction");
        line(format!("  copied for want of a pipe: {bursts}; splice refused: {refused}"));
    }
    let answers: u64 = stats.http.answers.iter().map(|answer| answer.1).sum();
    if stats.http.requests + answers > 0 {
        line(format!(
            "  {}, {} on used connections, {} answered by the relay",
            Count(stats.http.requests, "request"),
            Grouped(stats.http.reused),
            Grouped(answers)
        ));
    }
    for target in &stats.targets {
        line(format!(
            "  {} {}: {}, {} failed, {} now",
            target.address,
            if target.is_up { "is up" } else { "is down" },
            Count(target.connected, "connection"),
            Grouped(target.failed),
            Grouped(target.active)
        ));
    }
    text
}

fn words(how: Ended) -> &'static str {
    match how {
        Ended::Clean => "properly",
        Ended::Reset => "by a reset",
        Ended::Idle => "idle",
        Ended::HalfClosed => "half closed",
        Ended::NoTarget => "without a target",
        Ended::BadProxy => "without a good PROXY header",
        Ended::Drained => "cut off at the end",
    }
}

fn moved(moved: Moved) -> String {
    let way = |bytes, bursts| format!("{} in {}", Bytes(bytes), Count(bursts, "burst"));
    format!(
        "copied {}, spliced {}",
        way(moved.bytes_copied, moved.bursts_copied),
        way(moved.bytes_spliced, moved.bursts_spliced)
    )
}

/// One object for programs.
pub(super) fn json(stats: &Stats) -> Value {
    let moved = |moved: Moved| {
        json!({
            "bytes_copied": moved.bytes_copied,
            "bytes_spliced": moved.bytes_spliced,
            "bursts_copied": moved.bursts_copied,
            "bursts_spliced": moved.bursts_spliced,
        })
    };
    let ended: serde_json::Map<_, _> =
        Ended::ALL.iter().map(|how| (how.name().to_owned(), stats.ended(*how).into())).collect();
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
        "seconds": stats.since.as_secs_f64(),
        "accepted": stats.accepted,
        "active": stats.active,
        "ended": ended,
        "up": moved(stats.up),
        "down": moved(stats.down),
        "http": http(&stats.http),
        "no_pipe": stats.no_pipe,
        "splice_refused": stats.splice_refused,
        "pipes": {
            "made": stats.pipes.made,
            "closed": stats.pipes.closed,
            "undersized": stats.pipes.undersized,
            "leased": stats.pipes.leased,
            "free": stats.pipes.free,
        },
        "targets": targets,
    })
}

fn http(http: &HttpStats) -> Value {
    let answers: serde_json::Map<_, _> =
        http.answers.iter().map(|(status, count)| (status.to_string(), (*count).into())).collect();
    json!({
        "requests": http.requests,
        "responses": http.responses,
        "answers": answers,
        "reused": http.reused,
        "asked_again": http.asked_again,
        "tunnels": http.tunnels,
    })
}
