//! Runs the rounds of all competitors under each load, and reports rows and ratios.

use std::time::Duration;

use haul_disk::{Device, error_chain};
use haul_measure::{Error, Result, Watcher, turns};

use super::competitor::{Competitor, FIELDS, Kind, Round};
use super::contender::{Contender, Failure};
use super::drive::{Load, drive};
use super::floor::{GROWING, OURS, RAW, kept, rate_of};
use super::options::Options;
use super::ours::Ours;
use super::raw::{Raw, RawMode};
use super::rivals::{FAMILIES, NOT_BUILT, PAGES, Rivals, SMALL_FILES};
use super::sample::Sample;
use super::scratch::Scratch;
use crate::contest::{Contest, Outcome};
use crate::report::Report;

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

/// The numbers of the rounds of one load: those whose results are used, and all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CountedRounds {
    counted: usize,
    all: usize,
}

impl CountedRounds {
    /// `true` if the results of less than half of the rounds are used: the speed of the disk changed
    /// so much that no ratio of two rates is reported.
    fn is_noise(self) -> bool {
        self.counted * 2 < self.all
    }

    fn note(self, writers: usize, record_bytes: usize) -> String {
        let Self { counted, all } = self;
        let verdict = if self.is_noise() { "; no ratios, the result is noise" } else { "" };
        format!(
            "{record_bytes} bytes, {writers} writers: {counted} of {all} rounds count; the floor of \
             the others was more than a fifth off the median{verdict}"
        )
    }
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
        for record_bytes in self.options.sizes.iter().copied() {
            for writers in self.options.writers.iter().copied() {
                let (contest, counted) = self.contest(writers, record_bytes)?;
                contest.report(report, "", |competitor| competitor.group.clone());
                report.notes.push(counted.note(writers, record_bytes));
                if !counted.is_noise() {
                    add_ratios(&contest, writers, record_bytes, report);
                }
            }
        }
        Ok(())
    }

    /// Measures all competitors under one load. Dropped rounds are replaced by further rounds, but
    /// at most twice the configured number of rounds are run.
    fn contest(
        &self,
        writers: usize,
        record_bytes: usize,
    ) -> Result<(Contest<Competitor, Round>, CountedRounds)> {
        let wanted = self.options.rounds;
        let all = self.competitors(writers, record_bytes);
        let measured = all.iter().filter(|competitor| competitor.kind != Kind::Missing).count();
        let mut contest = Contest::new(FIELDS, all);
        let mut rounds = 0;
        for turn in turns(wanted * 2, measured) {
            let is_first = turn.done % measured == 0;
            if is_first && turn.round >= wanted && kept(&contest, turn.round).len() >= wanted {
                break;
            }
            let competitor = contest.entries[turn.which].strategy.clone();
            let what = format!("{}: {}", competitor.group, competitor.name);
            self.watcher.check()?;
            self.watcher.step(turn.done.min(turn.of / 2), turn.of / 2, &what);
            let outcome = match self.measure(&competitor)? {
                Ok(sample) => Outcome::Measured(Round { number: turn.round, sample }),
                Err(failure) => Outcome::Skipped(error_chain(&*failure)),
            };
            contest.record(turn.which, outcome);
            rounds = turn.round + 1;
        }
        let kept = kept(&contest, rounds);
        drop_rounds(&mut contest, &kept);
        Ok((contest, CountedRounds { counted: kept.len(), all: rounds }))
    }

    fn competitors(&self, writers: usize, record_bytes: usize) -> Vec<Competitor> {
        let group = format!("{record_bytes} bytes, {writers} writers");
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

/// Drops the rounds that are not in `kept`, and stores the reason for each row left without rounds.
fn drop_rounds(contest: &mut Contest<Competitor, Round>, kept: &[usize]) {
    for which in 0..contest.entries.len() {
        let entry = &mut contest.entries[which];
        let was_measured = !entry.rounds.is_empty();
        entry.rounds.retain(|round| kept.contains(&round.number));
        let reason = match entry.strategy.kind {
            Kind::Missing => NOT_BUILT,
            _ if was_measured && entry.rounds.is_empty() => "no round counts: the floor moved",
            _ => continue,
        };
        contest.record(which, Outcome::Skipped(reason.to_owned()));
    }
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
        let rates = rate_of(contest, OURS).zip(rate_of(contest, family));
        report.ratio(*key, rates.map(|(ours, theirs)| ours / theirs));
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
            for (number, appends) in rates.iter().copied().enumerate() {
                let sample = Sample { appends, seconds: 1.0, ..Sample::default() };
                let measured = Outcome::Measured(Round { number, sample });
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
        assert_eq!(report.ratios, expected.map(|(key, ratio)| (key.to_owned(), ratio)).into());
    }

    #[test]
    fn less_than_half_of_the_rounds_are_noise() {
        for (counted, all, is_noise) in
            [(5, 5, false), (3, 6, false), (2, 6, true), (2, 5, true), (0, 1, true), (0, 0, false)]
        {
            let rounds = CountedRounds { counted, all };
            assert_eq!(rounds.is_noise(), is_noise, "{counted} of {all}");
            let note = rounds.note(16, 4096);
            assert_eq!(note.contains("no ratios"), is_noise, "{note}");
            assert!(note.contains(&format!("{counted} of {all} rounds count")), "{note}");
        }
    }

    #[test]
    fn rows_have_figures_or_a_reason() {
        let mut contest =
            contest(16, &[(OURS, &[3.0, 1.0, 2.0]), ("failed", &[0.0]), ("moved", &[1.0])]);
        drop_rounds(&mut contest, &[0, 1, 2]);
        drop_rounds(&mut contest, &[0, 1, 2]);
        let mut report = report();
        contest.report(&mut report, "", |_| String::new());
        let of = |key| report.value(&report.rows[0], key).unwrap().number();
        assert_eq!((of("writers"), of("record_bytes")), (Some(16.0), Some(4096.0)));
        assert_eq!((of("appends_per_s"), of("appends_per_s_min")), (Some(2.0), Some(1.0)));
        assert_eq!((of("appends_per_s_max"), of("appends")), (Some(3.0), Some(2.0)));
        assert_eq!(of("p50_us"), None);
        assert_eq!(report.rows[1].state.as_deref(), Some("no space left"));
        drop_rounds(&mut contest, &[1, 2]);
        let row = contest.row(&contest.entries[2], "", |_| String::new());
        assert_eq!(row.state.as_deref(), Some("no round counts: the floor moved"));
    }
}
