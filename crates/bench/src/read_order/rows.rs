//! Readings, added up into rows and ratios. Pure.

use std::time::Duration;

use super::order::Order;
use super::tree::Reading;
use crate::report::{Column, Row, Value};
use crate::stats::Spread;

pub(super) const BAR: &str = "service_s";

/// Everything of the drive is by its own clock; the columns of requests are those `iostat -x` has.
pub(super) const COLUMNS: &[Column] = &[
    Column::number("threads", "threads", 0),
    Column::text("order", "order"),
    Column::number("service_s", "service s", 2),
    Column::number("service_s_min", "min", 2).ranked(8),
    Column::number("service_s_max", "max", 2).ranked(8),
    Column::number("elapsed_s", "elapsed s", 2).ranked(5),
    Column::number("files_per_s", "files/s", 0).ranked(2),
    Column::number("seeks", "seeks", 0),
    Column::number("travel_cylinders", "cylinders", 0),
    Column::number("travel_gb", "GB passed over", 1).ranked(6),
    Column::number("requests", "requests", 0).ranked(1),
    Column::number("read_bytes", "B read", 0).ranked(3),
    Column::number("reads_per_s", "r/s", 0).ranked(4),
    Column::number("read_kb_per_s", "rkB/s", 0).ranked(4),
    Column::number("request_kb", "rareq-sz kB", 1).ranked(5),
    Column::number("request_ms", "ms each", 2).ranked(5),
    Column::number("busy_percent", "%util", 0).ranked(7),
];

/// All readings in one order by so many threads.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    readings: Vec<Reading>,
    elapsed_s: Vec<f64>,
}

impl Sum {
    pub(super) fn add(&mut self, reading: &Reading, elapsed: Option<Duration>) {
        self.readings.push(*reading);
        self.elapsed_s.extend(elapsed.map(|elapsed| elapsed.as_secs_f64()));
    }

    fn spread(&self, of: impl Fn(&Reading) -> f64) -> Option<Spread> {
        Spread::of(&self.readings.iter().map(of).collect::<Vec<_>>())
    }

    fn service_s(&self) -> Option<Spread> {
        self.spread(|reading| reading.asked.service_ns() as f64 / 1e9)
    }

    pub(super) fn row(&self, table: &str, order: Order, threads: usize) -> Row {
        let median = |of: fn(&Reading) -> f64| self.spread(of).map(|spread| spread.median);
        let service = self.service_s();
        let service_s = service.map(|spread| spread.median);
        let elapsed_s = Spread::of(&self.elapsed_s).map(|spread| spread.median);
        let each_s = |count: Option<f64>| Some(count? / service_s?);
        let requests = median(|reading| reading.asked.reads as f64);
        let bytes = median(|reading| reading.asked.bytes_read as f64);
        let per_request = |whole: Option<f64>| Some(whole? / requests?);
        let values = vec![
            Value::Number(threads as f64),
            order.name().into(),
            service_s.into(),
            service.map(|spread| spread.min).into(),
            service.map(|spread| spread.max).into(),
            elapsed_s.into(),
            each_s(median(|reading| reading.files as f64)).into(),
            median(|reading| reading.asked.seeks as f64).into(),
            median(|reading| reading.asked.seek_cylinders as f64).into(),
            median(|reading| reading.asked.seek_sectors as f64 * 512.0 / 1e9).into(),
            requests.into(),
            bytes.into(),
            each_s(requests).into(),
            each_s(bytes.map(|bytes| bytes / 1000.0)).into(),
            per_request(bytes.map(|bytes| bytes / 1000.0)).into(),
            per_request(service_s.map(|service_s| service_s * 1000.0)).into(),
            service_s.zip(elapsed_s).map(|(service, all)| 100.0 * service / all).into(),
        ];
        Row::new(table, &threads.to_string(), values)
    }
}

/// What the orders come to. The names of the first drive and number of threads are the shortest.
pub(super) fn ratios(
    ways: &[(Order, usize)],
    sums: &[Sum],
    drive: &str,
    is_first: bool,
) -> Vec<(String, f64)> {
    let service = |order, threads| {
        let at = ways.iter().position(|way| *way == (order, threads))?;
        Some(sums.get(at)?.service_s()?.median)
    };
    let mut ratios = Vec::new();
    for (_, threads) in ways.iter().filter(|way| way.0 == Order::Physical) {
        for order in [Order::Unsorted, Order::Inode] {
            let pair = service(order, *threads).zip(service(Order::Physical, *threads));
            let Some((other, physical)) = pair.filter(|pair| pair.1 > 0.0) else { continue };
            let mut name = format!("physical_vs_{}", order.name());
            if ways.first().is_some_and(|first| first.1 != *threads) {
                name += &format!("_{threads}t");
            }
            if !is_first {
                name += &format!("_{drive}");
            }
            ratios.push((name, other / physical));
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use haul_disk_sim::{Counters, Parts};

    use super::*;
    use crate::host::Host;
    use crate::report::Report;

    fn sum(services_s: &[u64]) -> Sum {
        let mut sum = Sum::default();
        for service_s in services_s {
            let service = Parts { seek_ns: service_s * 1_000_000_000, ..Parts::default() };
            let asked = Counters {
                reads: 50,
                bytes_read: 1_000_000,
                seeks: 40,
                service,
                ..Counters::default()
            };
            let elapsed = Duration::from_secs(*service_s);
            let reading = Reading { files: 100, elapsed, asked };
            sum.add(&reading, Some(elapsed * 2));
        }
        sum
    }

    #[test]
    fn a_row_has_what_iostat_has_by_the_clock_of_the_drive() {
        let row = sum(&[10, 2, 5]).row("t", Order::Inode, 4);
        let report = Report::new("read-order", Host::default(), COLUMNS, BAR);
        let number = |key| report.value(&row, key).and_then(Value::number).unwrap();
        assert_eq!(row.values.len(), COLUMNS.len());
        for (key, expected) in [
            ("service_s", 5.0),
            ("service_s_min", 2.0),
            ("service_s_max", 10.0),
            ("elapsed_s", 10.0),
            ("files_per_s", 20.0),
            ("reads_per_s", 10.0),
            ("read_kb_per_s", 200.0),
            ("request_kb", 20.0),
            ("request_ms", 100.0),
            ("busy_percent", 50.0),
        ] {
            assert!((number(key) - expected).abs() < 1e-9, "{key}: {}", number(key));
        }
    }

    #[test]
    fn ratios_say_how_many_times_less_the_drive_is_busy() {
        let ways: Vec<_> = [1, 4].into_iter().flat_map(|n| Order::ALL.map(|o| (o, n))).collect();
        let sums = [217, 28, 19, 100, 20, 10].map(|service| sum(&[service]));
        let found = ratios(&ways, &sums, "drive", true);
        let expected = [
            ("physical_vs_unsorted", 217.0 / 19.0),
            ("physical_vs_inode", 28.0 / 19.0),
            ("physical_vs_unsorted_4t", 10.0),
            ("physical_vs_inode_4t", 2.0),
        ];
        assert_eq!(found, expected.map(|(name, ratio)| (name.to_owned(), ratio)));
        let other = ratios(&ways, &sums, "drive", false);
        assert!(other.iter().all(|(name, _)| name.ends_with("_drive")));
    }
}
