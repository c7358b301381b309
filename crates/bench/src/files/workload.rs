//! Defines the workloads of the file servers, the columns of their rows, and the ratios computed
//! from them. Performs no I/O.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::servers::{COPY, HAUL_TLS, SPLICE, is_tls};
use crate::contest::Field;
use crate::net::comparison::{Comparison, Series, Variant, Workload, short, smallest};
use crate::net::sample::{Figure, Sample, primary_max, primary_min};
use crate::report::{Column, Ratio};

/// One kind of load on the file servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Files of this many bytes in memory, requested as fast as possible.
    Hot(u64),
    /// Files of `bytes` bytes in memory, requested as fast as possible on `connections` connections;
    /// with `keep_alive` all requests of a connection use it, otherwise each has a new one.
    Matrix { bytes: u64, connections: usize, keep_alive: bool },
    /// Files of this many bytes in memory, requested as fast as possible over TLS.
    Tls(u64),
    /// Downloads of big files in memory.
    Warm,
    /// Downloads of big files that are not in memory.
    Cold,
    /// Hot files requested at a fixed rate, without downloads.
    AtRest,
    /// Hot files requested at a fixed rate during downloads.
    DuringDownloads,
}

impl Display for Load {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hot(bytes) => write!(f, "hot, {bytes} B"),
            Self::Matrix { bytes, connections, keep_alive } => {
                let reuse = if *keep_alive { "keep-alive" } else { "close" };
                write!(f, "{} x {connections}, {reuse}", short(*bytes))
            }
            Self::Tls(bytes) => write!(f, "TLS, {}", short(*bytes)),
            Self::Warm => f.write_str("warm"),
            Self::Cold => f.write_str("cold"),
            Self::AtRest => f.write_str("at rest"),
            Self::DuringDownloads => f.write_str("beside downloads"),
        }
    }
}

impl Workload for Load {
    fn table(self) -> &'static str {
        match self {
            Self::Hot(_) => "hot files",
            Self::Matrix { .. } => "files by size, connections and keep-alive",
            Self::Tls(_) => "files over TLS",
            Self::Warm | Self::Cold => "big files",
            Self::AtRest | Self::DuringDownloads => "hot files at a fixed rate, with little memory",
        }
    }

    fn figure(self) -> Figure {
        match self {
            Self::Hot(_) | Self::Matrix { .. } => Sample::per_core_second,
            Self::Tls(_) => Sample::process_us,
            Self::Warm | Self::Cold => Sample::process_s_per_gb,
            Self::AtRest | Self::DuringDownloads => Sample::p99_us,
        }
    }
}

/// Returns `true` if a variant is measured under a workload. Variants whose setting makes no
/// difference under the workload are left out.
pub(super) fn takes_part(variant: &Variant, load: Load) -> bool {
    if is_tls(variant) != matches!(load, Load::Tls(_)) {
        return false;
    }
    if let Load::Matrix { .. } = load {
        let keys = ["haul", "nginx_sendfile", "lighttpd", "h2o", "caddy", "hyper", "go"];
        return keys.contains(&variant.key);
    }
    let is_hot = matches!(load, Load::Hot(_));
    match variant.key {
        "nginx_sendfile_at_once" | "nginx_copy" => is_hot,
        "nginx_aio_threads" => !is_hot,
        "lighttpd" | "h2o" | "caddy" | "hyper" => false,
        "go" => matches!(load, Load::Warm | Load::Cold),
        "nginx_directio" | "haul_splice" => !is_hot && load != Load::Warm,
        _ => true,
    }
}

pub(super) const BAR: &str = "requests_per_core_s";

/// The columns of the table: medians of the rounds, and the smallest and largest primary figure,
/// which is the figure by which servers are compared.
pub(super) const FIELDS: &[Field<Series<Load>, Sample>] = &[
    Field::label("load", "load", Series::workload),
    Field::label("server", "server", Series::program),
    Field::label("setting", "setting", Series::setting),
    Field::median(Column::number(BAR, "requests/core s", 0), Sample::per_core_second),
    Field::median(Column::number("cpu_s_per_gb", "CPU s/GB", 3), Sample::process_s_per_gb),
    Field::median(Column::number("p99_us", "p99 µs", 0), Sample::p99_us),
    Field::total(Column::number("min", "min", 3).ranked(4), primary_min),
    Field::total(Column::number("max", "max", 3).ranked(4), primary_max),
    Field::median(Column::number("requests_per_s", "requests/s", 0).ranked(3), Sample::per_second),
    Field::median(Column::number("process_us", "CPU µs", 2).ranked(5), Sample::process_us),
    Field::median(Column::number("core_s_per_gb", "core s/GB", 3).ranked(1), Sample::core_s_per_gb),
    Field::median(
        Column::number("cached_percent", "cached %", 2).ranked(1),
        Sample::cached_percent,
    ),
    Field::median(Column::number("mib_per_s", "MiB/s", 0).ranked(2), Sample::mib_per_second),
    Field::median(Column::number("p50_us", "p50 µs", 0).ranked(3), Sample::p50_us),
    Field::median(Column::number("p999_us", "p99.9 µs", 0).ranked(3), Sample::p999_us),
    Field::median(
        Column::number("server_busy_percent", "server %", 0).ranked(6),
        Sample::server_busy_percent,
    ),
    Field::median(
        Column::number("load_busy_percent", "load %", 0).ranked(6),
        Sample::load_busy_percent,
    ),
];

/// Returns the figures of `haul` divided by those of each rival, such as
/// `cold_cpu_per_gb_vs_nginx_directio`. For hot files, the divisor is the figure of nginx's best
/// setting (`hot_4k_requests_vs_nginx`). `…_splice_vs_copy` compares the two settings of `haul`,
/// `…_noise` the two series of the first server, which is measured twice in each round.
pub(super) fn ratios(results: &Comparison<Load>, loads: &[Load]) -> BTreeMap<String, Ratio> {
    let mut ratios = BTreeMap::new();
    let mut add =
        |key: String, ratio: Option<Ratio>| ratios.extend(ratio.map(|ratio| (key, ratio)));
    let haul = |load| {
        let variants = [&COPY, &HAUL_TLS];
        results.measured(load).find(|one| variants.contains(&one.strategy.variant))
    };
    for load in loads.iter().copied() {
        let figures = figures(load);
        add(format!("{}_noise", figures[0].0), results.noise(load));
        let Some(haul) = haul(load) else { continue };
        let rivals = || results.measured(load).filter(|one| !one.strategy.variant.is_haul());
        if let Load::Hot(_) = load {
            let best = smallest(rivals(), |sample| sample.per_core_second().map(|rate| -rate));
            let ratio = best.and_then(|best| haul.ratio(best, Sample::per_core_second));
            add(format!("{}_vs_nginx", figures[0].0), ratio);
            continue;
        }
        let splice = results.measured(load).find(|one| one.strategy.variant == &SPLICE);
        for (name, figure) in figures {
            for rival in rivals() {
                let ratio = haul.ratio(rival, figure);
                add(format!("{name}_vs_{}", rival.strategy.variant.key), ratio);
            }
            let ratio = splice.and_then(|one| one.ratio(haul, figure));
            add(format!("{name}_splice_vs_copy"), ratio);
        }
    }
    if let (Some(rest), Some(during)) = (haul(Load::AtRest), haul(Load::DuringDownloads)) {
        let ratio = during.ratio(rest, Sample::p99_us);
        add("hot_p99_during_cold_vs_rest".to_owned(), ratio);
    }
    ratios
}

/// Returns the figures by which `haul` is compared with each rival, with their names in ratios.
fn figures(load: Load) -> Vec<(String, Figure)> {
    let figures: &[(&str, Figure)] = match load {
        Load::Hot(bytes) => {
            return vec![(format!("hot_{}_requests", short(bytes)), Sample::per_core_second)];
        }
        Load::Matrix { bytes, connections, keep_alive } => {
            let reuse = if keep_alive { "keep_alive" } else { "close" };
            let name = format!("matrix_{}_{connections}_{reuse}_requests", short(bytes));
            return vec![(name, Sample::per_core_second)];
        }
        Load::Tls(bytes) => {
            return vec![(format!("tls_{}_cpu", short(bytes)), Sample::process_us)];
        }
        Load::Warm => &[
            ("warm_cpu_per_gb", Sample::process_s_per_gb),
            ("warm_core_per_gb", Sample::core_s_per_gb),
            ("warm_rate", Sample::mib_per_second),
        ],
        Load::Cold => &[
            ("cold_cpu_per_gb", Sample::process_s_per_gb),
            ("cold_core_per_gb", Sample::core_s_per_gb),
            ("cold_rate", Sample::mib_per_second),
            ("cold_cache", Sample::cached_percent),
        ],
        Load::AtRest => &[("hot_p99_at_rest", Sample::p99_us)],
        Load::DuringDownloads => &[
            ("hot_p99_during_cold", Sample::p99_us),
            ("downloads_during_hot", Sample::mib_per_second),
        ],
    };
    figures.iter().map(|(name, figure)| ((*name).to_owned(), *figure)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::servers::VARIANTS;
    use super::*;
    use crate::net::comparison::tests::check_documented;
    use crate::net::usage::Used;

    const LOADS: [Load; 9] = [
        Load::Tls(4 << 10),
        Load::Matrix { bytes: 1 << 10, connections: 64, keep_alive: false },
        Load::Hot(1 << 10),
        Load::Hot(4 << 10),
        Load::Hot(16 << 10),
        Load::Warm,
        Load::Cold,
        Load::AtRest,
        Load::DuringDownloads,
    ];

    fn by_key(key: &str) -> &'static Variant {
        VARIANTS.into_iter().find(|one| one.key == key).unwrap()
    }

    /// Returns two rounds, each with `requests` requests in `ms` milliseconds of CPU time.
    fn rounds(requests: u64, ms: u64) -> Vec<Sample> {
        let time = Duration::from_millis(ms);
        let used = Used { process: Some(time), core: Some(2 * time), load_core: None };
        let (wall, bytes) = (Duration::from_secs(1), requests * 1_000_000);
        let cached_bytes = Some(requests * 10_000);
        let mut sample = Sample { wall, requests, bytes, used, cached_bytes, ..Sample::default() };
        sample.latencies.record(time);
        vec![sample.clone(), sample]
    }

    fn series(workload: Load, key: &str, repeated: bool) -> Series<Load> {
        Series { workload, variant: by_key(key), repeated }
    }

    fn check(found: &BTreeMap<String, Ratio>, key: &str, expected: f64) {
        assert!((found[key].value - expected).abs() < 0.002, "{key}: {}", found[key]);
    }

    #[test]
    fn hot_files_are_compared_with_the_best_setting_of_nginx() {
        let load = Load::Hot(4096);
        let mut results = Comparison::new(FIELDS, []);
        results.add(series(load, "haul", false), rounds(600, 100));
        results.add(series(load, "haul", true), rounds(660, 100));
        results.add(series(load, "nginx_sendfile", false), rounds(200, 100));
        results.add(series(load, "nginx_copy", false), rounds(300, 100));
        let found = ratios(&results, &[load]);
        check(&found, "hot_4k_requests_noise", 1.1);
        check(&found, "hot_4k_requests_vs_nginx", 2.0);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn each_goal_has_its_ratio() {
        let times =
            [("haul", 100), ("haul_splice", 150), ("nginx_sendfile", 200), ("nginx_directio", 500)];
        let results = |failed: &str| {
            let mut results = Comparison::new(FIELDS, []);
            for load in LOADS {
                for (key, ms) in times.iter().filter(|one| takes_part(by_key(one.0), load)) {
                    let rounds = if *key == failed { Vec::new() } else { rounds(1000, *ms) };
                    results.add(series(load, key, false), rounds);
                }
            }
            ratios(&results, &LOADS)
        };
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
            check(&results(""), key, expected);
        }
        assert!(!results("nginx_directio").contains_key("cold_cpu_per_gb_vs_nginx_directio"));
    }

    #[test]
    fn documented_ratios_exist() {
        let mut results = Comparison::new(FIELDS, []);
        for load in LOADS {
            for variant in VARIANTS.into_iter().filter(|one| takes_part(one, load)) {
                results.add(series(load, variant.key, false), rounds(1000, 100));
            }
        }
        check_documented("Files", &ratios(&results, &LOADS));
    }

    #[test]
    fn settings_are_measured_where_they_matter() {
        let loads = [Load::Hot(1024), Load::Warm, Load::Cold, Load::AtRest, Load::DuringDownloads];
        let of = |key| loads.map(|load| takes_part(by_key(key), load));
        for key in ["haul_tls", "nginx_tls", "caddy_tls"] {
            assert_eq!((of(key), takes_part(by_key(key), Load::Tls(1))), ([false; 5], true));
        }
        let matrix = Load::Matrix { bytes: 1024, connections: 1, keep_alive: true };
        for key in ["lighttpd", "h2o", "caddy", "hyper"] {
            assert_eq!((of(key), takes_part(by_key(key), matrix)), ([false; 5], true));
        }
        assert_eq!(of("go"), [false, true, true, false, false]);
        assert!(takes_part(by_key("go"), matrix) && !takes_part(by_key("haul_splice"), matrix));
        assert_eq!(of("haul"), [true; 5]);
        assert_eq!(of("nginx_sendfile"), [true; 5]);
        assert_eq!(of("nginx_copy"), [true, false, false, false, false]);
        assert_eq!(of("nginx_aio_threads"), [false, true, true, true, true]);
        assert_eq!(of("nginx_directio"), [false, false, true, true, true]);
        assert_eq!(of("haul_splice"), of("nginx_directio"));
    }
}
