//! Runs the rounds of all competitors under each load, and reports rows and ratios.

use std::collections::BTreeSet;

use haul_disk::{Device, error_chain};
use haul_measure::{Result, Watcher};

use super::contender::{Contender, Failure, failed};
use super::drive::{Load, drive};
use super::options::LogBench;
use super::ours::Ours;
use super::raw::{Raw, RawMode};
use super::rivals::{FAMILIES, NOT_BUILT, Rivals, SMALL_FILES};
use super::sample::Sample;
use super::scratch::Scratch;
use crate::contest::{Contest, Field, Outcome, Stage, best_of_families, number};
use crate::report::{Ratio, Report, Samples};

/// The length in bytes of a segment (file of the log). raft-engine and okaywal's form `long-files`
/// use the same length, for equal conditions.
const SEGMENT_BYTES: u32 = 64 << 20;
/// Before the measurement, the writers run for the measured time divided by this number.
const SETTLE: u32 = 4;

const OURS: &str = "haul";
/// The family of the floors: durable writes to a plain file.
const RAW: &str = "raw";
const GROWING: &str = "growing-file";

/// A log or a floor under one load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Competitor {
    /// The name of the family, and for rivals with several forms, the form after a slash.
    name: String,
    kind: Kind,
    writers: usize,
    record_bytes: usize,
    group: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ours,
    Raw(RawMode),
    Rival,
    /// A rival that is not installed.
    Missing,
}

impl Competitor {
    fn family(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }
}

fn rate(sample: &Sample) -> Option<f64> {
    Some(sample.rate())
}

pub(super) const FIELDS: &[Field<Competitor, Sample>] = &[
    Field::label("log", "log", |it| it.name.as_str().into()),
    number("writers", "writers", 0).rank(1).label(|it| it.writers.into()),
    number("record_bytes", "record", 0).rank(1).label(|it| it.record_bytes.into()),
    number("appends_per_s", "appends/s", 0).spread(5, rate),
    number("p50_us", "p50 µs", 0).median(|sample| sample.p50_us),
    number("p99_us", "p99 µs", 0).rank(1).median(|sample| sample.p99_us),
    number("p999_us", "p99.9 µs", 0).rank(2).median(|sample| sample.p999_us),
    number("appends", "appends", 0).rank(6).median(|it| Some(it.appends)),
    number("cpu_us_per_append", "CPU µs", 1)
        .rank(2)
        .median(|it| Some(it.each(it.cpu_seconds)? * 1e6)),
    number("device_writes_per_append", "writes", 2).rank(3).median(|it| it.each(it.device_writes)),
    number("device_bytes_per_append", "bytes", 0).rank(3).median(|it| it.each(it.device_bytes)),
    number("device_syncs_per_append", "syncs", 2).rank(3).median(|it| it.each(it.device_syncs)),
    number("device_reads_per_append", "reads", 3).rank(4).median(|it| it.each(it.device_reads)),
];

/// The rounds of all loads.
pub(super) struct Rounds<'a> {
    pub(super) bench: &'a LogBench,
    pub(super) rivals: Option<Rivals>,
    pub(super) device: Option<&'a Device>,
    pub(super) scratch: &'a Scratch,
    pub(super) watcher: &'a dyn Watcher,
}

impl Rounds<'_> {
    pub(super) fn run(&self, report: &mut Report) -> Result<()> {
        for record_bytes in self.bench.sizes.iter().copied() {
            for writers in self.bench.writers.iter().copied() {
                let all = self.competitors(writers, record_bytes);
                let group = all[0].group.clone();
                let rounds = Stage::only(self.bench.rounds, self.watcher);
                let stage = Stage { name: &group, ..rounds };
                let mut contest = Contest::new(FIELDS, all);
                let is_floor = |competitor: &Competitor| competitor.family() == RAW;
                let counted = contest.run_above_floor(&stage, is_floor, rate, |competitor| {
                    self.measure(competitor)
                })?;
                contest.report(report, "", |competitor| competitor.group.clone());
                report.notes.push(counted.note(&group));
                add_ratios(&contest, writers, record_bytes, report);
            }
        }
        Ok(())
    }

    fn competitors(&self, writers: usize, record_bytes: usize) -> Vec<Competitor> {
        let competitor = |name: &str, kind| Competitor {
            name: name.to_owned(),
            kind,
            // The floors have one writer.
            writers: if let Kind::Raw(_) = kind { 1 } else { writers },
            record_bytes,
            group: format!("{record_bytes} bytes, {writers} writers"),
        };
        let mut all = vec![
            competitor(OURS, Kind::Ours),
            competitor("raw/direct-fdatasync", Kind::Raw(RawMode::DirectFdatasync)),
            competitor("raw/direct-dsync", Kind::Raw(RawMode::DirectDsync)),
            competitor(GROWING, Kind::Raw(RawMode::Growing)),
        ];
        let forms = self.rivals.iter().flat_map(|rivals| &rivals.forms);
        let logs = forms.filter(|form| !form.starts_with(SMALL_FILES));
        let wanted = logs.filter(|form| self.bench.all_forms || !form.contains('/'));
        all.extend(wanted.map(|form| competitor(form, Kind::Rival)));
        for family in FAMILIES {
            if !all.iter().any(|it| it.name == *family) {
                all.push(competitor(family, Kind::Missing));
            }
        }
        all
    }

    /// Measures a competitor in a new directory. Only a failure of our own log is an error.
    fn measure(&self, competitor: &Competitor) -> Result<Outcome<Sample>> {
        if competitor.kind == Kind::Missing {
            return Outcome::skipped(NOT_BUILT);
        }
        let scratch = Scratch::new(self.scratch.path(), "log")?;
        let (dir, measure) = (scratch.path(), self.bench.seconds);
        let Competitor { name, kind, writers, record_bytes, .. } = competitor;
        let (writers, record_bytes) = (*writers, *record_bytes);
        let load = Load { writers, record_bytes, settle: measure / SETTLE, measure };
        let sample = match kind {
            Kind::Ours => {
                let ours = Ours::open(dir, SEGMENT_BYTES);
                let sample = ours.and_then(|ours| self.drive(&ours, &load));
                return sample.map(Outcome::Measured).map_err(failed("measure the log"));
            }
            Kind::Raw(mode) => {
                Raw::open(dir, *mode, record_bytes).and_then(|raw| self.drive(&raw, &load))
            }
            Kind::Rival | Kind::Missing => {
                let rivals = self.rivals.as_ref().ok_or_else(|| Failure::from(NOT_BUILT));
                rivals.and_then(|it| it.measure(name, dir, &load, self.watcher))
            }
        };
        Ok(sample.map_or_else(|it| Outcome::Skipped(error_chain(&*it)), Outcome::Measured))
    }

    fn drive(&self, contender: &dyn Contender, load: &Load) -> Result<Sample, Failure> {
        contender.warm_up()?;
        rustix::fs::sync();
        drive(contender, load, self.device)
    }
}

/// The length of the records whose rates are compared.
const RECORD_BYTES: usize = 4096;

/// Adds the rate of our log divided by that of each other family with as many writers, such as
/// `log_vs_raft_engine_16w`.
fn add_ratios(
    contest: &Contest<Competitor, Sample>,
    writers: usize,
    record_bytes: usize,
    report: &mut Report,
) {
    let others = contest.entries.iter().map(|entry| &entry.strategy);
    let others = others.filter(|it| it.writers == writers && it.kind != Kind::Ours);
    let families: BTreeSet<_> = others.map(Competitor::family).collect();
    for family in families.into_iter().filter(|_| record_bytes == RECORD_BYTES) {
        let key = format!("log_vs_{}_{writers}w", family.replace('-', "_"));
        let rates = rates(contest, OURS).zip(rates(contest, family));
        report.ratio(key, rates.and_then(|(ours, theirs)| Ratio::of(ours, theirs)));
    }
}

/// Returns the rates of a family: the best one of each round for the floor, otherwise those of the
/// form with the best median.
fn rates(contest: &Contest<Competitor, Sample>, family: &str) -> Option<Samples> {
    if family == RAW {
        return Some(contest.best_of_rounds(RAW, |it| it.family() == RAW, rate));
    }
    let members = contest.entries.iter().filter(|entry| entry.strategy.family() == family);
    best_of_families(members, |_| family.to_owned(), rate).get(family)?.samples(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::new_report;

    fn contest(writers: usize, rates: &[(&str, &[f64])]) -> Contest<Competitor, Sample> {
        let competitor = |(name, _): &(&str, &[f64])| Competitor {
            name: (*name).to_owned(),
            kind: if *name == OURS { Kind::Ours } else { Kind::Rival },
            writers,
            record_bytes: 4096,
            group: String::new(),
        };
        let mut contest = Contest::new(FIELDS, rates.iter().map(competitor));
        let sample =
            |appends: &f64| Some(Sample { appends: *appends, seconds: 1.0, ..Sample::default() });
        let rounds = rates.iter().map(|(_, rates)| rates.iter().map(sample));
        contest.record_all(rounds.map(|it| it.map(|it| it.filter(|it| it.appends > 0.0))));
        contest
    }

    #[test]
    fn ratios_are_ours_over_the_best_of_theirs() {
        let mut report = new_report("log", FIELDS, String::new());
        let one = [
            (OURS, &[90.0, 95.0, 100.0][..]),
            ("raw/fdatasync", &[50.0, 100.0, 50.0]),
            ("raw/dsync", &[100.0, 90.0, 100.0]),
            (GROWING, &[19.0, 19.0, 19.0]),
            ("okaywal", &[1.0, 1.0, 1.0]),
        ];
        let many = [
            (OURS, &[800.0, 800.0][..]),
            ("sqlite", &[20.0, 20.0]),
            ("sqlite/connection-each", &[40.0, 40.0]),
            ("sqlite-like", &[99.0, 99.0]),
            ("rocksdb", &[0.0, 0.0]),
        ];
        add_ratios(&contest(1, &one), 1, 4096, &mut report);
        add_ratios(&contest(16, &many), 16, 4096, &mut report);
        report.assert_ratios(&[
            ("log_vs_growing_file_1w", 5.0),
            ("log_vs_okaywal_1w", 95.0),
            ("log_vs_raw_1w", 0.95),
            ("log_vs_sqlite_16w", 20.0),
            ("log_vs_sqlite_like_16w", 800.0 / 99.0),
        ]);
    }
}
