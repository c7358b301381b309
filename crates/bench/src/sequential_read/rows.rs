//! Readings, added up into rows and ratios. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::plan::{Cell, Way};
use crate::report::{Column, Row, Value};
use crate::stats::Spread;

pub(super) const BAR: &str = "mb_per_s";

pub(super) const COLUMNS: &[Column] = &[
    Column::text("readahead", "readahead"),
    Column::number("request_kib", "KiB", 0),
    Column::text("way", "way"),
    Column::number("window_kib", "window KiB", 0),
    Column::number("mb_per_s", "MB/s", 0),
    Column::number("mb_per_s_min", "min", 0).ranked(4),
    Column::number("mb_per_s_max", "max", 0).ranked(4),
    Column::number("cpu_ms_per_gib", "CPU ms/GiB", 0).ranked(2),
    Column::number("device_reads_per_mib", "device reads/MiB", 2).ranked(3),
    Column::number("cached_percent", "% cached", 0).ranked(1),
];

/// One time the file was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) bytes: u64,
    pub(super) time: Duration,
    /// Time of the processors that this process took, the kernel on its behalf included.
    pub(super) cpu: Duration,
    /// Requests of the device, whoever made them.
    pub(super) device_reads: Option<u64>,
    /// Which part of the file is in memory afterwards.
    pub(super) cached: f64,
}

/// All rounds of a row.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    readings: Vec<Reading>,
    not: Option<&'static str>,
}

impl Sum {
    pub(super) fn add(&mut self, reading: Reading) {
        self.readings.push(reading);
    }

    pub(super) fn cannot(&mut self, why: &'static str) {
        self.not = Some(why);
    }

    fn spread(&self, of: impl Fn(&Reading) -> Option<f64>) -> Option<Spread> {
        let numbers: Option<Vec<_>> = self.readings.iter().map(of).collect();
        Spread::of(&numbers?)
    }

    fn rate(&self) -> Option<Spread> {
        self.spread(|reading| Some(reading.bytes as f64 / 1e6 / reading.time.as_secs_f64()))
    }

    pub(super) fn row(&self, cell: &Cell) -> Row {
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        let group = format!("{} {}", cell.setting, cell.request_bytes);
        let mut values = vec![
            Value::Text(cell.setting.to_string()),
            kib(cell.request_bytes).into(),
            cell.way.name().into(),
            cell.window_bytes.map(kib).into(),
        ];
        if let Some(why) = self.not {
            return Row::new("", &group, values).without_numbers(why);
        }
        let median = |of: fn(&Reading) -> Option<f64>| self.spread(of).map(|s| s.median);
        let rate = self.rate();
        values.extend([
            Value::from(rate.map(|rate| rate.median)),
            rate.map(|rate| rate.min).into(),
            rate.map(|rate| rate.max).into(),
            median(|r| Some(r.cpu.as_secs_f64() * 1000.0 * f64::from(1 << 30) / r.bytes as f64))
                .into(),
            median(|r| Some(r.device_reads? as f64 * f64::from(1 << 20) / r.bytes as f64)).into(),
            median(|r| Some(r.cached * 100.0)).into(),
        ]);
        Row::new("", &group, values)
    }
}

/// What the ways come to, with the first setting, the longest requests and the longest window.
pub(super) fn ratios(cells: &[Cell], sums: &[Sum]) -> BTreeMap<String, f64> {
    let Some(first) = cells.first() else { return BTreeMap::new() };
    let longest = cells.iter().map(|cell| cell.request_bytes).max();
    let window = cells.iter().filter_map(|cell| cell.window_bytes).max();
    let rate = |way: Way| {
        let at = cells.iter().position(|cell| {
            (cell.setting, cell.way, Some(cell.request_bytes)) == (first.setting, way, longest)
                && (cell.window_bytes.is_none() || cell.window_bytes == window)
        })?;
        sums.get(at)?.rate().map(|rate| rate.median)
    };
    let pairs = [
        ("mmap_vs_read", Way::Mmap, Way::Read),
        ("mmap_advised_vs_mmap", Way::MmapAdvised, Way::Mmap),
        ("read_ahead_vs_read", Way::ReadAhead, Way::Read),
        ("direct_vs_read", Way::Direct, Way::Read),
        ("uncached_vs_read", Way::Uncached, Way::Read),
    ];
    let ratio =
        |(name, a, b): (&str, _, _)| rate(a).zip(rate(b)).map(|(a, b)| (name.to_owned(), a / b));
    pairs.into_iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Advice, Setting, cells};
    use super::*;
    use crate::host::Host;
    use crate::report::Report;

    fn sum(seconds: u64) -> Sum {
        let mut sum = Sum::default();
        sum.add(Reading {
            bytes: 1 << 30,
            time: Duration::from_secs(seconds),
            cpu: Duration::from_millis(200),
            device_reads: Some(4096),
            cached: 0.25,
        });
        sum
    }

    #[test]
    fn a_row_tells_rate_work_and_what_stayed_in_memory() {
        let cells = cells(&[Setting::Advice(Advice::Normal)], &[1 << 20], &[4 << 20]);
        let row = sum(2).row(&cells[0]);
        let report = Report::new("sequential-read", Host::default(), COLUMNS, BAR);
        assert_eq!(row.values.len(), COLUMNS.len());
        for (key, expected) in [
            ("mb_per_s", 536.870_912),
            ("cpu_ms_per_gib", 200.0),
            ("device_reads_per_mib", 4.0),
            ("cached_percent", 25.0),
            ("request_kib", 1024.0),
        ] {
            let number = report.value(&row, key).and_then(Value::number).unwrap();
            assert!((number - expected).abs() < 1e-6, "{key}: {number}");
        }
    }

    #[test]
    fn ratios_are_those_of_the_first_setting_and_the_longest_requests() {
        let settings = [Setting::Advice(Advice::Normal), Setting::Advice(Advice::Random)];
        let cells = cells(&settings, &[1 << 16, 1 << 20], &[1 << 20, 8 << 20]);
        let seconds = |cell: &Cell| match cell.way {
            _ if cell.setting != settings[0] || cell.request_bytes < 1 << 20 => 100,
            Way::Read => 8,
            Way::Mmap => 16,
            Way::MmapAdvised | Way::ReadAhead if cell.window_bytes == Some(1 << 20) => 100,
            Way::MmapAdvised | Way::ReadAhead => 4,
            Way::Direct | Way::Uncached => 2,
        };
        let sums: Vec<_> = cells.iter().map(|cell| sum(seconds(cell))).collect();
        let expected = [
            ("direct_vs_read", 4.0),
            ("mmap_advised_vs_mmap", 4.0),
            ("mmap_vs_read", 0.5),
            ("read_ahead_vs_read", 2.0),
            ("uncached_vs_read", 4.0),
        ];
        assert_eq!(ratios(&cells, &sums), expected.map(|(n, r)| (n.to_owned(), r)).into());
    }
}
