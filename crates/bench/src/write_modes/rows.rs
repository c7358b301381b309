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

/// All counts are for one record.
pub(super) const COLUMNS: &[Column] = &[
    Column::text("sync", "sync"),
    Column::number("record_bytes", "bytes", 0),
    Column::number("pass", "pass", 0),
    Column::text("way", "way"),
    Column::number("median_us", "µs", 1),
    Column::number("p99_us", "p99 µs", 1).ranked(2),
    Column::number("records_per_s", "records/s", 0),
    Column::number("records_per_s_min", "min", 0).ranked(7),
    Column::number("records_per_s_max", "max", 0).ranked(7),
    Column::number("device_written_bytes", "B written", 0).ranked(4),
    Column::number("data_writes", "writes", 2).ranked(1),
    Column::number("journal_writes", "journal", 2).ranked(1),
    Column::number("journal_bytes", "journal B", 0).ranked(6),
    Column::number("metadata_writes", "metadata", 2).ranked(3),
    Column::number("other_writes", "others", 2).ranked(5),
    Column::number("device_syncs", "syncs", 2).ranked(1),
    Column::number("device_reads", "reads", 2).ranked(4),
    Column::number("device_write_requests", "requests", 2).ranked(8),
    Column::number("fua_writes", "FUA", 2).ranked(8),
    Column::number("records", "records", 0).ranked(9),
];

/// One cell and pass, over all rounds.
#[derive(Debug, Default)]
pub(super) struct Sum {
    records: u64,
    latencies: Latencies,
    medians_us: Vec<f64>,
    rates: Vec<f64>,
    counters: Option<DeviceCounters>,
    traffic: Option<Traffic>,
    is_untraced: bool,
    not: Option<&'static str>,
}

impl Sum {
    pub(super) fn add(&mut self, pass: &Pass) {
        self.records += pass.records;
        self.latencies.add(&pass.latencies);
        self.medians_us.extend(pass.latencies.percentile_us(50.0));
        self.rates.push(pass.records as f64 / pass.time.as_secs_f64());
        if let Some(new) = pass.counters {
            let sum = self.counters.get_or_insert_default();
            sum.reads += new.reads;
            sum.writes += new.writes;
            sum.written_bytes += new.written_bytes;
            sum.syncs += new.syncs;
        }
        // Half a trace would be taken for a quiet device.
        self.is_untraced |= pass.traffic.is_none();
        if let Some(new) = pass.traffic {
            *self.traffic.get_or_insert_default() += new;
        }
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
        let each = |count: Option<u64>| Value::from(count.map(|n| n as f64 / self.records as f64));
        let counted = |of: fn(&DeviceCounters) -> u64| each(self.counters.as_ref().map(of));
        let traced = |of: fn(&Traffic) -> u64| {
            each(self.traffic.as_ref().filter(|_| !self.is_untraced).map(of))
        };
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
            Value::Number(self.records as f64),
        ]);
        Row::new(table, &group, values)
    }
}
