//! Rounds, added up into rows and ratios. Pure.

use std::time::Duration;

use super::bulk::Bulk;
use super::foreground::Written;
use super::plan::{Foreground, Way};
use crate::report::{Column, Row, Value};
use crate::stats::Spread;

pub(super) const BAR: &str = "p999_us";

/// Times are of the foreground writer, and medians of the rounds.
pub(super) const COLUMNS: &[Column] = &[
    Column::text("foreground", "foreground"),
    Column::text("bulk", "bulk"),
    Column::number("window_mib", "window MiB", 2).ranked(4),
    Column::number("p50_us", "µs", 0),
    Column::number("p99_us", "p99 µs", 0).ranked(2),
    Column::number("p999_us", "p99.9 µs", 0),
    Column::number("p999_us_min", "min", 0).ranked(8),
    Column::number("p999_us_max", "max", 0).ranked(8),
    Column::number("longest_us", "longest µs", 0).ranked(5),
    Column::number("writes", "writes", 0).ranked(9),
    Column::number("bulk_mib_per_s", "bulk MiB/s", 0),
    Column::number("bulk_mib_per_s_min", "min", 0).ranked(7),
    Column::number("bulk_mib_per_s_max", "max", 0).ranked(7),
    Column::number("waiting_mib", "dirty MiB", 0).ranked(3),
    Column::number("cached_percent", "% cached", 1).ranked(6),
];

/// One way in one round.
#[derive(Debug, Clone)]
pub(super) struct Round {
    /// As [`Foreground::ALL`].
    pub(super) written: [Written; 2],
    pub(super) bulk: Option<Bulk>,
    pub(super) waiting_bytes: Option<u64>,
}

/// One way, over all rounds.
#[derive(Debug, Default)]
pub(super) struct Sum {
    rounds: Vec<Round>,
    not: Option<&'static str>,
}

impl Sum {
    pub(super) fn add(&mut self, round: Round) {
        self.rounds.push(round);
    }

    pub(super) fn cannot(&mut self, why: &'static str) {
        self.not = Some(why);
    }

    fn spread(&self, of: impl Fn(&Round) -> Option<f64>) -> Option<Spread> {
        Spread::of(&self.rounds.iter().filter_map(of).collect::<Vec<_>>())
    }

    fn percentile(&self, which: usize, percent: f64) -> Option<Spread> {
        self.spread(|round| round.written[which].latencies.percentile_us(percent))
    }

    fn rate(&self, bytes: u64) -> Option<Spread> {
        let mib = bytes as f64 / f64::from(1 << 20);
        self.spread(|round| Some(mib / round.bulk?.time.max(Duration::from_nanos(1)).as_secs_f64()))
    }

    /// The row of a writer, by its number in [`Foreground::ALL`].
    pub(super) fn row(&self, table: &str, way: Way, which: usize, bytes: u64) -> Row {
        let (name, mib) = (Foreground::ALL[which].name(), f64::from(1 << 20));
        let window = way.window_bytes().map(|bytes| bytes as f64 / mib);
        let mut values = vec![name.into(), way.name().into(), window.into()];
        if let Some(why) = self.not {
            return Row::new(table, name, values).without_numbers(why);
        }
        let median = |spread: Option<Spread>| Value::from(spread.map(|spread| spread.median));
        let (p999, rate) = (self.percentile(which, 99.9), self.rate(bytes));
        let longest = self.spread(|round| round.written[which].latencies.max_us());
        let writes: u64 = self.rounds.iter().map(|round| round.written[which].writes).sum();
        let bulk = |of: fn(&Bulk) -> Option<f64>| self.spread(|round| of(round.bulk.as_ref()?));
        values.extend([
            median(self.percentile(which, 50.0)),
            median(self.percentile(which, 99.0)),
            median(p999),
            p999.map(|spread| spread.min).into(),
            p999.map(|spread| spread.max).into(),
            longest.map(|spread| spread.max).into(),
            Value::Number(writes as f64),
            median(rate),
            rate.map(|rate| rate.min).into(),
            rate.map(|rate| rate.max).into(),
            median(self.spread(|round| Some(round.waiting_bytes? as f64 / mib))),
            median(bulk(|bulk| Some(bulk.cached? * 100.0))),
        ]);
        Row::new(table, name, values)
    }
}

/// The other ways against the unpaced one: the 99.9th percentiles of the two writers, which shall
/// be lower, and the rate of the bulk data, which shall not. Of several windows the first counts.
pub(super) fn ratios(ways: &[Way], sums: &[Sum], bytes: u64) -> Vec<(String, f64)> {
    let sum = |name: &str| Some(&sums[ways.iter().position(|way| way.name() == name)?]);
    let mut ratios = Vec::new();
    let Some(unpaced) = sum(Way::Unpaced.name()) else { return ratios };
    let ways = [("paced", "paced"), ("dropping", "paced, dropped"), ("direct", "direct")];
    for (key, name) in ways {
        let Some(way) = sum(name) else { continue };
        let against = |of: &dyn Fn(&Sum) -> Option<Spread>| {
            let ratio = of(way)?.median / of(unpaced)?.median;
            ratio.is_finite().then_some(ratio)
        };
        let found = [
            ("p999", against(&|sum| sum.percentile(0, 99.9))),
            ("overwrite_p999", against(&|sum| sum.percentile(1, 99.9))),
            ("bulk_rate", against(&|sum| sum.rate(bytes))),
        ];
        let named =
            |(what, ratio): (&str, Option<f64>)| Some((format!("{key}_{what}_vs_unpaced"), ratio?));
        ratios.extend(found.into_iter().filter_map(named));
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::report::Report;

    const BYTES: u64 = 100 << 20;
    const WINDOW: Way = Way::Paced { window_bytes: 1 << 19 };

    fn round(us: u64, overwrite_us: u64, bulk_ms: u64) -> Round {
        let written = |us| {
            let mut written = Written { writes: 100, ..Written::default() };
            (0..100).for_each(|_| written.latencies.record(Duration::from_micros(us)));
            written
        };
        let bulk = Some(Bulk { time: Duration::from_millis(bulk_ms), cached: Some(0.5) });
        let written = [written(us), written(overwrite_us)];
        Round { written, bulk, waiting_bytes: Some(3 << 20) }
    }

    fn sum(rounds: &[(u64, u64, u64)]) -> Sum {
        let rounds = rounds.iter().map(|(us, other, ms)| round(*us, *other, *ms)).collect();
        Sum { rounds, not: None }
    }

    #[test]
    fn rows_have_medians_of_the_rounds() {
        let sum = sum(&[(100, 1, 1000), (9000, 2, 500), (200, 3, 2000)]);
        let report = Report::new("pacing", Host::default(), COLUMNS, BAR);
        let row = sum.row("ext4", WINDOW, 0, BYTES);
        assert_eq!(row.values.len(), COLUMNS.len());
        for (key, expected) in [
            ("window_mib", 0.5),
            ("p999_us", 200.0),
            ("p999_us_max", 9000.0),
            ("longest_us", 9000.0),
            ("writes", 300.0),
            ("bulk_mib_per_s", 100.0),
            ("bulk_mib_per_s_min", 50.0),
            ("waiting_mib", 3.0),
            ("cached_percent", 50.0),
        ] {
            let got = report.value(&row, key).and_then(Value::number).unwrap();
            assert!((got / expected - 1.0).abs() < 2e-3, "{key}: {got}");
        }
    }

    #[test]
    fn ratios_are_against_the_unpaced_way_with_the_first_window() {
        let second = Way::Paced { window_bytes: 1 << 20 };
        let ways = [Way::Alone, Way::Unpaced, WINDOW, second, Way::Direct];
        let alone = Round { bulk: None, ..round(1, 1, 1) };
        let mut sums = vec![Sum { rounds: vec![alone], not: None }];
        sums.extend([&[(1000, 10, 1000)], &[(100, 5, 1250)], &[(7, 7, 7)]].map(|one| sum(one)));
        sums.push(Sum { rounds: vec![], not: Some("not supported") });
        let near = |got: f64, expected: f64| (got / expected - 1.0).abs() < 3e-3;
        let found = ratios(&ways, &sums, BYTES);
        let expected = [("p999", 0.1), ("overwrite_p999", 0.5), ("bulk_rate", 0.8)];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((name, got), (what, ratio)) in found.iter().zip(expected) {
            assert!(*name == format!("paced_{what}_vs_unpaced") && near(*got, ratio), "{found:?}");
        }
        assert_eq!(sums[4].row("", Way::Direct, 1, BYTES).state.as_deref(), Some("not supported"));
        let report = Report::new("pacing", Host::default(), COLUMNS, BAR);
        let row = sums[0].row("", Way::Alone, 1, BYTES);
        assert_eq!(report.value(&row, "bulk_mib_per_s"), Some(&Value::NotMeasured));
    }
}
