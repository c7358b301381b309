//! Defines the workloads of S3 servers, the columns of their rows, and the ratios computed from
//! them. Performs no I/O.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::options::{Options, Part};
use super::servers::{HAUL, RIVALS};
use crate::contest::Field;
use crate::net::comparison::{Comparison, Series, Workload, short};
use crate::net::sample::{Figure, Sample, primary_max, primary_min};
use crate::report::{Column, Ratio};

/// One kind of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// PUT requests of objects of this many bytes, each with a new key.
    Put(u64),
    /// GET requests for objects of this many bytes.
    Get(u64),
    /// A listing of this many keys.
    List(u64),
}

impl Load {
    /// Returns the workloads that the options select. All objects to be listed are in a bucket of
    /// their own.
    pub(super) fn all(options: &Options) -> Vec<Self> {
        let of_part = |part: &Part| match part {
            Part::Put => options.object_bytes.iter().map(|bytes| Self::Put(*bytes)).collect(),
            Part::Get => options.object_bytes.iter().map(|bytes| Self::Get(*bytes)).collect(),
            Part::List => vec![Self::List(options.list_keys as u64)],
        };
        options.parts.iter().flat_map(of_part).collect()
    }

    /// Returns the name of the workload in ratios.
    fn key(self) -> String {
        match self {
            Self::Put(bytes) => format!("put_{}", short(bytes)),
            Self::Get(bytes) => format!("get_{}", short(bytes)),
            Self::List(_) => "list".to_owned(),
        }
    }
}

impl Display for Load {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put(bytes) => write!(f, "PUT {}", short(*bytes)),
            Self::Get(bytes) => write!(f, "GET {}", short(*bytes)),
            Self::List(keys) => write!(f, "LIST {keys} keys"),
        }
    }
}

impl Workload for Load {
    fn table(self) -> &'static str {
        match self {
            Self::Put(_) | Self::Get(_) => "requests",
            Self::List(_) => "listed keys",
        }
    }

    fn figure(self) -> Figure {
        Sample::per_second
    }
}

pub(super) const BAR: &str = "per_s";

/// The columns of the table. Requests of a listing are its keys.
pub(super) const FIELDS: &[Field<Series<Load>, Sample>] = &[
    Field::label("load", "load", Series::workload),
    Field::label("server", "server", Series::program),
    Field::label("setting", "setting", Series::setting),
    Field::median(Column::number(BAR, "per s", 0), Sample::per_second),
    Field::total(Column::number("min", "min", 0).ranked(1), primary_min),
    Field::total(Column::number("max", "max", 0).ranked(1), primary_max),
    Field::median(Column::number("process_us", "CPU µs", 1), Sample::process_us),
    Field::median(
        Column::number("server_busy_percent", "server %", 0).ranked(3),
        Sample::server_busy_percent,
    ),
    Field::median(
        Column::number("load_busy_percent", "load %", 0).ranked(3),
        Sample::load_busy_percent,
    ),
];

/// Returns the rate of `haul serve` divided by that of each rival, such as `put_4k_vs_seaweedfs`.
/// `…_noise` compares the two series of `haul serve`, which is measured twice in each round.
pub(super) fn ratios(results: &Comparison<Load>, loads: &[Load]) -> BTreeMap<String, Ratio> {
    let mut ratios = BTreeMap::new();
    for load in loads.iter().copied() {
        let of = |variant| results.measured(load).find(|one| one.strategy.variant == variant);
        let mut add = |suffix: &str, ratio: Option<Ratio>| {
            ratios.extend(ratio.map(|ratio| (format!("{}_{suffix}", load.key()), ratio)));
        };
        add("noise", results.noise(load));
        for rival in RIVALS {
            let pair = of(&HAUL).zip(of(rival));
            let ratio = pair.and_then(|(haul, rival)| haul.ratio(rival, load.figure()));
            add(&format!("vs_{}", rival.key), ratio);
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::super::servers::SEAWEEDFS;
    use super::*;

    #[test]
    fn ratio_is_that_of_the_rates() {
        let load = Load::Put(4096);
        let mut results = Comparison::new(FIELDS, []);
        for (variant, ms) in [(&HAUL, 10), (&SEAWEEDFS, 50)] {
            let sample =
                Sample { wall: Duration::from_millis(ms), requests: 10, ..Sample::default() };
            let series = Series { workload: load, variant, repeated: false };
            results.add(series, vec![sample.clone(), sample]);
        }
        let found = ratios(&results, &[load]);
        assert!((found["put_4k_vs_seaweedfs"].value - 5.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn each_size_is_stored_and_read() {
        let words = ["s3", "--dir", "d", "--sizes", "1KiB,1MiB", "--list-keys", "7"];
        let names = Load::all(&Options::parse_from(words)).into_iter().map(Load::key);
        assert_eq!(names.collect::<Vec<_>>(), ["put_1k", "put_1m", "get_1k", "get_1m", "list"]);
    }
}
