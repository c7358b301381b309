//! Defines the workloads of `haul serve`, the columns of their rows, and the ratios computed from
//! them. Performs no I/O.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::options::PUT_BYTES;
use super::servers::{FILES, NGINX, SERVE, SIGNED, STORE, VARIANTS};
use crate::contest::Field;
use crate::net::comparison::{Comparison, Series, Variant, Workload, short};
use crate::net::sample::{Figure, Sample, primary_max, primary_min};
use crate::report::{Column, Ratio};

/// One kind of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// GET requests for objects of this many bytes in memory.
    Get(u64),
    /// PUT requests, each with a new key.
    PutNew,
    /// PUT requests with keys of recently stored objects.
    PutOverwrite,
}

impl Display for Load {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let put_bytes = short(PUT_BYTES as u64);
        match self {
            Self::Get(bytes) => write!(f, "GET {}", short(*bytes)),
            Self::PutNew => write!(f, "PUT {put_bytes}, new keys"),
            Self::PutOverwrite => write!(f, "PUT {put_bytes}, overwrites"),
        }
    }
}

impl Workload for Load {
    fn table(self) -> &'static str {
        match self {
            Self::Get(_) => "GET of objects in memory",
            Self::PutNew | Self::PutOverwrite => "PUT",
        }
    }

    fn figure(self) -> Figure {
        Sample::process_us
    }
}

impl Load {
    /// Returns the name of the workload in ratios.
    fn key(self) -> String {
        let put_bytes = short(PUT_BYTES as u64);
        match self {
            Self::Get(bytes) => format!("get_{}", short(bytes)),
            Self::PutNew => format!("put_{put_bytes}_new"),
            Self::PutOverwrite => format!("put_{put_bytes}_overwrite"),
        }
    }

    /// Returns `true` if `haul serve` is compared with a variant.
    fn is_rival(self, variant: &Variant) -> bool {
        match self {
            Self::Get(_) => [&FILES, &NGINX].contains(&variant),
            Self::PutNew | Self::PutOverwrite => *variant == STORE,
        }
    }
}

/// Returns `true` if a variant is measured under a workload.
pub(super) fn takes_part(variant: &Variant, load: Load) -> bool {
    [&SERVE, &SIGNED].contains(&variant) || load.is_rival(variant)
}

pub(super) const BAR: &str = "process_us";

/// The columns of the table.
pub(super) const FIELDS: &[Field<Series<Load>, Sample>] = &[
    Field::label("load", "load", Series::workload),
    Field::label("server", "server", Series::program),
    Field::label("setting", "setting", Series::setting),
    Field::median(Column::number(BAR, "CPU µs", 2), Sample::process_us),
    Field::total(Column::number("min", "min", 2), primary_min),
    Field::total(Column::number("max", "max", 2), primary_max),
    Field::median(Column::number("core_us", "core µs", 2).ranked(2), Sample::core_us),
    Field::median(Column::number("requests_per_s", "requests/s", 0).ranked(1), Sample::per_second),
    Field::median(Column::number("mib_per_s", "MiB/s", 0).ranked(2), Sample::mib_per_second),
    Field::median(
        Column::number("server_busy_percent", "server %", 0).ranked(3),
        Sample::server_busy_percent,
    ),
    Field::median(
        Column::number("load_busy_percent", "load %", 0).ranked(3),
        Sample::load_busy_percent,
    ),
];

/// Returns the CPU time of `haul serve` divided by that of each rival, such as
/// `get_4k_cpu_vs_files` and `put_4k_new_signed_cpu_vs_store`. `…_noise` compares the two series of
/// the first server, which is measured twice in each round.
pub(super) fn ratios(results: &Comparison<Load>, loads: &[Load]) -> BTreeMap<String, Ratio> {
    let mut ratios = BTreeMap::new();
    let mut add =
        |key: String, ratio: Option<Ratio>| ratios.extend(ratio.map(|ratio| (key, ratio)));
    for load in loads.iter().copied() {
        let of = |variant| results.measured(load).find(|one| one.strategy.variant == variant);
        add(format!("{}_noise", load.key()), results.noise(load));
        for (variant, suffix) in [(&SERVE, ""), (&SIGNED, "_signed")] {
            for rival in VARIANTS.into_iter().filter(|rival| load.is_rival(rival)) {
                let pair = of(variant).zip(of(rival));
                let ratio = pair.and_then(|(a, b)| a.ratio(b, load.figure()));
                add(format!("{}{suffix}_cpu_vs_{}", load.key(), rival.key), ratio);
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::net::comparison::tests::check_documented;
    use crate::net::usage::Used;

    const LOADS: [Load; 6] = [
        Load::Get(4 << 10),
        Load::Get(64 << 10),
        Load::Get(1 << 20),
        Load::Get(64 << 20),
        Load::PutNew,
        Load::PutOverwrite,
    ];

    /// Returns the ratios of results in which each variant needs the CPU time of its place in
    /// `VARIANTS`, in milliseconds.
    fn ratios_by_place() -> BTreeMap<String, Ratio> {
        let mut results = Comparison::new(FIELDS, []);
        for load in LOADS {
            for (variant, ms) in VARIANTS.into_iter().zip(1..) {
                if takes_part(variant, load) {
                    let process = Some(Duration::from_millis(ms));
                    let used = Used { process, ..Used::default() };
                    let sample = Sample { requests: 10, used, ..Sample::default() };
                    let series = Series { workload: load, variant, repeated: false };
                    let rounds = vec![sample.clone(), sample];
                    results.add(series, rounds.clone());
                    if *variant == SERVE {
                        results.add(Series { repeated: true, ..series }, rounds);
                    }
                }
            }
        }
        ratios(&results, &LOADS)
    }

    #[test]
    fn serve_is_compared_with_servers_of_files_and_with_the_store() {
        let found = ratios_by_place();
        for (key, expected) in [
            ("get_4k_cpu_vs_files", 1.0 / 3.0),
            ("get_4k_signed_cpu_vs_nginx", 2.0 / 4.0),
            ("put_4k_new_cpu_vs_store", 1.0 / 5.0),
            ("put_4k_overwrite_signed_cpu_vs_store", 2.0 / 5.0),
            ("put_4k_new_noise", 1.0),
        ] {
            assert!((found[key].value - expected).abs() < 1e-9, "{key}: {}", found[key]);
        }
        assert_eq!(found.len(), 4 * 5 + 2 * 3, "{found:?}");
    }

    #[test]
    fn documented_ratios_exist() {
        check_documented("GET and PUT of `haul serve`", &ratios_by_place());
    }
}
