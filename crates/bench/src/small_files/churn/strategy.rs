//! Defines the columns of the report, and the ratios. Performs no I/O.

use std::fmt;

use haul_measure::Latencies;

use super::load::Phase;
use super::pattern::Pattern;
use super::target::Kind;
use crate::contest::{Contest, Field};
use crate::report::{Column, Report};

/// A target, how full its file system is, and the choice of the objects to overwrite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Strategy {
    pub(super) kind: Kind,
    pub(super) live_percent: usize,
    pub(super) pattern: Pattern,
}

impl Strategy {
    pub(super) fn group(&self) -> String {
        format!("{} % live, {}", self.live_percent, self.pattern)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group(), self.kind)
    }
}

/// One measurement.
pub(super) struct Round {
    pub(super) filled: Phase,
    pub(super) overwritten: Phase,
    /// Used space for each byte of the objects.
    pub(super) space_per_live: f64,
}

fn puts(round: &Round) -> &Latencies {
    &round.overwritten.puts
}

fn amplification(round: &Round) -> Option<f64> {
    round.overwritten.device_bytes_per_byte()
}

fn put_slowdown(round: &Round) -> Option<f64> {
    Some(puts(round).percentile_us(99.0)? / round.filled.puts.percentile_us(99.0)?)
}

fn get_slowdown(round: &Round) -> Option<f64> {
    let filled = round.filled.gets.percentile_us(99.0)?;
    Some(round.overwritten.gets.percentile_us(99.0)? / filled)
}

/// The column whose values are drawn as bars.
pub(super) const BAR: &str = "puts_per_s";

/// The columns of the table.
pub(super) const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("target", "target", |strategy| strategy.kind.name().into()),
    Field::parameter(Column::number("live_percent", "live %", 0), |strategy| {
        (strategy.live_percent as f64).into()
    }),
    Field::label("pattern", "pattern", |strategy| strategy.pattern.name().into()),
    Field::median(Column::number("puts_per_s", "puts/s", 0), |round| {
        Some(round.overwritten.rate())
    }),
    Field::median(Column::number("failed", "failed", 0), |round| {
        Some((round.filled.failed + round.overwritten.failed) as f64)
    }),
    Field::median(Column::number("fill_p99_us", "fill p99 µs", 0), |round| {
        round.filled.puts.percentile_us(99.0)
    }),
    Field::percentile_us(Column::number("put_p50_us", "put p50 µs", 0), 50.0, puts),
    Field::percentile_us(Column::number("put_p99_us", "put p99 µs", 0), 99.0, puts),
    Field::percentile_us(Column::number("get_p99_us", "get p99 µs", 0), 99.0, |round| {
        &round.overwritten.gets
    }),
    Field::median(Column::number("device_bytes_per_byte", "bytes/byte", 2), amplification),
    Field::median(Column::number("space_per_live_byte", "space/live", 2), |round| {
        Some(round.space_per_live)
    }),
];

/// Adds what the store costs at each share of live bytes.
pub(super) fn add_ratios(contest: &Contest<Strategy, Round>, prefix: &str, report: &mut Report) {
    for entry in contest.entries.iter().filter(|entry| entry.strategy.kind == Kind::Store) {
        let Strategy { live_percent, pattern, .. } = entry.strategy;
        for (name, figure) in [
            ("write_amplification", amplification as fn(&Round) -> Option<f64>),
            ("put_p99_vs_fill", put_slowdown),
            ("get_p99_vs_fill", get_slowdown),
        ] {
            let name = format!("{prefix}{name}_{live_percent}_{pattern}");
            report.amount(name, entry.samples(figure));
        }
    }
}
