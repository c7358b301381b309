//! Defines the competitors of the log benchmark, and the columns of their rows in the report.

use std::fmt;

use super::raw::RawMode;
use super::sample::Sample;
use crate::contest::Field;
use crate::report::Column;

/// A log, or a plain file, under one load: one row of the report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Competitor {
    /// The name in rows: the family, such as `sqlite`, then `/` and the configuration, if that is
    /// not the default configuration.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) writers: usize,
    pub(super) record_bytes: usize,
    pub(super) group: String,
}

/// The kind of a competitor; `Missing` is a rival that was not built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ours,
    Raw(RawMode),
    Rival,
    Missing,
}

impl fmt::Display for Competitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group, self.name)
    }
}

impl Competitor {
    pub(crate) fn family(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }
}

/// One measurement of a competitor.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub(super) sample: Sample,
}

pub(crate) fn rate(round: &Round) -> Option<f64> {
    Some(round.sample.rate())
}

pub(crate) const BAR: &str = "appends_per_s";

/// The columns of the table: medians of the rounds that were not dropped.
pub(crate) const FIELDS: &[Field<Competitor, Round>] = &[
    Field::label("log", "log", |competitor| competitor.name.as_str().into()),
    Field::parameter(Column::number("writers", "writers", 0).ranked(1), |competitor| {
        (competitor.writers as f64).into()
    }),
    Field::parameter(Column::number("record_bytes", "record", 0).ranked(1), |competitor| {
        (competitor.record_bytes as f64).into()
    }),
    Field::spread(Column::number("appends_per_s", "appends/s", 0), 5, rate),
    Field::median(Column::number("p50_us", "p50 µs", 0), |round| round.sample.p50_us),
    Field::median(Column::number("p99_us", "p99 µs", 0).ranked(1), |round| round.sample.p99_us),
    Field::median(Column::number("p999_us", "p99.9 µs", 0).ranked(2), |it| it.sample.p999_us),
    Field::median(Column::number("appends", "appends", 0).ranked(6), |round| {
        Some(round.sample.appends)
    }),
    Field::median(Column::number("cpu_us_per_append", "CPU µs", 1).ranked(2), |round| {
        Some(round.sample.each(round.sample.cpu_seconds)? * 1e6)
    }),
    Field::median(Column::number("device_writes_per_append", "writes", 2).ranked(3), |round| {
        round.sample.each(round.sample.device_writes)
    }),
    Field::median(Column::number("device_bytes_per_append", "bytes", 0).ranked(3), |round| {
        round.sample.each(round.sample.device_bytes)
    }),
    Field::median(Column::number("device_syncs_per_append", "syncs", 2).ranked(3), |round| {
        round.sample.each(round.sample.device_syncs)
    }),
    Field::median(Column::number("device_reads_per_append", "reads", 3).ranked(4), |round| {
        round.sample.each(round.sample.device_reads)
    }),
];
