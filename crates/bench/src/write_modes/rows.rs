//! Passes, added up into rows and ratios.

use haul_disk::DeviceCounters;

use super::measure::Pass;
use super::plan::Cell;
use crate::report::{Column, Row, Value};
use crate::stats::{Latencies, Spread};
use crate::trace::Traffic;

/// The number of times the same file is written.
pub(super) const PASSES: usize = 2;

pub(super) const BAR: &str = "records_per_s";

/// Times are in microseconds; all counts are for one record. Both are medians of the rounds: a
/// `sync` of another program, which commits every journal there is, does not get into them.
pub(super) const COLUMNS: &[Column] = &[
    Column::text("sync", "sync"),
    Column::number("record_bytes", "bytes", 0),
    Column::number("pass", "pass", 0),
    Column::text("way", "way"),
    Column::number("median_us", "µs", 1),
    Column::number("p99_us", "p99 µs", 1).ranked(3),
    Column::number("records_per_s", "records/s", 0),
    Column::number("records_per_s_min", "min", 0).ranked(9),
    Column::number("records_per_s_max", "max", 0).ranked(9),
    Column::number("device_written_bytes", "B written", 0).ranked(6),
    Column::number("data_writes", "writes", 2).ranked(4),
    Column::number("journal_writes", "journal", 2).ranked(1),
    Column::number("journal_bytes", "journal B", 0).ranked(8),
    Column::number("metadata_writes", "metadata", 2).ranked(5),
    Column::number("other_writes", "others", 2).ranked(7),
    Column::number("device_syncs", "syncs", 2).ranked(2),
    Column::number("device_reads", "reads", 2).ranked(6),
    Column::number("device_write_requests", "requests", 2).ranked(10),
    Column::number("fua_writes", "FUA", 2).ranked(10),
    Column::number("records", "records", 0).ranked(11),
];

/// What was counted in one round.
#[derive(Debug)]
struct Round {
    records: u64,
    counters: Option<DeviceCounters>,
    traffic: Option<Traffic>,
}

/// One cell and pass, over all rounds.
#[derive(Debug, Default)]
pub(super) struct Sum {
    latencies: Latencies,
    medians_us: Vec<f64>,
    rates: Vec<f64>,
    rounds: Vec<Round>,
    not: Option<&'static str>,
}

impl Sum {
    pub(super) fn add(&mut self, pass: &Pass) {
        self.latencies.add(&pass.latencies);
        self.medians_us.extend(pass.latencies.percentile_us(50.0));
        self.rates.push(pass.records as f64 / pass.time.as_secs_f64());
        let (counters, traffic) = (pass.counters, pass.traffic);
        self.rounds.push(Round { records: pass.records, counters, traffic });
    }

    /// The median of what `count` gives for one record; nothing when it gave nothing even once:
    /// half a trace would be taken for a quiet device.
    fn each(&self, count: impl Fn(&Round) -> Option<u64>) -> Value {
        let each = |round: &Round| Some(count(round)? as f64 / round.records as f64);
        let rounds: Option<Vec<_>> = self.rounds.iter().map(each).collect();
        rounds.and_then(|rounds| Spread::of(&rounds)).map(|spread| spread.median).into()
    }

    pub(super) fn cannot(&mut self, why: &'static str) {
        self.not = Some(why);
    }

    /// The row of the pass with that number, from 0.
    pub(super) fn row(&self, table: &str, cell: &Cell, pass: usize) -> Row {
        let (sync, bytes) = (cell.sync.name(), cell.record_bytes as f64);
        let group = format!("{sync} {bytes} {pass}");
        let mut values: Vec<Value> =
            vec![sync.into(), bytes.into(), (pass as f64 + 1.0).into(), cell.way.name().into()];
        if let Some(why) = self.not {
            return Row::new(table, &group, values).without_numbers(why);
        }
        let counted = |of: fn(&DeviceCounters) -> u64| self.each(|r| r.counters.as_ref().map(of));
        let traced = |of: fn(&Traffic) -> u64| self.each(|r| r.traffic.as_ref().map(of));
        let rates = Spread::of(&self.rates);
        values.extend([
            Value::from(Spread::of(&self.medians_us).map(|spread| spread.median)),
            self.latencies.percentile_us(99.0).into(),
            rates.map(|rates| rates.median).into(),
            rates.map(|rates| rates.min).into(),
            rates.map(|rates| rates.max).into(),
            counted(|device| device.written_bytes),
            traced(|traffic| traffic.data.writes),
            traced(|traffic| traffic.journal.writes),
            traced(|traffic| traffic.journal.bytes),
            traced(|traffic| traffic.metadata.writes),
            traced(|traffic| traffic.others.writes),
            counted(|device| device.syncs),
            counted(|device| device.reads),
            counted(|device| device.writes),
            traced(|traffic| traffic.fua),
            Value::Number(self.latencies.count() as f64),
        ]);
        Row::new(table, &group, values)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::plan::{Sync, Way};
    use super::*;
    use crate::host::Host;
    use crate::report::Report;

    const CELL: Cell = Cell { sync: Sync::Fdatasync, record_bytes: 4096, way: Way::Append };

    fn pass(records: u64, us: u64, traffic: Option<Traffic>) -> Pass {
        let mut latencies = Latencies::default();
        (0..records).for_each(|_| latencies.record(Duration::from_micros(us)));
        let time = Duration::from_micros(us * records);
        let counters = Some(DeviceCounters { writes: 2 * records, ..DeviceCounters::default() });
        Pass { records, time, latencies, counters, traffic, lost_events: 0 }
    }

    fn traffic(writes: u64) -> Option<Traffic> {
        let mut traffic = Traffic::default();
        traffic.journal.writes = writes;
        Some(traffic)
    }

    fn number(row: &Row, key: &str) -> Option<f64> {
        let report = Report::new("write-modes", Host::default(), COLUMNS, BAR);
        report.value(row, key)?.number()
    }

    #[test]
    fn counts_are_for_one_record_and_medians_of_the_rounds() {
        let mut sum = Sum::default();
        for (records, us, journal) in [(10, 100, 30), (20, 1000, 60), (10, 200, 31)] {
            sum.add(&pass(records, us, traffic(journal)));
        }
        let row = sum.row("ext4", &CELL, 1);
        let near = |key, expected: f64| {
            let got = number(&row, key).unwrap();
            assert!((got / expected - 1.0).abs() < 2e-3, "{key}: {got}");
        };
        near("median_us", 200.0);
        near("p99_us", 1000.0);
        near("records_per_s", 5000.0);
        near("records_per_s_max", 10000.0);
        near("device_write_requests", 2.0);
        near("journal_writes", 3.0);
        near("records", 40.0);
        near("pass", 2.0);
        assert_eq!(row.values.len(), COLUMNS.len());
    }

    #[test]
    fn one_round_without_a_trace_is_a_row_without_its_counts() {
        let mut sum = Sum::default();
        sum.add(&pass(10, 100, traffic(30)));
        sum.add(&pass(10, 100, None));
        let row = sum.row("ext4", &CELL, 0);
        assert_eq!(number(&row, "journal_writes"), None);
        assert_eq!(number(&row, "device_write_requests"), Some(2.0));
    }

    #[test]
    fn what_is_not_supported_has_a_row_that_says_so() {
        let mut sum = Sum::default();
        sum.cannot("not supported");
        let row = sum.row("ext4", &CELL, 0);
        assert_eq!((row.state.as_deref(), row.values.len()), (Some("not supported"), 4));
    }
}
