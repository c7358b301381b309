//! Samples, added up into rows and ratios. Pure.

use std::collections::BTreeMap;

use super::Claim;
use super::contender::Way;
use crate::net::contest::short;
use crate::net::sample::{Figure, Sample, Samples};
use crate::report::{Column, Row, Value};
use crate::stats::Spread;

pub(super) const BAR: &str = "requests_per_core_s";

/// Medians of the rounds; smallest and largest of what a table is about.
pub(super) const COLUMNS: &[Column] = &[
    Column::text("load", "load"),
    Column::text("server", "server"),
    Column::text("setting", "setting"),
    Column::number("requests_per_core_s", "requests/core s", 0),
    Column::number("cpu_s_per_gb", "CPU s/GB", 3),
    Column::number("p99_us", "p99 µs", 0),
    Column::number("min", "min", 3).ranked(4),
    Column::number("max", "max", 3).ranked(4),
    Column::number("requests_per_s", "requests/s", 0).ranked(3),
    Column::number("process_us", "CPU µs", 2).ranked(5),
    Column::number("core_s_per_gb", "core s/GB", 3).ranked(1),
    Column::number("cached_percent", "cached %", 2).ranked(1),
    Column::number("mib_per_s", "MiB/s", 0).ranked(2),
    Column::number("p50_us", "p50 µs", 0).ranked(3),
    Column::number("p999_us", "p99.9 µs", 0).ranked(3),
    Column::number("server_busy_percent", "server %", 0).ranked(6),
    Column::number("load_busy_percent", "load %", 0).ranked(6),
];

/// What one server did for one claim.
#[derive(Debug, Clone)]
pub(super) struct Line {
    claim: Claim,
    way: Way,
    /// Whether it is the first server once more.
    again: bool,
    pub(super) samples: Samples,
    /// Why there are none.
    pub(super) not: Option<String>,
}

impl Claim {
    pub(super) fn name(self) -> String {
        match self {
            Self::Hot(bytes) => format!("hot, {bytes} B"),
            Self::Warm => "warm".to_owned(),
            Self::Cold => "cold".to_owned(),
            Self::Rest => "at rest".to_owned(),
            Self::Beside => "beside downloads".to_owned(),
        }
    }

    fn table(self) -> &'static str {
        match self {
            Self::Hot(_) => "hot files",
            Self::Warm | Self::Cold => "big files",
            Self::Rest | Self::Beside => "hot files at a fixed rate, with little memory",
        }
    }

    /// What the claim is about.
    fn figure(self) -> Figure {
        match self {
            Self::Hot(_) => Sample::per_core_second,
            Self::Warm | Self::Cold => Sample::process_s_per_gb,
            Self::Rest | Self::Beside => p99_us,
        }
    }
}

fn p99_us(sample: &Sample) -> Option<f64> {
    sample.latencies.percentile_us(99.0)
}

impl Line {
    pub(super) fn new(claim: Claim, way: Way, again: bool) -> Self {
        Self { claim, way, again, samples: Samples::default(), not: None }
    }

    fn median(&self) -> Option<f64> {
        self.samples.median(self.claim.figure())
    }

    pub(super) fn row(&self) -> Row {
        let load = self.claim.name();
        let setting = self.way.setting().to_owned() + if self.again { ", again" } else { "" };
        let mut values: Vec<Value> =
            vec![load.clone().into(), self.way.server().into(), setting.into()];
        let table = self.claim.table();
        if let Some(why) = &self.not {
            return Row::new(table, &load, values).without_numbers(why.clone());
        }
        let figure = self.samples.spread(self.claim.figure());
        let of = |part: fn(Spread) -> f64| Value::from(figure.map(part));
        let big = matches!(self.claim, Claim::Warm | Claim::Cold);
        let hot = matches!(self.claim, Claim::Hot(_));
        let told =
            |wanted: bool, figure: Figure| self.samples.median(figure).filter(|_| wanted).into();
        values.extend([
            told(hot, Sample::per_core_second),
            told(big, Sample::process_s_per_gb),
            self.samples.percentile_us(99.0).into(),
            of(|spread| spread.min),
            of(|spread| spread.max),
            told(!big, Sample::per_second),
            told(hot, Sample::process_us),
            told(big, Sample::core_s_per_gb),
            told(big, Sample::cached_percent),
            told(!hot, Sample::mib_per_second),
            self.samples.percentile_us(50.0).into(),
            self.samples.percentile_us(99.9).into(),
            self.samples.median(|sample| sample.busy_percent(sample.used.core)).into(),
            self.samples.median(|sample| sample.busy_percent(sample.used.load_core)).into(),
        ]);
        Row::new(table, &load, values)
    }
}

/// Ours by the rival's, for each claim and rival: `hot_4k_requests_vs_nginx` by the best of nginx's
/// settings, `cold_cpu_per_gb_vs_nginx_directio`, `hot_p99_during_cold_vs_nginx_sendfile` and their
/// like; and how far two measurements of one server lie apart, `…_noise`. What came by pipes by what was copied, both ours: `cold_cpu_per_gb_splice_vs_copy`.
pub(super) fn ratios(lines: &[Line]) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    let mut keep = |key: String, ratio: Option<f64>| {
        ratios.extend(ratio.filter(|ratio| ratio.is_finite()).map(|ratio| (key, ratio)));
    };
    for first in lines.iter().filter(|line| !line.again && line.not.is_none()) {
        let of_claim = || lines.iter().filter(|line| line.claim == first.claim);
        for again in of_claim().filter(|line| line.again && line.way == first.way) {
            let noise = again.samples.ratio(&first.samples, first.claim.figure());
            keep(format!("{}_noise", name_of(first.claim)), noise);
        }
        if first.way != Way::Haul {
            continue;
        }
        let rivals: Vec<_> =
            of_claim().filter(|line| !line.way.is_ours() && line.not.is_none()).collect();
        if let Claim::Hot(_) = first.claim {
            let best = rivals.iter().filter(|line| !line.again);
            let best = best.max_by(|a, b| {
                a.median().unwrap_or_default().total_cmp(&b.median().unwrap_or_default())
            });
            let ratio =
                best.and_then(|best| first.samples.ratio(&best.samples, first.claim.figure()));
            keep(format!("{}_vs_nginx", name_of(first.claim)), ratio);
            continue;
        }
        for rival in rivals.iter().filter(|line| !line.again) {
            for (name, figure) in figures(first.claim) {
                let ratio = first.samples.ratio(&rival.samples, figure);
                keep(format!("{name}_vs_{}", rival.way.key()), ratio);
            }
        }
        for spliced in of_claim().filter(|line| line.way == Way::HaulSplice) {
            for (name, figure) in figures(first.claim) {
                keep(
                    format!("{name}_splice_vs_copy"),
                    spliced.samples.ratio(&first.samples, figure),
                );
            }
        }
    }
    let ours = |claim| lines.iter().find(|line| line.way == Way::Haul && line.claim == claim);
    if let (Some(rest), Some(beside)) = (ours(Claim::Rest), ours(Claim::Beside)) {
        keep("hot_p99_during_cold_vs_rest".to_owned(), beside.samples.ratio(&rest.samples, p99_us));
    }
    ratios
}

fn name_of(claim: Claim) -> String {
    match claim {
        Claim::Hot(bytes) => format!("hot_{}_requests", short(bytes)),
        claim => figures(claim).first().map_or_else(String::new, |(name, _)| (*name).to_owned()),
    }
}

/// What is compared with each rival.
fn figures(claim: Claim) -> Vec<(&'static str, Figure)> {
    match claim {
        Claim::Hot(_) => Vec::new(),
        Claim::Warm => vec![
            ("warm_cpu_per_gb", Sample::process_s_per_gb),
            ("warm_core_per_gb", Sample::core_s_per_gb),
            ("warm_rate", Sample::mib_per_second),
        ],
        Claim::Cold => vec![
            ("cold_cpu_per_gb", Sample::process_s_per_gb),
            ("cold_core_per_gb", Sample::core_s_per_gb),
            ("cold_rate", Sample::mib_per_second),
            ("cold_cache", Sample::cached_percent),
        ],
        Claim::Rest => vec![("hot_p99_at_rest", p99_us)],
        Claim::Beside => {
            vec![("hot_p99_during_cold", p99_us), ("downloads_during_hot", Sample::mib_per_second)]
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::net::contest::tests::check_documented;
    use crate::net::usage::Used;

    /// A line of two rounds: so much done, in so many milliseconds of CPU.
    fn line(claim: Claim, way: Way, again: bool, done: u64, ms: u64) -> Line {
        let time = Duration::from_millis(ms);
        let used = Used { process: Some(time), core: Some(2 * time), load_core: None };
        let mut sample = Sample {
            wall: Duration::from_secs(1),
            done,
            bytes: done * 1_000_000,
            used,
            cached_bytes: Some(done * 10_000),
            ..Sample::default()
        };
        sample.latencies.record(time);
        let samples = Samples(vec![sample.clone(), sample]);
        Line { samples, ..Line::new(claim, way, again) }
    }

    #[test]
    fn hot_files_are_compared_with_the_best_of_the_rivals_settings() {
        let claim = Claim::Hot(4096);
        let lines = [
            line(claim, Way::Haul, false, 600, 100),
            line(claim, Way::Haul, true, 660, 100),
            line(claim, Way::Sendfile, false, 200, 100),
            line(claim, Way::Copy, false, 300, 100),
        ];
        let ratios = ratios(&lines);
        let expected = [("hot_4k_requests_noise", 1.1), ("hot_4k_requests_vs_nginx", 2.0)];
        assert_eq!(ratios.keys().map(String::as_str).collect::<Vec<_>>(), expected.map(|e| e.0));
        for (key, ratio) in expected {
            assert!((ratios[key] - ratio).abs() < 1e-9, "{key}: {}", ratios[key]);
        }
    }

    #[test]
    fn each_goal_has_its_ratio() {
        let mut lines = Vec::new();
        for claim in [Claim::Cold, Claim::Warm, Claim::Rest, Claim::Beside] {
            for (way, ms) in
                [(Way::Haul, 100), (Way::HaulSplice, 150), (Way::Sendfile, 200), (Way::Direct, 500)]
            {
                if way.takes_part(claim) {
                    lines.push(line(claim, way, false, 1000, ms));
                }
            }
        }
        let ratios = ratios(&lines);
        for (key, expected) in [
            ("cold_cpu_per_gb_vs_nginx_directio", 0.2),
            ("cold_core_per_gb_vs_nginx_directio", 0.2),
            ("cold_cache_vs_nginx_sendfile", 1.0),
            ("warm_cpu_per_gb_vs_nginx_sendfile", 0.5),
            ("hot_p99_during_cold_vs_nginx_sendfile", 0.5),
            ("hot_p99_during_cold_vs_rest", 1.0),
            ("cold_cpu_per_gb_splice_vs_copy", 1.5),
            ("hot_p99_during_cold_splice_vs_copy", 1.5),
        ] {
            assert!((ratios[key] - expected).abs() < 0.002, "{key}: {}", ratios[key]);
        }
        let mut failed = lines.clone();
        failed.iter_mut().filter(|l| l.way == Way::Direct).for_each(|l| l.not = Some("no".into()));
        assert!(!super::ratios(&failed).contains_key("cold_cpu_per_gb_vs_nginx_directio"));
    }

    #[test]
    fn the_page_names_ratios_that_are_there() {
        let hot = [1 << 10, 4 << 10, 16 << 10].map(Claim::Hot);
        let others = [Claim::Warm, Claim::Cold, Claim::Rest, Claim::Beside];
        let mut lines = Vec::new();
        for claim in hot.into_iter().chain(others) {
            let all = [Way::Haul, Way::HaulSplice].into_iter().chain(Way::RIVALS);
            let ways = all.filter(|way| way.takes_part(claim));
            lines.extend(ways.map(|way| line(claim, way, false, 1000, 100)));
        }
        check_documented("Files", &ratios(&lines));
    }

    #[test]
    fn a_row_has_a_value_for_each_column_or_says_why_not() {
        for claim in [Claim::Hot(1024), Claim::Cold, Claim::Beside] {
            let mut line = line(claim, Way::Sendfile, true, 1000, 100);
            let row = line.row();
            assert_eq!(row.values.len(), COLUMNS.len());
            assert!(row.values[3..6].iter().any(|value| value.number().is_some()), "{row:?}");
            line.not = Some("it failed".to_owned());
            assert_eq!(line.row().state.as_deref(), Some("it failed"));
        }
    }
}
