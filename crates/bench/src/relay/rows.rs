//! Samples, added up into rows and ratios. Pure.

use std::collections::BTreeMap;

use super::contender::{AUTO, COPY, Family, SPLICE, Way};
use super::pipes::Costs;
use super::traffic::Traffic;
use crate::net::sample::{Figure, Sample, Samples};
use crate::report::{Column, Row, Value};
use crate::stats::Spread;

pub(super) const BAR: &str = "core_us";

/// Medians of the rounds; smallest and largest of what a table is about.
pub(super) const COLUMNS: &[Column] = &[
    Column::text("traffic", "traffic"),
    Column::text("relay", "relay"),
    Column::text("setting", "setting"),
    Column::number("cpu_s_per_gb", "CPU s/GB", 3),
    Column::number("core_s_per_gb", "core s/GB", 3).ranked(2),
    Column::number("cpu_us", "CPU µs", 2),
    Column::number("core_us", "core µs", 2).ranked(1),
    Column::number("min", "min", 3).ranked(5),
    Column::number("max", "max", 3).ranked(5),
    Column::number("per_s", "a second", 0).ranked(1),
    Column::number("mib_per_s", "MiB/s", 0).ranked(2),
    Column::number("p50_us", "p50 µs", 1).ranked(3),
    Column::number("p99_us", "p99 µs", 1).ranked(3),
    Column::number("relay_busy_percent", "relay %", 0).ranked(6),
    Column::number("load_busy_percent", "load %", 0).ranked(6),
    Column::number("pipes_per_connection", "pipes", 2),
    Column::number("descriptors_per_connection", "descriptors", 2),
];

/// What one relay did with one kind of traffic.
#[derive(Debug, Clone)]
pub(super) struct Line {
    traffic: Traffic,
    way: Way,
    /// Whether it is the first relay once more.
    again: bool,
    pub(super) samples: Samples,
    /// Why there are none.
    pub(super) not: Option<String>,
}

/// What a row is judged by. A relay that has a process for each connection takes its time with it,
/// so short connections are judged by the core.
fn figure(traffic: Traffic) -> Figure {
    match traffic {
        Traffic::Bulk { .. } => Sample::process_s_per_gb,
        Traffic::Messages { .. } | Traffic::Chat => Sample::process_us,
        Traffic::Files => Sample::core_s_per_gb,
        Traffic::Connections { .. } => Sample::core_us,
    }
}

/// The name of that figure in ratios.
fn figure_name(traffic: Traffic) -> &'static str {
    match traffic {
        Traffic::Bulk { .. } => "cpu_per_gb",
        Traffic::Files => "core_per_gb",
        Traffic::Messages { .. } | Traffic::Chat => "cpu",
        Traffic::Connections { .. } => "core",
    }
}

fn p50_us(sample: &Sample) -> Option<f64> {
    sample.latencies.percentile_us(50.0)
}

impl Line {
    pub(super) fn new(traffic: Traffic, way: Way, again: bool) -> Self {
        Self { traffic, way, again, samples: Samples::default(), not: None }
    }

    fn median(&self) -> Option<f64> {
        self.samples.median(figure(self.traffic))
    }

    pub(super) fn row(&self) -> Row {
        let (traffic, table) = (self.traffic.name(), self.traffic.table());
        let setting = self.way.setting.to_owned() + if self.again { ", again" } else { "" };
        let relay = self.way.family.program();
        let mut values: Vec<Value> = vec![traffic.clone().into(), relay.into(), setting.into()];
        if let Some(why) = &self.not {
            return Row::new(table, &traffic, values).without_numbers(why.clone());
        }
        let spread = self.samples.spread(figure(self.traffic));
        let of = |part: fn(Spread) -> f64| Value::from(spread.map(part));
        let is_bulk = matches!(self.traffic, Traffic::Bulk { .. });
        let has_bytes = self.traffic != Traffic::Connections { bytes: 0 };
        let told = |wanted: bool, figure: Figure| {
            Value::from(self.samples.median(figure).filter(|_| wanted))
        };
        values.extend([
            told(has_bytes, Sample::process_s_per_gb),
            told(has_bytes, Sample::core_s_per_gb),
            told(!is_bulk, Sample::process_us),
            told(!is_bulk, Sample::core_us),
            of(|spread| spread.min),
            of(|spread| spread.max),
            told(!is_bulk, Sample::per_second),
            told(has_bytes, Sample::mib_per_second),
            self.samples.percentile_us(50.0).into(),
            self.samples.percentile_us(99.0).into(),
            self.samples.median(|sample| sample.busy_percent(sample.used.core)).into(),
            self.samples.median(|sample| sample.busy_percent(sample.used.load_core)).into(),
        ]);
        Row::new(table, &traffic, values)
    }
}

/// Ours by the best setting of each rival, for each traffic: `bulk_1_cpu_per_gb_vs_haproxy_splice`,
/// `message_4k_cpu_vs_go`, `connection_0_core_vs_socat`. What we choose by the better of our own
/// two ways: `adaptive_message_64_cpu_vs_best_own`, and `…_p50_…`. How far two measurements of one
/// relay lie apart: `…_noise`.
pub(super) fn ratios(lines: &[Line]) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    let mut keep = |key: String, ratio: Option<f64>| {
        ratios.extend(ratio.filter(|ratio| ratio.is_finite()).map(|ratio| (key, ratio)));
    };
    let measured = || lines.iter().filter(|line| line.not.is_none());
    for again in measured().filter(|line| line.again) {
        let traffic = again.traffic;
        let first =
            measured().find(|line| !line.again && (line.traffic, line.way) == (traffic, again.way));
        let noise = first.and_then(|first| again.samples.ratio(&first.samples, figure(traffic)));
        keep(format!("{}_noise", traffic.key()), noise);
    }
    let firsts = || measured().filter(|line| !line.again);
    for ours in firsts().filter(|line| line.way == AUTO) {
        let traffic = ours.traffic;
        let (key, name) = (traffic.key(), figure_name(traffic));
        let of_traffic = || firsts().filter(move |line| line.traffic == traffic);
        for family in FAMILIES {
            let best = best(of_traffic().filter(|line| line.way.family == family));
            let ratio = best.and_then(|best| ours.samples.ratio(&best.samples, figure(traffic)));
            keep(format!("{key}_{name}_vs_{}", family.key()), ratio);
        }
        let own = || of_traffic().filter(|line| [COPY, SPLICE].contains(&line.way));
        let ratio = best(own()).and_then(|best| ours.samples.ratio(&best.samples, figure(traffic)));
        keep(format!("adaptive_{key}_{name}_vs_best_own"), ratio);
        let quick = own()
            .filter_map(|line| Some((line.samples.median(p50_us)?, line)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let ratio = quick.and_then(|(_, line)| ours.samples.ratio(&line.samples, p50_us));
        keep(format!("adaptive_{key}_p50_vs_best_own"), ratio);
    }
    ratios
}

const FAMILIES: [Family; 6] = [
    Family::HaproxySplice,
    Family::HaproxyCopy,
    Family::Nginx,
    Family::Go,
    Family::Socat,
    Family::Tokio,
];

/// The one that costs least.
fn best<'a>(lines: impl Iterator<Item = &'a Line>) -> Option<&'a Line> {
    let costs = lines.filter_map(|line| Some((line.median()?, line)));
    costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, line)| line)
}

pub(super) fn costs_row(way: Way, costs: &Result<Costs, String>) -> Row {
    let table = "pipes and descriptors for a connection";
    let mut values: Vec<Value> =
        vec!["1 MiB each".into(), way.family.program().into(), way.setting.into()];
    match costs {
        Err(why) => Row::new(table, "", values).without_numbers(why.clone()),
        Ok(costs) => {
            values.resize(COLUMNS.len() - 2, Value::NotMeasured);
            values.extend([costs.pipes.into(), costs.descriptors.into()]);
            Row::new(table, "", values)
        }
    }
}

/// `pipes_per_connection_haul_auto`, `descriptors_per_idle_connection_haul_auto` and their like,
/// by the program and its setting.
pub(super) fn costs_ratios(way: Way, costs: Costs) -> Vec<(String, f64)> {
    let words = way.setting.split(|c: char| !c.is_ascii_alphanumeric());
    let words = [way.family.program()].into_iter().chain(words.filter(|word| !word.is_empty()));
    let name = words.collect::<Vec<_>>().join("_");
    let pipes = costs.pipes.map(|pipes| (format!("pipes_per_connection_{name}"), pipes));
    let descriptors = (format!("descriptors_per_idle_connection_{name}"), costs.descriptors);
    pipes.into_iter().chain([descriptors]).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::net::contest::tests::check_documented;
    use crate::net::usage::Used;

    fn line(traffic: Traffic, way: Way, again: bool, ms: u64) -> Line {
        let time = Duration::from_millis(ms);
        let used = Used { process: Some(time), core: Some(2 * time), load_core: None };
        let (wall, done, bytes) = (Duration::from_secs(1), 1000, 1_000_000_000);
        let mut sample = Sample { wall, done, bytes, used, ..Sample::default() };
        sample.latencies.record(time);
        let samples = Samples(vec![sample.clone(), sample]);
        Line { samples, ..Line::new(traffic, way, again) }
    }

    fn rival(family: Family, setting: &'static str) -> Way {
        let mut way = AUTO;
        (way.family, way.setting) = (family, setting);
        way
    }

    #[test]
    fn each_rival_counts_in_the_best_of_its_settings() {
        let bulk = Traffic::Bulk { flows: 1 };
        let mut lines = vec![
            line(bulk, AUTO, false, 100),
            line(bulk, AUTO, true, 110),
            line(bulk, rival(Family::Nginx, "16k"), false, 400),
            line(bulk, rival(Family::Nginx, "64k"), false, 200),
            line(bulk, rival(Family::Go, "io.Copy"), false, 125),
        ];
        lines.push(Line { not: Some("no".into()), ..lines[4].clone() });
        lines[5].way = rival(Family::Socat, "");
        let found = ratios(&lines);
        for (key, expected) in [
            ("bulk_1_cpu_per_gb_vs_nginx_stream", 0.5),
            ("bulk_1_cpu_per_gb_vs_go", 0.8),
            ("bulk_1_noise", 1.1),
        ] {
            assert!((found[key] - expected).abs() < 1e-9, "{key}: {}", found[key]);
        }
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn what_is_chosen_is_compared_with_the_better_of_our_own_ways_at_every_length() {
        let mut lines = Vec::new();
        for (bytes, copy, splice) in [(64, 100, 200), (1 << 20, 400, 200)] {
            let traffic = Traffic::Messages { bytes };
            lines.push(line(traffic, AUTO, false, 150));
            lines.push(line(traffic, COPY, false, copy));
            lines.push(line(traffic, SPLICE, false, splice));
        }
        let found = ratios(&lines);
        for (key, expected) in [
            ("adaptive_message_64_cpu_vs_best_own", 1.5),
            ("adaptive_message_1m_cpu_vs_best_own", 0.75),
        ] {
            assert!((found[key] - expected).abs() < 1e-9, "{key}: {}", found[key]);
        }
        assert!((found["adaptive_message_64_p50_vs_best_own"] - 1.5).abs() < 0.01);
        assert_eq!(found.len(), 4, "{found:?}");
    }

    #[test]
    fn the_page_names_ratios_that_are_there() {
        let options = super::super::Options::new("d");
        let rivals = FAMILIES.map(|family| rival(family, ""));
        let mut lines = Vec::new();
        for traffic in options.traffic() {
            let ways = [AUTO, COPY, SPLICE].into_iter().chain(rivals);
            lines.extend(ways.map(|way| line(traffic, way, false, 100)));
        }
        let mut ratios = ratios(&lines);
        ratios.extend(costs_ratios(AUTO, Costs { pipes: Some(0.0), descriptors: 2.0 }));
        check_documented("Relays", &ratios);
    }

    #[test]
    fn a_row_has_a_value_for_each_column_or_says_why_not() {
        let all = [Traffic::Bulk { flows: 2 }, Traffic::Files, Traffic::Connections { bytes: 0 }];
        for traffic in all {
            let mut line = line(traffic, COPY, true, 100);
            let row = line.row();
            assert!(row.values.len() <= COLUMNS.len() && row.state.is_none());
            line.not = Some("it failed".to_owned());
            assert_eq!(line.row().state.as_deref(), Some("it failed"));
        }
        let costs = Costs { pipes: Some(0.0), descriptors: 2.0 };
        assert_eq!(costs_row(AUTO, &Ok(costs)).values.len(), COLUMNS.len());
        assert_eq!(costs_row(AUTO, &Err("no".into())).state.as_deref(), Some("no"));
        let ratios = costs_ratios(rival(Family::Socat, "-b 65536"), costs);
        assert_eq!(ratios[0], ("pipes_per_connection_socat_b_65536".to_owned(), 0.0));
        assert_eq!(ratios[1].0, "descriptors_per_idle_connection_socat_b_65536");
    }
}
