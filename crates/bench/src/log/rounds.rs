//! Runs the rounds of all competitors under each load, and reports rows and ratios.

use std::time::Duration;

use haul_disk::{Device, error_chain};
use haul_measure::{Error, Result, Watcher};

use super::competitor::{Competitor, FIELDS, Kind, Round, rate};
use super::contender::{Contender, Failure};
use super::drive::{Load, drive};
use super::floor::{GROWING, OURS, RAW, rates_of};
use super::options::Options;
use super::ours::Ours;
use super::raw::{Raw, RawMode};
use super::rivals::{FAMILIES, NOT_BUILT, PAGES, Rivals, SMALL_FILES};
use super::sample::Sample;
use super::scratch::Scratch;
use crate::contest::{Contest, Outcome, Stage};
use crate::report::{Ratio, Report};

/// The length in bytes of a segment (file of the log). raft-engine and okaywal's form `long-files`
/// use the same length, for equal conditions.
const SEGMENT_BYTES: u32 = 64 << 20;
/// Before the measurement, the writers run for the measured time divided by this number.
const SETTLE: u32 = 4;

/// Returns the notes that explain the table.
pub(crate) fn notes(options: &Options, has_rivals: bool) -> Vec<String> {
    let Options { rounds, seconds, .. } = options;
    let mut notes = vec![format!(
        "{rounds} interleaved rounds, {} ms each; rows are medians of the rounds that count; raw and \
         {GROWING} have one writer; requests of the device include other programs",
        seconds.as_millis()
    )];
    if !has_rivals {
        notes.push(format!("rivals are {NOT_BUILT}"));
    }
    notes
}

/// The parameters of all rounds.
pub(crate) struct Plan<'a> {
    options: &'a Options,
    rivals: Option<Rivals>,
    device: Option<&'a Device>,
    scratch: &'a Scratch,
    watcher: &'a dyn Watcher,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(
        options: &'a Options,
        rivals: Option<Rivals>,
        device: Option<&'a Device>,
        scratch: &'a Scratch,
        watcher: &'a dyn Watcher,
    ) -> Self {
        Self { options, rivals, device, scratch, watcher }
    }

    /// Measures all loads, and adds their rows, ratios and notes to `report`.
    pub(crate) fn run(&self, report: &mut Report) -> Result<()> {
        let stage = Stage::only(self.options.rounds, self.watcher);
        for record_bytes in self.options.sizes.iter().copied() {
            for writers in self.options.writers.iter().copied() {
                let mut contest = Contest::new(FIELDS, self.competitors(writers, record_bytes));
                let is_floor = |competitor: &Competitor| competitor.family() == RAW;
                let rounds = contest.run_above_floor(&stage, is_floor, rate, |competitor| {
                    Ok(match self.measure(competitor)? {
                        Ok(sample) => Outcome::Measured(Round { sample }),
                        Err(failure) => Outcome::Skipped(error_chain(&*failure)),
                    })
                })?;
                contest.report(report, "", |competitor| competitor.group.clone());
                report.notes.push(rounds.note(&group(writers, record_bytes)));
                add_ratios(&contest, writers, record_bytes, report);
            }
        }
        Ok(())
    }

    fn competitors(&self, writers: usize, record_bytes: usize) -> Vec<Competitor> {
        let group = group(writers, record_bytes);
        let competitor = |name: &str, kind| Competitor {
            name: name.to_owned(),
            kind,
            // Writers of a plain file cannot share a sync, so a plain file has one writer.
            writers: if let Kind::Raw(_) = kind { 1 } else { writers },
            record_bytes,
            group: group.clone(),
        };
        let mut all = vec![
            competitor(OURS, Kind::Ours),
            competitor("raw/direct-fdatasync", Kind::Raw(RawMode::DirectFdatasync)),
            competitor("raw/direct-dsync", Kind::Raw(RawMode::DirectDsync)),
            competitor(GROWING, Kind::Raw(RawMode::Growing)),
        ];
        let forms = self.rivals.iter().flat_map(|rivals| &rivals.forms);
        // Forms (configurations of rivals) with a prefix belong to other benchmarks.
        let is_log = |form: &&String| !form.starts_with(PAGES) && !form.starts_with(SMALL_FILES);
        let is_wanted =
            |form: &&String| is_log(form) && (self.options.all_forms || !form.contains('/'));
        all.extend(forms.filter(is_wanted).map(|form| competitor(form, Kind::Rival)));
        let is_missing = |family: &&&str| !all.iter().any(|it| it.name == **family);
        let missing: Vec<_> = FAMILIES.iter().filter(is_missing).collect();
        all.extend(missing.into_iter().map(|family| competitor(family, Kind::Missing)));
        all
    }

    /// Measures a competitor in a separate directory. The inner error is the failure of a rival or
    /// of a plain file; the outer error ends the benchmark.
    fn measure(&self, competitor: &Competitor) -> Result<Result<Sample, Failure>> {
        if competitor.kind == Kind::Missing {
            return Ok(Err(NOT_BUILT.into()));
        }
        let scratch = Scratch::new(self.scratch.path(), "log")?;
        let measure = self.options.seconds;
        let settle: Duration = measure / SETTLE;
        let Competitor { writers, record_bytes, .. } = *competitor;
        let load = Load { writers, record_bytes, settle, measure };
        Ok(match competitor.kind {
            Kind::Ours => {
                let ours = Ours::open(scratch.path(), SEGMENT_BYTES);
                let sample = ours.and_then(|(ours, _)| self.drive(&ours, &load));
                // The failure of the append log ends the benchmark, because every ratio needs its
                // rate.
                let why = std::io::Error::other;
                Ok(sample.map_err(|failure| Error::other("measure the log")(why(failure)))?)
            }
            Kind::Raw(mode) => Raw::open(scratch.path(), mode, record_bytes)
                .and_then(|raw| self.drive(&raw, &load)),
            Kind::Rival | Kind::Missing => {
                let rivals = self.rivals.as_ref().ok_or_else(|| Failure::from(NOT_BUILT));
                let name = &competitor.name;
                rivals.and_then(|it| it.measure(name, scratch.path(), &load, &[], self.watcher))
            }
        })
    }

    fn drive(&self, contender: &dyn Contender, load: &Load) -> Result<Sample, Failure> {
        contender.warm_up()?;
        // Writes back the dirty pages of the warm-up, so that this does not happen during the
        // measurement.
        rustix::fs::sync();
        drive(contender, load, self.device)
    }
}

/// Returns the name of a load, which is the group of its rows.
fn group(writers: usize, record_bytes: usize) -> String {
    format!("{record_bytes} bytes, {writers} writers")
}

/// The record length in bytes for which ratios are reported.
const RECORD_BYTES: usize = 4096;

/// The name of each ratio, the family whose rate is the divisor (the dividend is the rate of the
/// append log), and the number of writers.
const RATIOS: &[(&str, &str, usize)] = &[
    ("log_vs_raw_1w", RAW, 1),
    ("log_vs_growing_file_1w", GROWING, 1),
    ("log_vs_okaywal_16w", "okaywal", 16),
    ("log_vs_walrus_16w", "walrus", 16),
    ("log_vs_raft_engine_16w", "raft-engine", 16),
    ("log_vs_rocksdb_16w", "rocksdb", 16),
    ("log_vs_sqlite_16w", "sqlite", 16),
];

fn add_ratios(
    contest: &Contest<Competitor, Round>,
    writers: usize,
    record_bytes: usize,
    report: &mut Report,
) {
    let is_load = |of: usize| record_bytes == RECORD_BYTES && writers == of;
    for (key, family, _) in RATIOS.iter().filter(|(_, _, writers)| is_load(*writers)) {
        let rates = rates_of(contest, OURS).zip(rates_of(contest, family));
        report.ratio(*key, rates.and_then(|(ours, theirs)| Ratio::of(ours, theirs)));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::competitor::BAR;
    use super::*;
    use crate::contest::columns;
    use crate::host::Host;

    /// Returns competitors with these rates, each measured for one second; a rate of 0 is a failed
    /// round.
    pub(crate) fn contest(writers: usize, rates: &[(&str, &[f64])]) -> Contest<Competitor, Round> {
        let competitor = |(name, _): &(&str, &[f64])| Competitor {
            name: (*name).to_owned(),
            kind: Kind::Rival,
            writers,
            record_bytes: 4096,
            group: String::new(),
        };
        let mut contest = Contest::new(FIELDS, rates.iter().map(competitor));
        for (which, (_, rates)) in rates.iter().enumerate() {
            for appends in rates.iter().copied() {
                let sample = Sample { appends, seconds: 1.0, ..Sample::default() };
                let measured = Outcome::Measured(Round { sample });
                let failed = Outcome::Skipped("no space left".to_owned());
                contest.record(which, if appends > 0.0 { measured } else { failed });
            }
        }
        contest
    }

    fn report() -> Report {
        Report::new("log", Host::default(), columns(FIELDS), BAR)
    }

    #[test]
    fn ratios_are_ours_over_theirs() {
        let mut report = report();
        let one = contest(
            1,
            &[
                (OURS, &[90.0, 95.0, 100.0]),
                ("raw/dsync", &[100.0, 100.0, 100.0]),
                (GROWING, &[19.0, 19.0, 19.0]),
                ("okaywal", &[1.0, 1.0, 1.0]),
            ],
        );
        let many = contest(
            16,
            &[
                (OURS, &[800.0, 800.0]),
                ("sqlite", &[20.0, 20.0]),
                ("sqlite/connection-each", &[40.0, 40.0]),
                ("rocksdb", &[0.0, 0.0]),
            ],
        );
        add_ratios(&one, 1, 4096, &mut report);
        add_ratios(&many, 16, 4096, &mut report);
        let expected =
            [("log_vs_growing_file_1w", 5.0), ("log_vs_raw_1w", 0.95), ("log_vs_sqlite_16w", 20.0)];
        assert_eq!(report.values(), expected.map(|(key, ratio)| (key.to_owned(), ratio)).into());
    }

    #[test]
    fn rows_have_figures_or_a_reason() {
        let contest = contest(16, &[(OURS, &[3.0, 1.0, 2.0]), ("failed", &[0.0])]);
        let mut report = report();
        contest.report(&mut report, "", |_| String::new());
        let of = |key| report.value(&report.rows[0], key).unwrap().number();
        assert_eq!((of("writers"), of("record_bytes")), (Some(16.0), Some(4096.0)));
        assert_eq!((of("appends_per_s"), of("appends_per_s_min")), (Some(2.0), Some(1.0)));
        assert_eq!((of("appends_per_s_max"), of("appends")), (Some(3.0), Some(2.0)));
        assert_eq!(of("p50_us"), None);
        assert_eq!(report.rows[1].state.as_deref(), Some("no space left"));
    }
}
