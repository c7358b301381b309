//! Measures the disk itself, and describes it in one line.

use std::path::Path;

use haul_cli_common::svg::rate_label;
use haul_disk::{KernelFiles, probe};
use haul_measure::{Measured, Method, Options, Result, Rotation, Watcher, measure};
use serde_json::{Value as Json, json};

use crate::host::StorageFacts;

/// The figures of the disk.
#[derive(Debug, Clone)]
pub(super) struct DiskFigures {
    storage: StorageFacts,
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
    let stall_s = limit_bytes.zip(measured.write_bytes_per_s).map(|(limit, rate)| limit / rate);
    Ok(DiskFigures { storage, measured, stall_s })
}

impl DiskFigures {
    /// Returns the methods of writing a durable block that were measured, and their median latencies
    /// in microseconds.
    fn writes(&self) -> impl Iterator<Item = (Method, f64)> {
        let writes = self.measured.writes.iter();
        writes.filter_map(|it| Some((it.method, it.sample.latencies.percentile_us(50.0)?)))
    }

    /// Returns pairs of queue depth and random reads per second.
    fn reads(&self) -> Vec<(usize, f64)> {
        let reads = self.measured.reads.iter();
        reads.filter_map(|it| Some((it.depth, it.sample.per_second()?))).collect()
    }

    /// Describes the disk in one line. `crossover` is the ratio of data to memory from which on
    /// direct reads are faster than cached ones.
    pub(super) fn line(&self, crossover: Option<f64>) -> String {
        let device = self.storage.device.as_deref().unwrap_or("an unknown device");
        let mut parts = vec![format!("{} on {device}{}", self.storage.file_system, self.kind())];
        let durable = self.writes().filter(|(method, _)| method.is_durable());
        if let Some((best, us)) = durable.min_by(|a, b| a.1.total_cmp(&b.1)) {
            let mut others = self.writes().filter(|it| it.0 == Method::Fdatasync && it.0 != best);
            let other = others.next().map(|it| format!("; fdatasync {:.2} ms", it.1 / 1000.0));
            let (ms, other) = (us / 1000.0, other.unwrap_or_default());
            parts.push(format!("durable 4 KiB write {ms:.2} ms (best: {best}{other})"));
        }
        let reads = self.reads();
        let rate = |depth| reads.iter().find(|it| it.0 == depth).map(|it| it.1);
        if let (Some(knee), Some(one)) = (self.measured.depth, reads.first().map(|it| it.1)) {
            let best = rate(knee).unwrap_or(one);
            parts.push(format!(
                "random reads {} alone, {} at depth {knee} {}",
                rate_label(one),
                rate_label(best),
                sparkline(&reads)
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
        let writes = self.writes().map(|(method, median_us)| {
            let (name, is_durable) = (method.to_string(), method.is_durable());
            json!({ "method": name, "durable": is_durable, "median_us": median_us })
        });
        let reads = self.reads().into_iter();
        let reads = reads.map(|it| json!({ "depth": it.0, "reads_per_s": it.1 }));
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
    use std::time::Duration;

    use haul_measure::{DepthRead, MethodWrite, Sample};

    use super::*;

    fn sample(us: u64, count: u32) -> Sample {
        let mut sample = Sample { time: Duration::from_secs(1), ..Sample::default() };
        (0..count).for_each(|_| sample.latencies.record(Duration::from_micros(us)));
        sample
    }

    fn figures() -> DiskFigures {
        let write = |(method, us)| MethodWrite { method, sample: sample(us, 1), why_not: None };
        let read = |(depth, count)| DepthRead { depth, sample: sample(1, count) };
        let writes =
            [(Method::Fdatasync, 250), (Method::DirectDsync, 210), (Method::WrittenOut, 100)];
        let reads = [(1, 4100), (2, 8000), (4, 15_000), (8, 52_000), (16, 52_500)];
        DiskFigures {
            storage: StorageFacts {
                file_system: "ext4".to_owned(),
                device: Some("vda".to_owned()),
                rotational: Some(true),
                ..StorageFacts::default()
            },
            measured: Measured {
                writes: writes.map(write).into(),
                reads: reads.map(read).into(),
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
        let mut nothing = DiskFigures { stall_s: None, ..figures() };
        nothing.storage = StorageFacts::default();
        (nothing.measured.writes, nothing.measured.reads) = (Vec::new(), Vec::new());
        assert_eq!(nothing.line(None), " on an unknown device");
    }
}
