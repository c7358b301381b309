//! Defines the workloads of the relays, the columns of their rows, and the ratios computed from
//! them. Performs no I/O.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use crate::contest::Field;
use crate::net::comparison::{Comparison, Series, Variant, Workload, short, smallest};
use crate::net::sample::{Figure, Sample, primary_max, primary_min};
use crate::report::{Column, Ratio};

/// One kind of traffic through the relays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// As many bytes as possible in one direction, on `flows` connections.
    Bulk { flows: usize },
    /// Messages of `bytes` bytes, each answered by a message of the same length, on persistent
    /// connections.
    Messages { bytes: u64 },
    /// Short messages and answers on many persistent connections.
    Chat,
    /// A short request and a long answer, such as a file, per connection.
    Files,
    /// A message of `bytes` bytes and its answer per connection, or nothing if `bytes` is 0.
    Connections { bytes: u64 },
}

/// The parameters of a workload of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    /// The number of simultaneous connections.
    pub(super) connections: usize,
    pub(super) request_bytes: u64,
    pub(super) answer_bytes: u64,
    /// `true` if a connection carries many requests.
    pub(super) persistent: bool,
}

/// The length in bytes up to which the backend reads every request. Longer requests that are not
/// compared are discarded in the kernel.
pub(super) const READ_MAX: u64 = 4096;

impl Load {
    /// Returns the name of the workload in ratios.
    fn key(self) -> String {
        match self {
            Self::Bulk { flows } => format!("bulk_{flows}"),
            Self::Messages { bytes } => format!("message_{}", short(bytes)),
            Self::Chat => "chat".to_owned(),
            Self::Files => "files".to_owned(),
            Self::Connections { bytes } => format!("connection_{}", short(bytes)),
        }
    }

    /// Returns the name of the primary figure in ratios.
    fn figure_key(self) -> &'static str {
        match self {
            Self::Bulk { .. } => "cpu_per_gb",
            Self::Files => "core_per_gb",
            Self::Messages { .. } | Self::Chat => "cpu",
            Self::Connections { .. } => "core",
        }
    }

    /// Returns the parameters of the requests and answers; `None` for bulk.
    pub(super) fn exchange(self) -> Option<Exchange> {
        let (connections, request_bytes, answer_bytes, persistent) = match self {
            Self::Bulk { .. } => return None,
            Self::Messages { bytes } => (8, bytes, bytes, true),
            Self::Chat => (64, 16, 16, true),
            Self::Files => (4, 64, 8 << 20, false),
            Self::Connections { bytes } => (8, bytes, bytes, false),
        };
        Some(Exchange { connections, request_bytes, answer_bytes, persistent })
    }
}

impl Display for Load {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bulk { flows: 1 } => f.write_str("1 flow"),
            Self::Bulk { flows } => write!(f, "{flows} flows"),
            Self::Messages { bytes } => write!(f, "{bytes} B there and back"),
            Self::Chat => f.write_str("chat: 16 B, 64 connections"),
            Self::Files => f.write_str("files: 8 MiB, a connection each"),
            Self::Connections { bytes: 0 } => f.write_str("connection only"),
            Self::Connections { bytes } => write!(f, "connection, {bytes} B there and back"),
        }
    }
}

impl Workload for Load {
    fn table(self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bulk",
            Self::Messages { .. } | Self::Chat | Self::Files => "messages",
            Self::Connections { .. } => "connections",
        }
    }

    /// Returns the figure by which relays are compared. If a relay has a process per connection,
    /// the CPU time of each process is lost when the process ends. Workloads of short connections
    /// are therefore compared by the busy time of the core.
    fn figure(self) -> Figure {
        match self {
            Self::Bulk { .. } => Sample::process_s_per_gb,
            Self::Messages { .. } | Self::Chat => Sample::process_us,
            Self::Files => Sample::core_s_per_gb,
            Self::Connections { .. } => Sample::core_us,
        }
    }
}

pub(super) const BAR: &str = "core_us";

/// The columns of the table: medians of the rounds, and the smallest and largest primary figure,
/// which is the figure by which relays are compared.
pub(super) const FIELDS: &[Field<Series<Load>, Sample>] = &[
    Field::label("traffic", "traffic", Series::workload),
    Field::label("relay", "relay", Series::program),
    Field::label("setting", "setting", Series::setting),
    Field::median(Column::number("cpu_s_per_gb", "CPU s/GB", 3), Sample::process_s_per_gb),
    Field::median(Column::number("core_s_per_gb", "core s/GB", 3).ranked(2), Sample::core_s_per_gb),
    Field::median(Column::number("cpu_us", "CPU µs", 2), Sample::process_us),
    Field::median(Column::number(BAR, "core µs", 2).ranked(1), Sample::core_us),
    Field::total(Column::number("min", "min", 3).ranked(5), primary_min),
    Field::total(Column::number("max", "max", 3).ranked(5), primary_max),
    Field::median(Column::number("per_s", "per second", 0).ranked(1), Sample::per_second),
    Field::median(Column::number("mib_per_s", "MiB/s", 0).ranked(2), Sample::mib_per_second),
    Field::median(Column::number("p50_us", "p50 µs", 1).ranked(3), Sample::p50_us),
    Field::median(Column::number("p99_us", "p99 µs", 1).ranked(3), Sample::p99_us),
    Field::median(
        Column::number("relay_busy_percent", "relay %", 0).ranked(6),
        Sample::server_busy_percent,
    ),
    Field::median(
        Column::number("load_busy_percent", "load %", 0).ranked(6),
        Sample::load_busy_percent,
    ),
    Field::median(Column::number("pipes_per_connection", "pipes", 2), |_| None),
    Field::median(Column::number("descriptors_per_connection", "descriptors", 2), |_| None),
];

/// Returns the figures of `haul` divided by those of each rival's best setting, such as
/// `bulk_1_cpu_per_gb_vs_haproxy_splice`. `adaptive_…_vs_best_own` compares `--move auto` with the
/// better of `copy` and `splice`, `…_noise` the two series of the first relay, which is measured
/// twice in each round.
pub(super) fn ratios(results: &Comparison<Load>, loads: &[Load]) -> BTreeMap<String, Ratio> {
    let mut ratios = BTreeMap::new();
    let mut add =
        |key: String, ratio: Option<Ratio>| ratios.extend(ratio.map(|ratio| (key, ratio)));
    for load in loads.iter().copied() {
        let (key, figure_key, figure) = (load.key(), load.figure_key(), load.figure());
        add(format!("{key}_noise"), results.noise(load));
        let is = |variant: &Variant, setting| variant.is_haul() && variant.setting == setting;
        let Some(haul) = results.measured(load).find(|one| is(one.strategy.variant, "auto")) else {
            continue;
        };
        let against_best = |selected: &dyn Fn(&Variant) -> bool, figure| {
            let candidates = results.measured(load).filter(|one| selected(one.strategy.variant));
            haul.ratio(smallest(candidates, figure)?, figure)
        };
        for rival in results.measured(load).map(|one| one.strategy.variant) {
            if !rival.is_haul() {
                let ratio = against_best(&|variant| variant.key == rival.key, figure);
                add(format!("{key}_{figure_key}_vs_{}", rival.key), ratio);
            }
        }
        let own = |variant: &Variant| is(variant, "copy") || is(variant, "splice");
        add(format!("adaptive_{key}_{figure_key}_vs_best_own"), against_best(&own, figure));
        add(format!("adaptive_{key}_p50_vs_best_own"), against_best(&own, Sample::p50_us));
    }
    ratios
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::super::costs::{Costs, costs_ratios};
    use super::super::options::Options;
    use super::super::relays::VARIANTS;
    use super::*;
    use crate::net::comparison::tests::check_documented;
    use crate::net::usage::Used;

    /// Returns two rounds of 1,000 requests and 1 GB, each in `ms` milliseconds of CPU time.
    fn rounds(ms: u64) -> Vec<Sample> {
        let time = Duration::from_millis(ms);
        let used = Used { process: Some(time), core: Some(2 * time), load_core: None };
        let (wall, requests, bytes) = (Duration::from_secs(1), 1000, 1_000_000_000);
        let mut sample = Sample { wall, requests, bytes, used, ..Sample::default() };
        sample.latencies.record(time);
        vec![sample.clone(), sample]
    }

    fn variant(key: &str, setting: &str) -> &'static Variant {
        let is = |one: &&Variant| one.key == key && one.setting.contains(setting);
        VARIANTS.iter().find(is).unwrap()
    }

    fn series(workload: Load, key: &str, setting: &str) -> Series<Load> {
        Series { workload, variant: variant(key, setting), repeated: false }
    }

    fn check(found: &BTreeMap<String, Ratio>, expected: &[(&str, f64)]) {
        for (key, expected) in expected {
            assert!((found[*key].value - expected).abs() < 0.01, "{key}: {}", found[*key]);
        }
    }

    #[test]
    fn rivals_are_compared_by_their_best_setting() {
        let bulk = Load::Bulk { flows: 1 };
        let mut results = Comparison::new(FIELDS, []);
        let haul = series(bulk, "haul", "auto");
        results.add(haul, rounds(100));
        results.add(Series { repeated: true, ..haul }, rounds(110));
        results.add(series(bulk, "nginx_stream", "16k"), rounds(400));
        results.add(series(bulk, "nginx_stream", "64k"), rounds(200));
        results.add(series(bulk, "go", ""), rounds(125));
        results.add(series(bulk, "socat", ""), Vec::new());
        let found = ratios(&results, &[bulk]);
        check(
            &found,
            &[
                ("bulk_1_cpu_per_gb_vs_nginx_stream", 0.5),
                ("bulk_1_cpu_per_gb_vs_go", 0.8),
                ("bulk_1_noise", 1.1),
            ],
        );
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn auto_is_compared_with_the_better_of_copy_and_splice() {
        let mut results = Comparison::new(FIELDS, []);
        let loads = [64, 1 << 20].map(|bytes| Load::Messages { bytes });
        for (load, copy, splice) in [(loads[0], 100, 200), (loads[1], 400, 200)] {
            results.add(series(load, "haul", "auto"), rounds(150));
            results.add(series(load, "haul", "copy"), rounds(copy));
            results.add(series(load, "haul", "splice"), rounds(splice));
        }
        let found = ratios(&results, &loads);
        check(
            &found,
            &[
                ("adaptive_message_64_cpu_vs_best_own", 1.5),
                ("adaptive_message_1m_cpu_vs_best_own", 0.75),
                ("adaptive_message_64_p50_vs_best_own", 1.5),
            ],
        );
        assert_eq!(found.len(), 4, "{found:?}");
    }

    #[test]
    fn documented_ratios_exist() {
        let loads = Options::parse_from(["relay"]).workloads();
        let mut results = Comparison::new(FIELDS, []);
        for workload in loads.iter().copied() {
            for variant in &VARIANTS {
                results.add(Series { workload, variant, repeated: false }, rounds(100));
            }
        }
        let mut found = ratios(&results, &loads);
        let costs = Costs { pipes: Some(0.0), descriptors: 2.0 };
        found.extend(costs_ratios(variant("haul", "auto"), costs));
        check_documented("Relays", &found);
    }

    #[test]
    fn workloads_have_a_title_and_a_key() {
        assert_eq!(Load::Messages { bytes: 4096 }.key(), "message_4k");
        assert_eq!(Load::Bulk { flows: 16 }.to_string(), "16 flows");
    }

    #[test]
    fn request_on_a_new_connection_is_short_enough_to_be_read() {
        for load in [Load::Files, Load::Connections { bytes: 1024 }, Load::Chat] {
            let exchange = load.exchange().unwrap();
            assert!(exchange.persistent || exchange.request_bytes <= READ_MAX, "{load:?}");
        }
    }
}
