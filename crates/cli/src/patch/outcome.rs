//! Formats the result of a patch as text and JSON.

use std::path::Path;
use std::time::Duration;

use haul_disk::DeviceKind;
use haul_sorted_write::Stats;
use serde_json::{Value, json};

use crate::output::Name;
use crate::units::{Bytes, Count, Grouped, Time};

/// The result of a patch.
pub(super) struct Outcome<'a> {
    pub(super) target: &'a Path,
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) stats: Stats,
    /// The kind of the device, if known.
    pub(super) device: Option<DeviceKind>,
    pub(super) time: Duration,
    pub(super) is_rehearsal: bool,
    pub(super) is_atomic: bool,
}

impl Outcome<'_> {
    fn requests(&self) -> u64 {
        self.stats.writes + self.stats.reads
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let Stats { writes, written_bytes, reads, read_bytes, .. } = self.stats;
        let (done, would) = match self.is_rehearsal {
            true => ("would patch", "would be "),
            false => ("patched", ""),
        };
        let name = self.target.to_string_lossy();
        let mut lines = vec![format!(
            "{done} {}: {} ({}) in {}",
            Name(&name),
            Count(self.records, "record"),
            Bytes(self.bytes),
            Time(self.time),
        )];
        let mut requests =
            format!("{} {would}written ({})", Count(writes, "request"), Bytes(written_bytes));
        if reads > 0 {
            requests += &format!(", {} {would}read ({})", Grouped(reads), Bytes(read_bytes));
        }
        lines.push(match self.records.checked_sub(self.requests()) {
            Some(saved) => format!("  {requests}: {} fewer than records", Grouped(saved)),
            None => {
                let more = self.requests() - self.records;
                format!("  {requests}: {} more than records", Grouped(more))
            }
        });
        let (sorted, given) = (self.stats.seek_bytes, self.stats.unsorted_seek_bytes);
        let device = match self.device {
            Some(kind) => format!("{kind} disk"),
            None => "unknown kind of disk".to_owned(),
        };
        lines.push(format!(
            "  seek distance: {} sorted, {} in input order ({device})",
            Bytes(sorted),
            Bytes(given)
        ));
        lines
    }

    pub(super) fn json(&self) -> Value {
        let stats = &self.stats;
        json!({
            "kind": "patch",
            "file": self.target.to_string_lossy(),
            "records": self.records,
            "bytes": self.bytes,
            "dry_run": self.is_rehearsal,
            "atomic": self.is_atomic,
            "write_requests": stats.writes,
            "written_bytes": stats.written_bytes,
            "read_requests": stats.reads,
            "read_bytes": stats.read_bytes,
            // Without sorting and merging, each record would take one write request.
            "write_requests_saved": self.records.saturating_sub(stats.writes),
            "syncs": stats.syncs,
            "device_kind": self.device.map(|kind| kind.to_string()),
            "rounds": stats.rounds,
            "head_travel_bytes": stats.seek_bytes,
            "head_travel_bytes_as_given": stats.unsorted_seek_bytes,
            "seconds": self.time.as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_contains_requests_and_seek_distance() {
        let stats = Stats {
            writes: 1000,
            written_bytes: 8 << 20,
            seek_bytes: 1 << 30,
            unsorted_seek_bytes: 3 << 40,
            ..Stats::default()
        };
        let mut outcome = Outcome {
            target: Path::new("disk.img"),
            records: 3000,
            bytes: 6 << 20,
            stats,
            device: Some(DeviceKind::SolidState),
            time: Duration::from_secs(2),
            is_rehearsal: false,
            is_atomic: false,
        };
        let lines = outcome.lines();
        assert_eq!(lines[0], "patched disk.img: 3,000 records (6 MiB) in 2.0 s");
        assert_eq!(lines[1], "  1,000 requests written (8 MiB): 2,000 fewer than records");
        assert_eq!(
            lines[2],
            "  seek distance: 1 GiB sorted, 3 TiB in input order (solid-state disk)"
        );
        outcome.stats.reads = 2500;
        outcome.is_rehearsal = true;
        let lines = outcome.lines();
        assert!(
            lines[1].ends_with("2,500 would be read (0 B): 500 more than records"),
            "{lines:?}"
        );
        assert_eq!(outcome.json()["write_requests_saved"], 2000);
    }
}
