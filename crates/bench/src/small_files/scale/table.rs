//! Defines the columns of the report, and computes the figures for each object. Performs no I/O.

use super::child::{OBJECT_BYTES, PAGE_KEYS};
use super::lines::Step;
use super::options::Options;
use crate::report::{Column, Report, Row, Samples, Value};
use crate::small_files::directory::Space;
use crate::small_files::fill::Loaders;
use crate::small_files::objects::USER_KEY_BYTES;

pub(super) const BAR: &str = "count";

pub(super) const COLUMNS: &[Column] = &[
    Column::text("phase", "phase"),
    Column::number("count", "count", 0),
    Column::number("seconds", "s", 2),
    Column::number("per_s", "per s", 0),
    Column::number("cpu_seconds", "CPU s", 2),
    Column::number("memory_mib", "memory, MiB", 1),
    Column::number("p50_us", "p50 µs", 1),
    Column::number("p99_us", "p99 µs", 1),
];

/// The figures of all phases.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) steps: Vec<Step>,
    pub(super) space: Space,
    pub(super) cold_open: Option<Step>,
    pub(super) warm_open: Option<Step>,
    pub(super) list: Option<Step>,
    pub(super) pages: Option<Step>,
}

impl Results {
    /// Adds the rows and the figures for each object to `report`.
    pub(super) fn report(&self, report: &mut Report) {
        let mut before = 0;
        for step in &self.steps {
            report.rows.push(row("storing, up to this count", step, step.count - before));
            before = step.count;
        }
        for (name, step) in [
            ("opening after a kill, files not cached", self.cold_open),
            ("opening after a kill, files cached", self.warm_open),
            ("listing the bucket, keys", self.list),
            ("listing pages at random keys", self.pages),
        ] {
            report.rows.extend(step.map(|step| row(name, &step, step.count)));
        }
        let points: Vec<_> =
            self.steps.iter().map(|step| (step.count as f64, step.memory_bytes as f64)).collect();
        let amount = |number: Option<f64>| number.map(|it| Samples::new("store", [it]));
        report.amount("memory_bytes_per_object", amount(slope(&points)));
        let objects = before as f64;
        let of_open = self.cold_open.map(|step| step.memory_bytes as f64 / objects);
        report.amount("memory_bytes_per_object_after_open", amount(of_open));
        let disk = self.space.data_bytes as f64 / objects;
        let payload = (OBJECT_BYTES + USER_KEY_BYTES) as f64;
        report.amount("disk_bytes_per_object_beyond_payload", amount(Some(disk - payload)));
        let prepared_mib = self.space.prepared_bytes as f64 / (1 << 20) as f64;
        report.amount("prepared_mib", amount(Some(prepared_mib)));
    }
}

fn row(phase: &str, step: &Step, done: u64) -> Row {
    let seconds = step.time.as_secs_f64();
    let latency = |us: f64| Some(us).filter(|us| *us > 0.0).into();
    let values: Vec<Value> = vec![
        phase.to_owned().into(),
        (step.count as f64).into(),
        seconds.into(),
        (done as f64 / seconds).into(),
        step.cpu.as_secs_f64().into(),
        (step.memory_bytes as f64 / (1 << 20) as f64).into(),
        latency(step.p50_us),
        latency(step.p99_us),
    ];
    Row::new("", phase, values)
}

/// Returns the slope of the line through the points with the least squared error.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let product: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (square > 0.0).then(|| product / square)
}

pub(super) fn note(options: &Options) -> String {
    let Loaders { threads, batch } = options.loaders();
    let call = match batch {
        1 => "one object with each call of put".to_owned(),
        _ => format!("{batch} objects with each call of put_many"),
    };
    format!(
        "{} objects of {OBJECT_BYTES} bytes with keys of {USER_KEY_BYTES} bytes, stored by \
         {threads} threads (--loaders), {call} (--batch), durable when the call returns. Memory is VmRSS after each step; \
         memory_bytes_per_object is its slope over the steps. A process was killed with SIGKILL \
         before each opening; \"not cached\" is after an eviction of all files from the page cache. \
         disk_bytes_per_object_beyond_payload is the allocated bytes of all files divided by the \
         objects, minus object and key; blocks of zeros count as prepared_mib instead, because \
         the store prepares files for later writes with zeros. A page of the listing has {PAGE_KEYS} keys.",
        options.objects
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_ignores_the_memory_of_an_empty_store() {
        let points = [(1e6, 1.5e8), (2e6, 3e8), (3e6, 4.5e8)].map(|(x, y)| (x, y + 7e6));
        assert!((slope(&points).unwrap() - 150.0).abs() < 1e-6);
        assert_eq!(slope(&[(1.0, 1.0)]), None);
        assert_eq!(slope(&[]), None);
    }
}
