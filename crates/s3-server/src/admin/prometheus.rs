//! The text format of Prometheus, version 0.0.4. Pure.

use std::fmt::{Display, Write};

use haul_file_store::Stats;

use crate::metrics::Metrics;

/// All metrics. `file_system`: its size and free bytes, where they could be had.
pub(super) fn text(stats: &Stats, metrics: &Metrics, file_system: Option<(u64, u64)>) -> String {
    let mut out = Page(String::with_capacity(16 << 10));
    requests(&mut out, metrics);
    store(&mut out, stats);
    if let Some((bytes, free_bytes)) = file_system {
        out.gauge("haul_file_system_bytes", "Size of the file system of the store.", bytes);
        out.gauge("haul_file_system_free_bytes", "Free bytes of it.", free_bytes);
    }
    out.0
}

fn requests(out: &mut Page, metrics: &Metrics) {
    let up = metrics.uptime().as_secs_f64();
    out.gauge("haul_uptime_seconds", "Time since the server was started.", up);
    out.gauge("haul_requests_in_flight", "Requests being answered.", metrics.in_flight());
    let (received, sent) = (metrics.received_bytes(), metrics.sent_bytes());
    out.counter("haul_received_bytes_total", "Bytes of objects received.", received);
    out.counter("haul_sent_bytes_total", "Bytes of responses sent.", sent);

    out.head("haul_requests_total", "Requests answered.", "counter");
    for seen in metrics.requests() {
        for (class, count) in seen.by_status.iter().enumerate().skip(1) {
            let labels = format!("{{kind=\"{}\",status=\"{}xx\"}}", seen.kind.name(), class + 1);
            out.sample("haul_requests_total", &labels, count);
        }
    }
    let name = "haul_request_duration_seconds";
    out.head(name, "From the head of the request to that of the response.", "histogram");
    for seen in metrics.requests() {
        let label = format!("kind=\"{}\"", seen.kind.name());
        out.histogram(name, &label, &seen.latency, Some(seen.latency_us_sum));
    }
}

fn store(out: &mut Page, stats: &Stats) {
    out.gauge("haul_buckets", "Buckets.", stats.buckets);
    out.gauge("haul_objects", "Objects.", stats.objects);
    out.gauge("haul_object_bytes", "Bytes of all objects.", stats.object_bytes);
    out.gauge(
        "haul_uploads",
        "Uploads in parts that are neither complete nor aborted.",
        stats.uploads,
    );
    out.gauge("haul_volumes", "Volumes of small objects.", stats.volumes);
    out.gauge("haul_volume_bytes", "Bytes of all volumes.", stats.volume_bytes);
    let live = stats.live_volume_bytes;
    out.gauge("haul_volume_live_bytes", "Bytes in volumes that belong to an object.", live);
    out.gauge("haul_big_files", "Files of big objects and parts.", stats.big_files);
    out.gauge("haul_big_file_bytes", "Bytes of them.", stats.big_file_bytes);
    let latched = u64::from(stats.latched);
    out.gauge("haul_latched", "1 after a failed sync, when writes are refused.", latched);

    out.counter("haul_store_puts_total", "Objects stored.", stats.puts);
    out.counter("haul_store_gets_total", "Objects read.", stats.gets);
    out.counter("haul_store_deletes_total", "Objects deleted.", stats.deletes);
    out.counter("haul_store_lists_total", "Pages listed.", stats.lists);
    out.counter("haul_store_reads_total", "Reads of volumes.", stats.needle_reads);
    let read_bytes = stats.needle_read_bytes;
    out.counter("haul_store_read_bytes_total", "Bytes read from volumes.", read_bytes);
    out.counter("haul_log_records_total", "Records appended to the log.", stats.log_records);
    out.counter("haul_log_batches_total", "Batches of records written.", stats.log_batches);
    let written_bytes = stats.log_written_bytes;
    out.counter("haul_log_written_bytes_total", "Bytes written to the log.", written_bytes);
    let name = "haul_sync_duration_seconds";
    out.head(name, "Syncs of the log: how long the disk took.", "histogram");
    out.histogram(name, "", &stats.sync_us, None);
}

/// The text so far. Writing to a string cannot fail.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _cannot_fail = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _cannot_fail = writeln!(self.0, "{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, help, "gauge");
        self.sample(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, help, "counter");
        self.sample(name, "", value);
    }

    /// Bucket i of `counts` holds what took less than 2^i µs; the last one everything longer.
    /// Without a sum, one is estimated from the middles of the buckets.
    fn histogram(&mut self, name: &str, label: &str, counts: &[u64], us_sum: Option<u64>) {
        let comma = if label.is_empty() { "" } else { "," };
        let mut below = 0;
        let mut estimate = 0.0;
        for (index, count) in counts.iter().enumerate() {
            below += count;
            let bound_s = (1_u64 << index) as f64 / 1e6;
            estimate += *count as f64 * bound_s * 0.75;
            // From 16 µs to 67 s: what is shorter or longer needs no bounds of its own.
            if (4..27).contains(&index) {
                let labels = format!("{{{label}{comma}le=\"{bound_s}\"}}");
                self.sample(&format!("{name}_bucket"), &labels, below);
            }
        }
        self.sample(&format!("{name}_bucket"), &format!("{{{label}{comma}le=\"+Inf\"}}"), below);
        let labels = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
        let sum_s = us_sum.map_or(estimate, |us| us as f64 / 1e6);
        self.sample(&format!("{name}_sum"), &labels, sum_s);
        self.sample(&format!("{name}_count"), &labels, below);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::StatusCode;

    use super::*;
    use crate::metrics::Kind;

    #[test]
    fn histograms_rise_to_their_count() {
        let metrics = Metrics::new();
        for us in [3, 100, 100, 5_000, 90_000_000] {
            metrics.answered(Kind::Get, StatusCode::OK, Duration::from_micros(us));
        }
        let text = text(&Stats::default(), &metrics, Some((10, 4)));
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
    fn every_metric_is_explained_once() {
        let text = text(&Stats::default(), &Metrics::new(), None);
        let mut types: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let count = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), count);
        assert!(count > 20);
    }
}
