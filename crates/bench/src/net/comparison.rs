//! Compares servers under several workloads in interleaved rounds. A rival, a server other than
//! `haul`, that fails once is not measured again.

use std::fmt::{self, Display, Formatter};

use haul_disk::error_chain;

use super::sample::{Figure, Sample};
use super::server::Server;
use crate::contest::{Contest, Entry, Field, Outcome, Stage};
use crate::report::{Ratio, Report, Value};
use haul_measure::{Error, Result};

/// A server program in one of its configurations.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    /// The name of the program; `haul` is the program under test.
    pub(crate) program: &'static str,
    /// The name of the variant in ratios.
    pub(crate) key: &'static str,
    /// The configuration, as shown in rows.
    pub(crate) setting: &'static str,
    /// The arguments of the program, or lines of its configuration file.
    pub(crate) config: &'static str,
    /// `true` if the server starts a process for each connection.
    pub(crate) forks: bool,
}

impl Variant {
    pub(crate) const fn new(
        program: &'static str,
        key: &'static str,
        setting: &'static str,
        config: &'static str,
    ) -> Self {
        Self { program, key, setting, config, forks: false }
    }

    pub(crate) fn is_haul(&self) -> bool {
        self.program == "haul"
    }
}

/// A workload, for which the report has one row per server.
pub(crate) trait Workload: Copy + PartialEq + Display + 'static {
    /// Returns the heading of the table with the rows of the workload.
    fn table(self) -> &'static str;

    /// Returns the figure by which servers are compared under the workload.
    fn figure(self) -> Figure;
}

/// A workload and a server, whose measurements form one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Series<W> {
    pub(crate) workload: W,
    pub(crate) variant: &'static Variant,
    /// `true` for the second series of the first server, which is measured twice in each round: the
    /// difference between the two series is noise.
    pub(crate) repeated: bool,
}

impl<W: Display> Series<W> {
    pub(crate) fn workload(&self) -> Value {
        self.workload.to_string().into()
    }

    pub(crate) fn program(&self) -> Value {
        self.variant.program.into()
    }

    pub(crate) fn setting(&self) -> Value {
        let suffix = if self.repeated { ", again" } else { "" };
        format!("{}{suffix}", self.variant.setting).into()
    }
}

impl<W: Display> Display for Series<W> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let suffix = if self.repeated { ", again" } else { "" };
        let Variant { program, setting, .. } = self.variant;
        write!(f, "{}: {program}, {setting}{suffix}", self.workload)
    }
}

/// One server of a comparison.
pub(crate) struct Contender {
    pub(crate) variant: &'static Variant,
    pub(crate) server: Option<Server>,
    /// The reason why the server is no longer measured; `None` if it has not failed.
    pub(crate) failure: Option<String>,
}

impl Contender {
    /// Returns the running server.
    ///
    /// # Errors
    /// [`Error::Missing`] if the server was not started.
    pub(crate) fn server(&self) -> Result<&Server> {
        let missing = || Error::Missing(format!("{} does not run", self.variant.program));
        self.server.as_ref().ok_or_else(missing)
    }

    /// Calls `action` unless the server has failed before. A failure of `haul` and a cancellation
    /// are returned as errors; the failure of a rival is stored, and shown in its rows.
    fn attempt<T>(&mut self, action: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.failure.is_some() {
            return Ok(None);
        }
        match action(self) {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.variant.is_haul() || matches!(error, Error::Cancelled) => Err(error),
            Err(error) => {
                self.failure = Some(error_chain(&error));
                Ok(None)
            }
        }
    }
}

/// The compared servers, and their results under the workloads measured so far.
pub(crate) struct Comparison<W: 'static> {
    pub(crate) contenders: Vec<Contender>,
    fields: &'static [Field<Series<W>, Sample>],
    results: Contest<Series<W>, Sample>,
}

impl<W: Workload> Comparison<W> {
    pub(crate) fn new(
        fields: &'static [Field<Series<W>, Sample>],
        variants: impl IntoIterator<Item = &'static Variant>,
    ) -> Self {
        let contender = |variant| Contender { variant, server: None, failure: None };
        let contenders = variants.into_iter().map(contender).collect();
        Self { contenders, fields, results: Contest::new(fields, []) }
    }

    /// Calls `action` once for each server that has not failed, and returns the results of the
    /// calls that succeeded.
    pub(crate) fn for_each<T>(
        &mut self,
        mut action: impl FnMut(&mut Contender) -> Result<T>,
    ) -> Result<Vec<T>> {
        let attempts = self.contenders.iter_mut().map(|one| one.attempt(&mut action));
        Ok(attempts.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Measures a workload with the servers that `selected` accepts. The first accepted server is
    /// measured twice in each round.
    pub(crate) fn run(
        &mut self,
        workload: W,
        stage: &Stage<'_>,
        selected: impl Fn(&Variant) -> bool,
        mut action: impl FnMut(&mut Contender) -> Result<Sample>,
    ) -> Result<()> {
        let variants = self.contenders.iter().map(|one| one.variant).filter(|one| selected(one));
        let series = |variant| Series { workload, variant, repeated: false };
        let mut all: Vec<_> = variants.map(series).collect();
        if let Some(first) = all.first().copied() {
            all.insert(1, Series { repeated: true, ..first });
        }
        let mut contest = Contest::new(self.fields, all);
        contest.run(stage, |series| {
            let mut contenders = self.contenders.iter_mut();
            let Some(contender) = contenders.find(|one| one.variant == series.variant) else {
                return Outcome::skipped("");
            };
            let Some(sample) = contender.attempt(&mut action)? else {
                return Outcome::skipped(contender.failure.as_deref().unwrap_or_default());
            };
            let primary = workload.figure()(&sample);
            Ok(Outcome::Measured(Sample { primary, ..sample }))
        })?;
        // If a server failed in any round, its earlier rounds are discarded, and its row shows the
        // failure.
        for which in 0..contest.entries.len() {
            let variant = contest.entries[which].strategy.variant;
            let failed = self.contenders.iter().find(|one| one.variant == variant);
            if let Some(reason) = failed.and_then(|one| one.failure.clone()) {
                contest.entries[which].drop_all(&reason);
            }
        }
        self.results.entries.append(&mut contest.entries);
        Ok(())
    }

    /// Appends a row for each series.
    pub(crate) fn report(&self, report: &mut Report) {
        let group = |series: &Series<W>| series.workload.to_string();
        report.rows.extend(
            self.results
                .entries
                .iter()
                .map(|entry| self.results.row(entry, entry.strategy.workload.table(), group)),
        );
    }

    /// Returns the measured series of a workload, except the repeated series of the first server.
    pub(crate) fn measured(&self, workload: W) -> impl Iterator<Item = &Entry<Series<W>, Sample>> {
        self.results.entries.iter().filter(move |entry| {
            let series = &entry.strategy;
            series.workload == workload && !series.repeated && !entry.rounds.is_empty()
        })
    }

    /// Returns the noise: the figure of the first server's repeated series divided by that of its
    /// first series.
    pub(crate) fn noise(&self, workload: W) -> Option<Ratio> {
        let first = self.measured(workload).next()?;
        let repeated = self
            .results
            .entries
            .iter()
            .find(|entry| entry.strategy == Series { repeated: true, ..first.strategy })?;
        repeated.ratio(first, workload.figure())
    }
}

/// Returns the series whose rounds have the smallest median of `figure`.
pub(crate) fn smallest<'a, W>(
    entries: impl Iterator<Item = &'a Entry<Series<W>, Sample>>,
    figure: Figure,
) -> Option<&'a Entry<Series<W>, Sample>> {
    let medians = entries.filter_map(|entry| Some((entry.median(figure)?, entry)));
    medians.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, entry)| entry)
}

/// Returns a number of bytes in the short form used in names of ratios: `64`, `4k`, `1m`.
pub(crate) fn short(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    impl<W: Workload> Comparison<W> {
        /// Adds a series with these rounds; a series without rounds has failed.
        pub(crate) fn add(&mut self, series: Series<W>, rounds: Vec<Sample>) {
            let primary = |sample| Sample { primary: series.workload.figure()(&sample), ..sample };
            let mut contest = Contest::new(self.fields, [series]);
            let rounds = rounds.into_iter().map(primary);
            rounds.for_each(|round| contest.record(0, Outcome::Measured(round)));
            contest.record(0, Outcome::Skipped("it failed".to_owned()));
            self.results.entries.append(&mut contest.entries);
        }
    }

    /// Panics unless `ratios` has each ratio in the table below `heading` of the page. `…` in a
    /// name of the table matches any text.
    pub(crate) fn check_documented(heading: &str, ratios: &BTreeMap<String, Ratio>) {
        let page = include_str!("../../../../docs/network-bench.md");
        let section = page.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
        let (_, table) = section.split_once("\n| ratio |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let names: Vec<_> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
        assert!(names.len() >= 10, "{names:?}");
        for name in names {
            let keys: Vec<_> = ratios.keys().collect();
            assert!(keys.iter().any(|key| matches(key, name)), "{name} is no ratio: {keys:?}");
        }
    }

    fn matches(key: &str, name: &str) -> bool {
        let Some((begin, rest)) = name.split_once('…') else { return key == name };
        let Some(behind) = key.strip_prefix(begin) else { return false };
        let ends = behind.char_indices().map(|(at, _)| at).chain([behind.len()]);
        ends.into_iter().any(|at| matches(&behind[at..], rest))
    }

    #[test]
    fn ellipsis_matches_any_text() {
        for (name, expected) in [
            ("a_1_vs_b", true),
            ("a_…", true),
            ("…_vs_b", true),
            ("…_1_…_b", true),
            ("a_1_vs", false),
            ("…_2_…", false),
        ] {
            assert_eq!(matches("a_1_vs_b", name), expected, "{name}");
        }
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Idle;

    impl Display for Idle {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str("idle")
        }
    }

    impl Workload for Idle {
        fn table(self) -> &'static str {
            "table"
        }

        fn figure(self) -> Figure {
            Sample::per_second
        }
    }

    static HAUL: Variant = Variant::new("haul", "haul", "default", "");
    static RIVAL: Variant = Variant::new("rival", "rival", "default", "");

    fn run(
        variants: [&'static Variant; 2],
        mut action: impl FnMut(&Variant) -> Result<()>,
    ) -> (Result<()>, Vec<(bool, usize)>) {
        let mut comparison = Comparison::new(&[], variants);
        let stage = Stage::only(2, &haul_measure::Silent);
        let result = comparison.run(
            Idle,
            &stage,
            |_| true,
            |contender| action(contender.variant).map(|()| Sample::default()),
        );
        let entries = comparison.results.entries.iter();
        (result, entries.map(|one| (one.strategy.repeated, one.rounds.len())).collect())
    }

    #[test]
    fn first_server_is_measured_twice() {
        let (result, rounds) = run([&HAUL, &RIVAL], |_| Ok(()));
        assert!(result.is_ok());
        assert_eq!(rounds, [(false, 2), (true, 2), (false, 2)]);
        let mut comparison = Comparison::<Idle>::new(&[], []);
        let stage = Stage::only(2, &haul_measure::Silent);
        comparison.run(Idle, &stage, |_| true, |_| Ok(Sample::default())).unwrap();
        assert!(comparison.results.entries.is_empty());
    }

    #[test]
    fn failed_rival_has_no_rounds_and_failed_haul_is_an_error() {
        let failed = || Err(Error::Missing("no".to_owned()));
        let mut left = 3;
        let (result, rounds) = run([&RIVAL, &HAUL], |variant| {
            left -= usize::from(!variant.is_haul());
            if left == 0 && !variant.is_haul() { failed() } else { Ok(()) }
        });
        assert!(result.is_ok());
        assert_eq!(rounds, [(false, 0), (true, 0), (false, 2)]);
        let (result, _) = run([&RIVAL, &HAUL], |one| if one.is_haul() { failed() } else { Ok(()) });
        assert!(matches!(result, Err(Error::Missing(_))));
        let (result, _) = run([&RIVAL, &HAUL], |_| Err(Error::Cancelled));
        assert!(matches!(result, Err(Error::Cancelled)));
    }

    #[test]
    fn lengths_have_short_names() {
        for (bytes, expected) in
            [(0, "0"), (64, "64"), (1000, "1000"), (16 << 10, "16k"), (3 << 20, "3m")]
        {
            assert_eq!(short(bytes), expected);
        }
    }
}
