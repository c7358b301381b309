//! What was counted, as Prometheus reads it. Pure.

use std::fmt::Write;

use crate::http::HttpStats;
use crate::stats::{Ended, Moved, Stats};
use crate::target::Seen;

/// All counters as text.
pub(crate) fn text(stats: &Stats) -> String {
    let mut page = Page::default();
    page.family("haul_relay_bytes_total", "counter", "Bytes relayed, by direction and way.");
    for (direction, moved) in directions(stats) {
        for (way, value) in [("copy", moved.bytes_copied), ("splice", moved.bytes_spliced)] {
            page.sample(&[("direction", direction), ("way", way)], value);
        }
    }
    page.family("haul_relay_bursts_total", "counter", "Bursts relayed, by direction and way.");
    for (direction, moved) in directions(stats) {
        for (way, value) in [("copy", moved.bursts_copied), ("splice", moved.bursts_spliced)] {
            page.sample(&[("direction", direction), ("way", way)], value);
        }
    }
    page.family("haul_relay_fallbacks_total", "counter", "Copies that should have been splices.");
    page.sample(&[("why", "no_pipe")], stats.no_pipe);
    page.sample(&[("why", "splice_refused")], stats.splice_refused);
    page.family("haul_relay_connections_total", "counter", "Connections accepted.");
    page.sample(&[], stats.accepted);
    page.family("haul_relay_connections", "gauge", "Connections there are.");
    page.sample(&[], stats.active);
    page.family("haul_relay_ended_total", "counter", "Connections that are over, by their end.");
    for how in Ended::ALL {
        page.sample(&[("how", how.name())], stats.ended(how));
    }
    page.family("haul_relay_pipes", "gauge", "Pipes there are, by their use.");
    page.sample(&[("use", "leased")], stats.pipes.leased as u64);
    page.sample(&[("use", "free")], stats.pipes.free as u64);
    page.family("haul_relay_pipes_made_total", "counter", "Pipes made.");
    page.sample(&[], stats.pipes.made);
    page.family("haul_relay_pipes_closed_total", "counter", "Pipes closed with bytes inside.");
    page.sample(&[], stats.pipes.closed);
    page.targets(stats);
    page.http(&stats.http);
    page.text
}

fn directions(stats: &Stats) -> [(&'static str, Moved); 2] {
    [("up", stats.up), ("down", stats.down)]
}

/// A page, and the name of the family its samples belong to.
#[derive(Default)]
struct Page {
    text: String,
    name: &'static str,
}

impl Page {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        // Writing to a string cannot fail.
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        let labels: Vec<_> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = match labels.len() {
            0 => String::new(),
            _ => format!("{{{}}}", labels.join(",")),
        };
        writeln!(self.text, "{}{labels} {value}", self.name).ok();
    }

    fn targets(&mut self, stats: &Stats) {
        type Value = fn(&Seen) -> u64;
        let families: [(&'static str, &str, &str, Value); 5] = [
            ("haul_relay_target_up", "gauge", "Whether connections go there.", |seen| {
                seen.is_up.into()
            }),
            ("haul_relay_target_connections", "gauge", "Connections to it.", |seen| seen.active),
            ("haul_relay_target_connected_total", "counter", "Connections made.", |seen| {
                seen.connected
            }),
            ("haul_relay_target_failed_total", "counter", "Connections not made.", |seen| {
                seen.failed
            }),
            ("haul_relay_target_checks_failed_total", "counter", "Checks that failed.", |seen| {
                seen.checks_failed
            }),
        ];
        for (name, kind, help, value) in families {
            self.family(name, kind, help);
            for seen in &stats.targets {
                self.sample(&[("target", &seen.address)], value(seen));
            }
        }
    }
}

impl Page {
    fn http(&mut self, http: &HttpStats) {
        self.family("haul_relay_http_requests_total", "counter", "Requests understood.");
        self.sample(&[], http.requests);
        self.family("haul_relay_http_responses_total", "counter", "Responses of targets.");
        for (class, value) in ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().zip(http.responses) {
            self.sample(&[("status", class)], value);
        }
        self.family("haul_relay_http_answers_total", "counter", "Answers of the relay itself.");
        for (status, value) in &http.answers {
            self.sample(&[("status", &status.to_string())], *value);
        }
        self.family("haul_relay_http_reused_total", "counter", "Requests on used connections.");
        self.sample(&[], http.reused);
        self.family("haul_relay_http_asked_again_total", "counter", "Requests sent again.");
        self.sample(&[], http.asked_again);
        self.family("haul_relay_http_tunnels_total", "counter", "Connections that left HTTP.");
        self.sample(&[], http.tunnels);
    }
}

/// A label's value, which may be any path.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_line() {
        let mut stats = Stats { accepted: 12, ..Stats::default() };
        stats.up.bytes_spliced = 99;
        stats.ended[Ended::Reset as usize] = 3;
        stats.http.responses[3] = 7;
        stats.http.answers.push((408, 6));
        stats.targets.push(Seen {
            address: "unix:/a\"b\\".to_owned(),
            is_up: true,
            active: 1,
            connected: 2,
            failed: 4,
            checks_failed: 5,
        });
        let text = text(&stats);
        for line in [
            "haul_relay_bytes_total{direction=\"up\",way=\"splice\"} 99",
            "haul_relay_bytes_total{direction=\"down\",way=\"copy\"} 0",
            "haul_relay_connections_total 12",
            "haul_relay_ended_total{how=\"reset\"} 3",
            "haul_relay_http_responses_total{status=\"4xx\"} 7",
            "haul_relay_http_answers_total{status=\"408\"} 6",
            "haul_relay_target_failed_total{target=\"unix:/a\\\"b\\\\\"} 4",
            "# TYPE haul_relay_pipes gauge",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_family_is_described_once_and_has_samples() {
        let stats = Stats::default();
        let text = text(&stats);
        for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
            assert_eq!(text.matches(line).count(), 1, "{line}");
        }
        assert!(text.ends_with('\n'));
    }
}
