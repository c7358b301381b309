//! Measures the disk itself, and describes it in one line.

use std::path::Path;

use haul_cli_common::svg::rate_label;
use haul_disk::{KernelFiles, probe};
use haul_measure::{Measured, Method, Options, Result, Rotation, Watcher, measure};
use serde_json::{Value as Json, json};

use crate::host::StorageFacts;

/// The latencies of one method of writing a durable block.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WriteCurve {
    pub(super) name: String,
    pub(super) is_durable: bool,
    pub(super) median_us: f64,
}

/// The figures of the disk.
#[derive(Debug, Clone)]
pub(super) struct DiskFigures {
    storage: StorageFacts,
    writes: Vec<WriteCurve>,
    /// Pairs of queue depth and random reads per second.
    reads: Vec<(usize, f64)>,
    measured: Measured,
    /// The time in seconds for which writers that never sync may be blocked.
    stall_s: Option<f64>,
}

/// Measures the disk below `dir`.
pub(super) fn measure_disk(
    dir: &Path,
    is_quick: bool,
    watcher: &dyn Watcher,
) -> Result<DiskFigures> {
    let storage = StorageFacts::of("", &probe(dir)?);
    let bytes = if is_quick { 64 << 20 } else { 256 << 20 };
    let rounds = if is_quick { 3 } else { 5 };
    let measured = measure(&Options { bytes, rounds, ..Options::new(dir) }, watcher)?;
    let limit_bytes = KernelFiles::default().machine().limits().map(|it| it.limit_bytes as f64);
    Ok(DiskFigures::of(storage, measured, limit_bytes))
}

impl DiskFigures {
    fn of(storage: StorageFacts, measured: Measured, limit_bytes: Option<f64>) -> Self {
        let curve = |write: &haul_measure::MethodWrite| {
            Some(WriteCurve {
                name: write.method.to_string(),
                is_durable: write.method.is_durable(),
                median_us: write.sample.latencies.percentile_us(50.0)?,
            })
        };
        let read = |row: &haul_measure::DepthRead| Some((row.depth, row.sample.per_second()?));
        let writes = measured.writes.iter().filter_map(curve).collect();
        let reads = measured.reads.iter().filter_map(read).collect();
        let stall_s = limit_bytes.zip(measured.write_bytes_per_s).map(|(limit, rate)| limit / rate);
        Self { storage, writes, reads, measured, stall_s }
    }

    /// Returns the durable method with the smallest median latency.
    pub(super) fn best_write(&self) -> Option<&WriteCurve> {
        let durable = self.writes.iter().filter(|curve| curve.is_durable);
        durable.min_by(|a, b| a.median_us.total_cmp(&b.median_us))
    }

    /// Describes the disk in one line. `crossover` is the ratio of data to memory from which on
    /// direct reads are faster than cached ones.
    pub(super) fn line(&self, crossover: Option<f64>) -> String {
        let device = self.storage.device.as_deref().unwrap_or("an unknown device");
        let mut parts = vec![format!("{} on {device}{}", self.storage.file_system, self.kind())];
        if let Some(best) = self.best_write() {
            let ms = best.median_us / 1000.0;
            let name = Method::Fdatasync.to_string();
            let other = self.writes.iter().find(|it| it.name == name && it.name != best.name);
            let other = other
                .map(|it| format!("; fdatasync {:.2} ms", it.median_us / 1000.0))
                .unwrap_or_default();
            parts.push(format!("durable 4 KiB write {ms:.2} ms (best: {}{other})", best.name));
        }
        let rate = |depth| self.reads.iter().find(|it| it.0 == depth).map(|it| it.1);
        if let (Some(knee), Some(one)) = (self.measured.depth, self.reads.first().map(|it| it.1)) {
            let best = rate(knee).unwrap_or(one);
            parts.push(format!(
                "random reads {} alone, {} at depth {knee} {}",
                rate_label(one),
                rate_label(best),
                sparkline(&self.reads)
            ));
        }
        if let Some(crossover) = crossover {
            parts.push(format!("direct reads pay off from {crossover} times the memory"));
        }
        if let Some(stall_s) = self.stall_s {
            parts.push(format!("unsynced writers may stall {stall_s:.0} s"));
        }
        parts.join(" · ")
    }

    fn kind(&self) -> &'static str {
        match (self.storage.rotational, self.measured.rotation) {
            (Some(true), Rotation::Denied) => " (reports itself as spinning, but is not)",
            (Some(true), _) => " (spinning)",
            _ => "",
        }
    }

    pub(super) fn json(&self) -> Json {
        let writes = self.writes.iter().map(|it| {
            json!({
                "method": it.name, "durable": it.is_durable, "median_us": it.median_us,
            })
        });
        let reads = self.reads.iter().map(|it| json!({ "depth": it.0, "reads_per_s": it.1 }));
        json!({
            "writes": writes.collect::<Vec<_>>(), "reads": reads.collect::<Vec<_>>(),
            "knee": self.measured.depth, "read_bytes_per_s": self.measured.read_bytes_per_s,
            "write_bytes_per_s": self.measured.write_bytes_per_s, "stall_s": self.stall_s,
        })
    }
}

/// Draws the rates as a row of blocks, the highest one for the best rate.
fn sparkline(reads: &[(usize, f64)]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let best = reads.iter().map(|it| it.1).fold(0.0, f64::max);
    let block = |rate: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 7")]
        let at = (rate / best * 7.0).round().clamp(0.0, 7.0) as usize;
        BLOCKS.get(at).copied().unwrap_or(' ')
    };
    reads.iter().map(|it| block(it.1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> DiskFigures {
        let curve = |name: &str, us: f64, is_durable| WriteCurve {
            name: name.to_owned(),
            is_durable,
            median_us: us,
        };
        DiskFigures {
            storage: StorageFacts {
                file_system: "ext4".to_owned(),
                device: Some("vda".to_owned()),
                rotational: Some(true),
                ..StorageFacts::default()
            },
            writes: vec![
                curve(&Method::Fdatasync.to_string(), 250.0, true),
                curve(&Method::DirectDsync.to_string(), 210.0, true),
                curve(&Method::WrittenOut.to_string(), 100.0, false),
            ],
            reads: vec![(1, 4100.0), (2, 8000.0), (4, 15_000.0), (8, 52_000.0), (16, 52_500.0)],
            measured: Measured {
                writes: Vec::new(),
                reads: Vec::new(),
                read_bytes_per_s: Some(1e9),
                write_bytes_per_s: Some(2e8),
                depth: Some(8),
                rotation: Rotation::Denied,
                notes: Vec::new(),
            },
            stall_s: Some(18.2),
        }
    }

    #[test]
    fn line_has_what_people_ask_about_a_disk() {
        let expected = "ext4 on vda (reports itself as spinning, but is not) · durable 4 KiB write \
            0.21 ms (best: overwriting, O_DIRECT|O_DSYNC; fdatasync 0.25 ms) · random reads \
            4.1k/s alone, 52k/s at depth 8 ▂▂▃██ · direct reads pay off from 4 times the memory · \
            unsynced writers may stall 18 s";
        assert_eq!(figures().line(Some(4.0)), expected);
        let nothing = DiskFigures {
            writes: Vec::new(),
            reads: Vec::new(),
            stall_s: None,
            storage: StorageFacts::default(),
            ..figures()
        };
        assert_eq!(nothing.line(None), " on an unknown device");
    }
}
