//! Defines the columns of the report and computes its ratios. Performs no I/O.

use std::time::Duration;

use haul_disk::DeviceCounters;
use haul_disk_sim::Counters;

use super::method::{Cell, Index, Method};
use crate::contest::{Contest, Field, number};
use crate::report::{Ratio, Report, Samples};

/// A method with its index and batch; without them, the least possible time of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strategy {
    pub(super) batch: usize,
    pub(super) cell: Option<Cell>,
}

const BOUND: &str = "bound";

impl Strategy {
    fn name(&self) -> &'static str {
        self.cell.map_or(BOUND, |cell| cell.method.name())
    }

    fn index(&self) -> Index {
        self.cell.map_or(Index::None, |cell| cell.index)
    }
}

/// The figures of one round. Requests, bytes, syncs and seeks are per record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Round {
    pub(super) batch: Option<f64>,
    pub(super) records: f64,
    pub(super) per_s: f64,
    pub(super) service_s: Option<f64>,
    elapsed_s: Option<f64>,
    cpu_us: Option<f64>,
    pub(super) reads: Option<f64>,
    pub(super) writes: Option<f64>,
    bytes: Option<f64>,
    pub(super) syncs: Option<f64>,
    pub(super) seeks: Option<f64>,
    pub(super) travel_cylinders: Option<f64>,
}

impl Round {
    /// Returns a round that wrote `records` records in `seconds` seconds.
    fn new(records: f64, seconds: f64) -> Self {
        Self { records, per_s: records / seconds, ..Self::default() }
    }

    /// Returns the round with its batch length, which is at most the number of records.
    pub(super) fn in_batches(self, batch: usize) -> Self {
        Self { batch: Some(self.records.min(batch as f64)), ..self }
    }

    /// Returns a round that took `service_s` seconds by the clock of a simulated drive.
    pub(super) fn from_service(records: f64, service_s: f64) -> Self {
        Self { service_s: Some(service_s), ..Self::new(records, service_s) }
    }

    /// Returns a round with the counters of a simulated drive.
    pub(super) fn from_drive(records: f64, requests: &Counters) -> Self {
        let each = |number: u64| Some(number as f64 / records);
        Self {
            reads: each(requests.reads),
            writes: each(requests.writes),
            bytes: each(requests.bytes_read + requests.bytes_written),
            syncs: each(requests.syncs),
            seeks: each(requests.seeks),
            travel_cylinders: Some(requests.seek_cylinders as f64),
            ..Self::from_service(records, requests.service_ns() as f64 / 1e9)
        }
    }

    /// Returns a round with times by the wall clock, and the counters of the device.
    pub(super) fn from_disk(
        records: usize,
        elapsed: Duration,
        cpu: Duration,
        requests: Option<DeviceCounters>,
    ) -> Self {
        let (records, elapsed_s) = (records as f64, elapsed.as_secs_f64());
        let each = |number: fn(&DeviceCounters) -> u64| {
            requests.as_ref().map(|requests| number(requests) as f64 / records)
        };
        Self {
            elapsed_s: Some(elapsed_s),
            cpu_us: Some(cpu.as_secs_f64() * 1e6 / records),
            reads: each(|requests| requests.reads),
            writes: each(|requests| requests.writes),
            bytes: each(|requests| requests.read_bytes + requests.written_bytes),
            syncs: each(|requests| requests.syncs),
            ..Self::new(records, elapsed_s)
        }
    }
}

pub(super) const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("way", "method", |strategy| strategy.name().into()),
    Field::label("index", "index", |strategy| strategy.index().name().into()),
    number("batch", "batch", 0).median(batch),
    number("records", "records", 0).rank(4).median(|round| Some(round.records)),
    number("per_s", "records/s", 0).spread(6, per_s),
    number("service_s", "service s", 2).median(|round| round.service_s),
    number("elapsed_s", "elapsed s", 2).rank(3).median(|round| round.elapsed_s),
    number("cpu_us", "CPU µs", 1).rank(2).median(|round| round.cpu_us),
    number("reads", "reads", 3).rank(2).median(|round| round.reads),
    number("writes", "writes", 3).rank(2).median(|round| round.writes),
    number("bytes", "B moved", 0).rank(4).median(|round| round.bytes),
    number("syncs", "syncs", 4).rank(3).median(|round| round.syncs),
    number("seeks", "seeks", 3).rank(2).median(|round| round.seeks),
    number("travel_cylinders", "cylinders", 0).rank(3).median(|round| round.travel_cylinders),
];

fn batch(round: &Round) -> Option<f64> {
    round.batch
}

pub(super) fn per_s(round: &Round) -> Option<f64> {
    Some(round.per_s)
}

/// Adds the ratios between the methods for each batch length. The ratios for the longest batch are
/// also added under names without the length.
pub(super) fn add_ratios(prefix: &str, contest: &Contest<Strategy, Round>, report: &mut Report) {
    let entries = &contest.entries;
    let mut batches: Vec<_> = entries.iter().filter_map(|entry| entry.median(batch)).collect();
    batches.sort_by(f64::total_cmp);
    batches.dedup();
    for length in &batches {
        let mut add = |name: &str, ratio: Option<Ratio>| {
            report.ratio(format!("{prefix}_{name}_batch_{length}"), ratio.clone());
            if Some(length) == batches.last() {
                report.ratio(format!("{prefix}_{name}"), ratio);
            }
        };
        let entry = |name: &str, index: Index| {
            let mut entries = entries.iter().filter(|entry| entry.median(batch) == Some(*length));
            entries.find(|entry| (entry.strategy.name(), entry.strategy.index()) == (name, index))
        };
        let alone = |method: Method| entry(method.name(), Index::None);
        let mixed = |method: Method| entry(method.name(), Index::Mixed);
        let merged = alone(Method::Merged);
        let separate = entry(Method::Merged.name(), Index::Separate);
        for (name, a, b) in [
            ("sorted_vs_random", merged, alone(Method::Random)),
            ("merged_vs_sorted", merged, alone(Method::Sorted)),
            ("merged_vs_sorted_direct", merged, alone(Method::SortedDirect)),
            ("bound_vs_sorted", entry(BOUND, Index::None), merged),
            // `Merged` with a separate index and `SortedDirect` with a mixed index both sort their
            // writes, so this ratio shows mainly the effect of the index.
            ("apart_vs_mixed", separate, mixed(Method::SortedDirect)),
            ("apart_vs_mixed_cached", separate, mixed(Method::Sorted)),
            ("random_vs_mapped", alone(Method::Random), alone(Method::Mapped)),
            ("sorted_vs_sorted_mapped", alone(Method::Sorted), alone(Method::SortedMapped)),
        ] {
            add(name, a.zip(b).and_then(|(a, b)| a.ratio(b, per_s)));
        }
        let seconds = |index| entry(Method::Sorted.name(), index)?.samples(seconds);
        let sum = seconds(Index::None).zip(seconds(Index::Alone)).map(sum);
        for (name, index, base) in [
            ("mixed_vs_sum", Index::Mixed, sum.clone()),
            ("apart_vs_sum", Index::Separate, sum),
            ("mixed_vs_in_memory", Index::Mixed, seconds(Index::InMemory)),
        ] {
            add(name, seconds(index).zip(base).and_then(|(a, b)| Ratio::of(a, b)));
        }
    }
}

/// Returns the time of the records without an index and of the index alone, in each round.
fn sum((records, index): (Samples, Samples)) -> Samples {
    let both = records.rounds.iter().zip(index.rounds.values());
    let rounds = both.map(|((number, records), index)| (*number, records + index)).collect();
    Samples { name: "the sum of both alone".to_owned(), rounds }
}

fn seconds(round: &Round) -> Option<f64> {
    Some(round.records / round.per_s)
}

#[cfg(test)]
mod tests {
    use super::super::records::Shape;
    use super::*;
    use crate::contest::new_report;

    fn contest(lines: &[(&str, Index, f64, &[f64])]) -> Contest<Strategy, Round> {
        let strategy = |(name, index, _, _): &(&str, Index, f64, &[f64])| {
            let cell = |method| Cell { shape: Shape::Records, method, index: *index, batch: 1 };
            Strategy { batch: 1, cell: name.parse().ok().map(cell) }
        };
        let mut contest = Contest::new(FIELDS, lines.iter().map(strategy));
        contest.record_all(lines.iter().map(|(_, _, batch, rates)| {
            let batch = Some(*batch);
            rates.iter().map(move |rate| Some(Round { batch, per_s: *rate, ..Round::default() }))
        }));
        contest
    }

    #[test]
    fn ratios_of_methods_are_per_batch_and_of_the_longest_one() {
        let contest = contest(&[
            ("random", Index::None, 10.0, &[2.0]),
            ("sorted-merged", Index::None, 10.0, &[3.0]),
            ("random", Index::None, 1000.0, &[2.0]),
            ("sorted-merged", Index::None, 1000.0, &[14.0]),
            ("bound", Index::None, 1000.0, &[21.0]),
            ("sorted-direct", Index::Mixed, 1000.0, &[1.0]),
            ("sorted-merged", Index::Separate, 1000.0, &[12.0]),
        ]);
        let mut report = new_report("random-write", FIELDS, String::new());
        add_ratios("spinning", &contest, &mut report);
        report.assert_ratios(&[
            ("spinning_sorted_vs_random_batch_10", 1.5),
            ("spinning_sorted_vs_random_batch_1000", 7.0),
            ("spinning_sorted_vs_random", 7.0),
            ("spinning_bound_vs_sorted_batch_1000", 1.5),
            ("spinning_bound_vs_sorted", 1.5),
            ("spinning_apart_vs_mixed_batch_1000", 12.0),
            ("spinning_apart_vs_mixed", 12.0),
        ]);
    }
}
