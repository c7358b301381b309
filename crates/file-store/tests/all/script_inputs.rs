//! Random inputs of workloads.

use std::time::{Duration, UNIX_EPOCH};

use haul_file_store::{Attributes, Expiry, Lifecycle, LifecycleRule};
use haul_testing::Random;

use crate::BIG;
use crate::script::Content;

/// The lengths of the objects of a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lengths {
    Short,
    /// Lengths with which volumes fill quickly.
    Long,
}

pub(crate) fn pick<'a, T>(random: &mut Random, all: &'a [T]) -> &'a T {
    &all[usize::try_from(random.below(all.len() as u64)).unwrap()]
}

pub(crate) fn content(random: &mut Random, lengths: Lengths) -> Content {
    let big = BIG as u64;
    let length = match (random.below(16), lengths) {
        (0, _) => 0,
        (1, _) => big + random.below(4 * big),
        (2, _) => big - 1 + random.below(3),
        (_, Lengths::Short) => random.below(5000),
        (_, Lengths::Long) => big / 2 + random.below(big / 2),
    };
    random.bytes(usize::try_from(length).unwrap()).into()
}

pub(crate) fn attributes(random: &mut Random) -> Attributes {
    (0..random.below(3)).map(|n| (format!("name {n}"), random.below(1000).to_string())).collect()
}

/// Returns the name of a setting, and its value or `None` to remove it.
pub(crate) fn setting(random: &mut Random) -> (String, Option<String>) {
    let value = (random.below(3) > 0).then(|| random.below(1000).to_string());
    (format!("name {}", random.below(3)), value)
}

/// Returns rules by which some keys are expired, sometimes so many that their needle needs several
/// reads.
pub(crate) fn lifecycle(random: &mut Random) -> Lifecycle {
    let count = if random.below(8) == 0 { 100 } else { random.below(3) };
    let rule = |number: u64| LifecycleRule {
        id: format!("rule {number}"),
        enabled: random.below(4) > 0,
        prefix: format!("key/{}", if random.below(2) == 0 { "0" } else { "11" }),
        expire: Some(match random.below(4) {
            0 => Expiry::After(Duration::from_hours(24)),
            _ => Expiry::At(UNIX_EPOCH),
        }),
        ..LifecycleRule::default()
    };
    Lifecycle { rules: (0..count).map(rule).collect() }
}
