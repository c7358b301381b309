//! Measures strategies, the competing methods for one job, in interleaved rounds, and converts the
//! results to rows of a report.

mod floor;

use std::collections::BTreeMap;

use haul_measure::{Latencies, Result, Spread, Turn, Watcher, turns};

use crate::host::Host;
use crate::report::{Column, Ratio, Report, Row, Samples, Value};

/// A function that returns a figure of one round, or `None` if the figure could not be measured.
pub(crate) type Figure<R> = fn(&R) -> Option<f64>;

/// A function that returns a value of all rounds of a strategy, such as a sum or a text.
pub(crate) type Total<R> = fn(&[R]) -> Value;

/// One column of the report, or three for a spread, and the function that computes their values
/// from the results of a strategy.
pub(crate) struct Field<S, R> {
    column: Column,
    source: Source<S, R>,
}

enum Source<S, R> {
    Label(fn(&S) -> Value),
    Median(Figure<R>),
    /// The median of the rounds, followed by two columns of this [`Column::rank`]: the smallest and
    /// the largest value of a round.
    Spread(Figure<R>, u8),
    Percentile(f64, fn(&R) -> &Latencies),
    Total(Total<R>),
    Sum(fn(&R) -> u64),
}

impl<S, R> Field<S, R> {
    /// Returns a field with a property of the strategy, as text.
    pub(crate) const fn label(key: &'static str, head: &'static str, of: fn(&S) -> Value) -> Self {
        Column::text(key, head).label(of)
    }

    fn columns(&self) -> Vec<Column> {
        let column = self.column;
        match self.source {
            Source::Spread(_, rank) => {
                let bound = |suffix, head| Column { suffix, head, rank, ..column };
                vec![column, bound("_min", "min"), bound("_max", "max")]
            }
            _ => vec![column],
        }
    }

    /// Returns the property of a strategy if the field is a label that is always shown.
    fn name(&self, strategy: &S) -> Option<String> {
        match (&self.source, self.column.rank) {
            (Source::Label(of), 0) => match of(strategy) {
                Value::Text(text) => Some(text),
                Value::Number(number) => Some(format!("{number} {}", self.column.head)),
                Value::NotMeasured => None,
            },
            _ => None,
        }
    }

    fn values(&self, entry: &Entry<S, R>) -> Vec<Value> {
        match self.source {
            Source::Label(of) => vec![of(&entry.strategy)],
            Source::Median(of) => vec![entry.median(of).into()],
            Source::Percentile(percent, of) => vec![entry.percentile_us(percent, of).into()],
            Source::Spread(of, _) => {
                let spread = entry.spread(of);
                let values = spread.map(|s| [s.median, s.min, s.max].map(Value::from));
                values.unwrap_or([const { Value::NotMeasured }; 3]).to_vec()
            }
            _ if entry.rounds.is_empty() => vec![Value::NotMeasured],
            Source::Total(of) => vec![of(&entry.rounds)],
            Source::Sum(of) => vec![entry.rounds.iter().map(of).sum::<u64>().into()],
        }
    }
}

/// Returns a column of numbers, of which one of the following methods makes a field.
pub(crate) const fn number(key: &'static str, head: &'static str, decimals: u8) -> Column {
    Column::number(key, head, decimals)
}

impl Column {
    const fn from<S, R>(self, source: Source<S, R>) -> Field<S, R> {
        Field { column: self, source }
    }

    /// Returns a field with a property of the strategy.
    pub(crate) const fn label<S, R>(self, of: fn(&S) -> Value) -> Field<S, R> {
        self.from(Source::Label(of))
    }

    /// Returns a field with the median of the rounds.
    pub(crate) const fn median<S, R>(self, of: Figure<R>) -> Field<S, R> {
        self.from(Source::Median(of))
    }

    /// Returns a field with the median of the rounds, followed by two columns of the
    /// [`Column::rank`] `rank`: the smallest and the largest value of a round.
    pub(crate) const fn spread<S, R>(self, rank: u8, of: Figure<R>) -> Field<S, R> {
        self.from(Source::Spread(of, rank))
    }

    /// Returns a field with a percentile of the latencies of all rounds, in microseconds.
    pub(crate) const fn percentile_us<S, R>(
        self,
        percent: f64,
        of: fn(&R) -> &Latencies,
    ) -> Field<S, R> {
        self.from(Source::Percentile(percent, of))
    }

    /// Returns a field with a value computed from all rounds together.
    pub(crate) const fn total<S, R>(self, of: Total<R>) -> Field<S, R> {
        self.from(Source::Total(of))
    }

    /// Returns a field with the sum of a count over the rounds.
    pub(crate) const fn sum<S, R>(self, of: fn(&R) -> u64) -> Field<S, R> {
        self.from(Source::Sum(of))
    }
}

/// Returns a report of this machine without rows, with the columns of `fields` and a note.
pub(crate) fn new_report<S, R>(bench: &str, fields: &[Field<S, R>], note: String) -> Report {
    let columns: Vec<_> = fields.iter().flat_map(Field::columns).collect();
    let mut report = Report::new(bench, Host::here(), columns);
    report.notes.push(note);
    report
}

/// The result of one strategy in one round.
pub(crate) enum Outcome<R> {
    /// The figures of the round.
    Measured(R),
    /// The reason why the strategy cannot be measured on this machine.
    Skipped(String),
}

impl<R> Outcome<R> {
    /// Returns the outcome of a strategy that cannot be measured.
    pub(crate) fn skipped(reason: &str) -> Result<Self> {
        Ok(Self::Skipped(reason.to_owned()))
    }
}

/// One strategy with its results so far.
pub(crate) struct Entry<S, R> {
    pub(crate) strategy: S,
    /// The labels of the strategy that are always shown.
    pub(crate) name: String,
    pub(crate) rounds: Vec<R>,
    /// The number of the round of each element of `rounds`.
    numbers: Vec<usize>,
    /// The number of outcomes recorded so far.
    outcomes: usize,
    skipped: Option<String>,
}

impl<S, R> Entry<S, R> {
    fn record(&mut self, outcome: Outcome<R>) {
        match outcome {
            Outcome::Measured(round) => {
                self.rounds.push(round);
                self.numbers.push(self.outcomes);
            }
            Outcome::Skipped(reason) => self.skipped = Some(reason),
        }
        self.outcomes += 1;
    }

    /// Drops all rounds, and stores the reason.
    pub(crate) fn drop_all(&mut self, reason: &str) {
        self.rounds.clear();
        self.numbers.clear();
        self.skipped = Some(reason.to_owned());
    }

    /// Returns the spread of a figure over the rounds, or `None` if the figure is missing in any
    /// round: readers would take a spread of only some rounds for a spread of all rounds.
    pub(crate) fn spread(&self, of: Figure<R>) -> Option<Spread> {
        let numbers: Option<Vec<_>> = self.rounds.iter().map(of).collect();
        Spread::of(&numbers?)
    }

    /// Returns the median of a figure over the rounds.
    pub(crate) fn median(&self, of: Figure<R>) -> Option<f64> {
        self.spread(of).map(|spread| spread.median)
    }

    /// Returns the rounds with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &R)> {
        self.numbers.iter().copied().zip(&self.rounds)
    }

    fn percentile_us(&self, percent: f64, of: fn(&R) -> &Latencies) -> Option<f64> {
        let mut all = Latencies::default();
        self.rounds.iter().for_each(|round| all.add(of(round)));
        all.percentile_us(percent)
    }

    /// Returns `true` if the strategy could not be measured in a round.
    pub(crate) fn is_skipped(&self) -> bool {
        self.skipped.is_some()
    }

    /// Returns a figure of each round, or `None` if the figure is missing in any round.
    pub(crate) fn samples(&self, of: Figure<R>) -> Option<Samples> {
        let rounds = self.numbered().map(|(number, round)| Some((number, of(round)?)));
        Some(Samples { name: self.name.clone(), rounds: rounds.collect::<Option<_>>()? })
    }

    /// Returns the ratio of a figure to the same figure of `base`.
    pub(crate) fn ratio(&self, base: &Self, of: Figure<R>) -> Option<Ratio> {
        Ratio::of(self.samples(of)?, base.samples(of)?)
    }
}

/// Returns the entry with the greatest median of `rate` in each family of entries.
pub(crate) fn best_of_families<'a, S, R>(
    entries: impl Iterator<Item = &'a Entry<S, R>>,
    family: impl Fn(&Entry<S, R>) -> String,
    rate: Figure<R>,
) -> BTreeMap<String, &'a Entry<S, R>> {
    let mut best: BTreeMap<String, &Entry<S, R>> = BTreeMap::new();
    for entry in entries.filter(|entry| entry.median(rate).is_some()) {
        let known = best.entry(family(entry)).or_insert(entry);
        if entry.median(rate) > known.median(rate) {
            *known = entry;
        }
    }
    best
}

/// A stage of a benchmark, with the numbers from which its progress is computed.
pub(crate) struct Stage<'a> {
    /// The name of the stage in messages, such as the name of the measured file system; may be
    /// empty.
    pub(crate) name: &'a str,
    /// The number of the stage, from 0.
    pub(crate) number: usize,
    /// The number of stages.
    pub(crate) of: usize,
    pub(crate) rounds: usize,
    pub(crate) watcher: &'a dyn Watcher,
}

impl<'a> Stage<'a> {
    /// Returns the stage of a benchmark that has only one stage.
    pub(crate) fn only(rounds: usize, watcher: &'a dyn Watcher) -> Self {
        Self { name: "", number: 0, of: 1, rounds, watcher }
    }

    /// Reports to the watcher that a measurement of `strategy` begins. `turn` is the place of this
    /// measurement in the order of all measurements.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`] once the watcher cancels.
    pub(crate) fn step(&self, turn: Turn, strategy: &str) -> Result<()> {
        let separator = if self.name.is_empty() { "" } else { ": " };
        let what = format!("{}{separator}{strategy}", self.name);
        self.watcher.step(self.number * turn.of + turn.done, self.of * turn.of, &what);
        self.watcher.check()
    }
}

/// Several strategies for the same job, and the results of each.
pub(crate) struct Contest<S: 'static, R: 'static> {
    fields: &'static [Field<S, R>],
    pub(crate) entries: Vec<Entry<S, R>>,
}

impl<S, R> Contest<S, R> {
    /// Returns a contest without results.
    pub(crate) fn new(
        fields: &'static [Field<S, R>],
        strategies: impl IntoIterator<Item = S>,
    ) -> Self {
        let entry = |strategy| {
            let name: Vec<_> = fields.iter().filter_map(|field| field.name(&strategy)).collect();
            let (name, rounds, numbers) = (name.join(", "), Vec::new(), Vec::new());
            Entry { strategy, name, rounds, numbers, outcomes: 0, skipped: None }
        };
        Self { fields, entries: strategies.into_iter().map(entry).collect() }
    }

    /// Adds the outcome of a round to the strategy with the index `which`.
    pub(crate) fn record(&mut self, which: usize, outcome: Outcome<R>) {
        self.entries[which].record(outcome);
    }

    /// Appends a row for each strategy to `report`, below the heading `table`. `group` returns the
    /// group of a row.
    pub(crate) fn report(&self, report: &mut Report, table: &str, group: fn(&S) -> String) {
        report.rows.extend(self.entries.iter().map(|entry| self.row(entry, table, group)));
    }

    /// Returns the row of one strategy.
    pub(crate) fn row(&self, entry: &Entry<S, R>, table: &str, group: fn(&S) -> String) -> Row {
        let values = self.fields.iter().flat_map(|field| field.values(entry)).collect();
        let row = Row::new(table, &group(&entry.strategy), values);
        match &entry.skipped {
            Some(reason) if entry.rounds.is_empty() => row.without_numbers(reason),
            _ => row,
        }
    }
}

impl<S: PartialEq, R> Contest<S, R> {
    /// Returns the ratio of a figure of `a` to that of `b`.
    pub(crate) fn ratio(&self, a: &S, b: &S, of: Figure<R>) -> Option<Ratio> {
        self.entry(a)?.ratio(self.entry(b)?, of)
    }

    /// Returns a figure of each round of a strategy.
    pub(crate) fn samples(&self, strategy: &S, of: Figure<R>) -> Option<Samples> {
        self.entry(strategy)?.samples(of)
    }

    /// Records the outcome of a strategy that is part of the contest.
    pub(crate) fn record_of(&mut self, strategy: &S, outcome: Outcome<R>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.strategy == *strategy) {
            entry.record(outcome);
        }
    }

    fn entry(&self, strategy: &S) -> Option<&Entry<S, R>> {
        self.entries.iter().find(|entry| entry.strategy == *strategy)
    }
}

impl<S, R> Contest<S, R> {
    /// Measures all strategies in each round; the order rotates from round to round.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], and the errors of `measure`.
    pub(crate) fn run(
        &mut self,
        stage: &Stage<'_>,
        measure: impl FnMut(&S) -> Result<Outcome<R>>,
    ) -> Result<()> {
        self.run_in(turns(stage.rounds, self.entries.len()), stage, measure)
    }

    /// Measures the strategies in the order of `turns`.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], and the errors of `measure`.
    pub(crate) fn run_in(
        &mut self,
        turns: impl Iterator<Item = Turn>,
        stage: &Stage<'_>,
        mut measure: impl FnMut(&S) -> Result<Outcome<R>>,
    ) -> Result<()> {
        for turn in turns {
            let entry = &self.entries[turn.which];
            stage.step(turn, &entry.name)?;
            let outcome = measure(&entry.strategy)?;
            self.record(turn.which, outcome);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<S, R> Contest<S, R> {
        /// Adds rounds to each strategy, in their order; `None` stands for a failure.
        pub(crate) fn record_all<I: IntoIterator<Item = Option<R>>>(
            &mut self,
            rounds: impl IntoIterator<Item = I>,
        ) {
            for (entry, rounds) in self.entries.iter_mut().zip(rounds) {
                let failed = || Outcome::Skipped("no space left".to_owned());
                rounds
                    .into_iter()
                    .for_each(|it| entry.record(it.map_or_else(failed, Outcome::Measured)));
            }
        }
    }

    const FIELDS: &[Field<&str, f64>] = &[
        Field::label("name", "name", |name| (*name).into()),
        number("rate", "rate", 0).spread(6, |round| Some(*round)),
        number("odd", "odd", 0).median(|round| (*round > 1.5).then_some(*round)),
        number("sum", "sum", 0).total(|rounds| rounds.iter().sum::<f64>().into()),
    ];

    fn contest() -> Contest<&'static str, f64> {
        let mut contest = Contest::new(FIELDS, ["slow", "fast", "missing"]);
        let mut next = 0.0;
        let stage = Stage::only(3, &haul_measure::Silent);
        contest
            .run(&stage, |name| {
                next += 1.0;
                match *name {
                    "missing" => Outcome::skipped("not installed"),
                    "fast" => Ok(Outcome::Measured(100.0 * next)),
                    _ => Ok(Outcome::Measured(next)),
                }
            })
            .unwrap();
        contest
    }

    #[test]
    fn rows_have_the_spread_of_the_rounds() {
        let mut report = new_report("b", FIELDS, String::new());
        contest().report(&mut report, "t", |name| (*name).to_owned());
        let of = |row: usize, key: &str| report.value(&report.rows[row], key)?.number();
        // The strategies run in the order: slow fast missing, fast missing slow, missing slow fast.
        let rates = ["rate", "rate_min", "rate_max"].map(|key| of(0, key));
        assert_eq!(rates, [6.0, 1.0, 8.0].map(Some));
        assert_eq!([of(0, "sum"), of(0, "odd"), of(1, "odd")], [Some(15.0), None, Some(400.0)]);
        assert_eq!(report.rows[2].state.as_deref(), Some("not installed"));
        assert_eq!(contest().samples(&"slow", |it| Some(*it)).unwrap().name, "slow");
        assert!(report.json().contains("\"rate_max\": 8"), "{}", report.json());
    }
}
