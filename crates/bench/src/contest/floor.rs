//! Drops the rounds whose floor moved: the floor of a round is the result of the raw device, so the
//! device itself was faster or slower during such a round.

use std::collections::BTreeMap;

use haul_measure::{Result, Spread, turns};

use super::{Contest, Figure, Outcome, Stage};
use crate::report::Samples;

/// The largest accepted deviation of a round's floor from the median of all floors, as a fraction.
const DEVIATION_MAX: f64 = 0.2;

/// The numbers of rounds whose results are used, and of all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountedRounds {
    pub(crate) counted: usize,
    pub(crate) all: usize,
}

impl CountedRounds {
    /// Returns the note on the rounds of `what`, such as "4096 bytes, 16 writers".
    pub(crate) fn note(self, what: &str) -> String {
        let Self { counted, all } = self;
        format!(
            "{what}: {counted} of {all} rounds count; the floor of the others was more than a fifth \
             off the median"
        )
    }
}

impl<S, R> Contest<S, R> {
    /// Measures as [`Self::run`] does, and drops the rounds whose floor is not near the median.
    /// Dropped rounds are replaced by further rounds, but at most twice the number of rounds of the
    /// stage are run. `is_floor` selects the strategies of the floor; the best of their `rate` in a
    /// round is its floor.
    pub(crate) fn run_above_floor(
        &mut self,
        stage: &Stage<'_>,
        is_floor: impl Fn(&S) -> bool,
        rate: Figure<R>,
        mut measure: impl FnMut(&S) -> Result<Outcome<R>>,
    ) -> Result<CountedRounds> {
        let mut all = 0;
        for turn in turns(stage.rounds * 2, self.entries.len()) {
            let is_first = turn.done % self.entries.len() == 0;
            if is_first && all >= stage.rounds && self.kept(&is_floor, rate).len() >= stage.rounds {
                break;
            }
            let entry = &self.entries[turn.which];
            let done = turn.done.min(turn.of / 2);
            stage.step(haul_measure::Turn { done, of: turn.of / 2, ..turn }, &entry.name)?;
            let outcome = measure(&entry.strategy)?;
            self.record(turn.which, outcome);
            all = turn.round + 1;
        }
        let kept = self.kept(&is_floor, rate);
        self.retain(&kept);
        Ok(CountedRounds { counted: kept.len(), all })
    }

    /// Returns the best rate in each round of the strategies that `selected` accepts.
    pub(crate) fn best_of_rounds(
        &self,
        name: &str,
        selected: impl Fn(&S) -> bool,
        rate: Figure<R>,
    ) -> Samples {
        let mut best: BTreeMap<usize, f64> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| selected(&entry.strategy)) {
            for (number, rate) in entry.numbered().filter_map(|it| Some((it.0, rate(it.1)?))) {
                let best = best.entry(number).or_insert(rate);
                *best = best.max(rate);
            }
        }
        Samples { name: name.to_owned(), rounds: best }
    }

    /// Returns the numbers of the rounds whose floor is near the median of all floors. If no floor
    /// was measured, returns the numbers of all rounds.
    pub(crate) fn kept(&self, is_floor: impl Fn(&S) -> bool, rate: Figure<R>) -> Vec<usize> {
        let floors = self.best_of_rounds("floor", is_floor, rate).rounds;
        let rates: Vec<_> = floors.values().copied().collect();
        let Some(Spread { median, .. }) = Spread::of(&rates) else {
            let all = self.entries.iter().map(|entry| entry.outcomes).max();
            return (0..all.unwrap_or(0)).collect();
        };
        let is_close = |floor: f64| (floor / median - 1.0).abs() <= DEVIATION_MAX;
        floors.into_iter().filter(|(_, floor)| is_close(*floor)).map(|(number, _)| number).collect()
    }

    /// Drops the rounds that are not in `kept`, and stores the reason for each row left without
    /// rounds.
    pub(crate) fn retain(&mut self, kept: &[usize]) {
        for entry in self.entries.iter_mut().filter(|entry| !entry.rounds.is_empty()) {
            let mut numbers = entry.numbers.iter();
            entry.rounds.retain(|_| numbers.next().is_some_and(|number| kept.contains(number)));
            entry.numbers.retain(|number| kept.contains(number));
            if entry.rounds.is_empty() {
                entry.drop_all("no round counts: the floor moved");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Field;

    const FIELDS: &[Field<&str, f64>] = &[];

    /// Returns a contest with these rates; a rate of 0 is a failed round.
    fn contest(rates: &[(&'static str, &[f64])]) -> Contest<&'static str, f64> {
        let mut contest = Contest::new(FIELDS, rates.iter().map(|one| one.0));
        let rounds = |rates: &[f64]| {
            rates.iter().map(|it| Some(*it).filter(|it| *it > 0.0)).collect::<Vec<_>>()
        };
        contest.record_all(rates.iter().map(|one| rounds(one.1)));
        contest
    }

    fn rate(rate: &f64) -> Option<f64> {
        Some(*rate)
    }

    fn is_raw(name: &&str) -> bool {
        name.starts_with("raw")
    }

    #[test]
    fn rounds_with_a_moved_floor_are_dropped() {
        for (sync, dsync, expected) in [
            (&[100.0, 100.0, 100.0][..], &[90.0, 90.0, 90.0][..], &[0, 1, 2][..]),
            // In each round the faster mode is the floor, which does not change.
            (&[100.0, 50.0, 100.0], &[90.0, 100.0, 90.0], &[0, 1, 2]),
            (&[100.0, 79.0, 100.0], &[1.0, 1.0, 1.0], &[0, 2]),
            (&[100.0, 121.0, 120.0, 99.0, 98.0], &[1.0; 5], &[0, 2, 3, 4]),
            (&[100.0, 0.0, 100.0], &[0.0, 0.0, 0.0], &[0, 2]),
        ] {
            let contest = contest(&[("raw/fdatasync", sync), ("raw/dsync", dsync)]);
            assert_eq!(contest.kept(is_raw, rate), expected, "{sync:?} {dsync:?}");
        }
        assert_eq!(contest(&[("log", &[1.0, 9.0])]).kept(is_raw, rate), [0, 1], "no floor");
    }

    #[test]
    fn rows_without_rounds_have_a_reason() {
        let mut contest = contest(&[("log", &[3.0, 1.0]), ("raw", &[1.0]), ("failed", &[0.0])]);
        contest.retain(&[1]);
        let row = |which: usize| contest.row(&contest.entries[which], "", |_| String::new()).state;
        assert_eq!(contest.entries[0].rounds, [1.0]);
        assert_eq!(row(1).as_deref(), Some("no round counts: the floor moved"));
        assert_eq!(row(2).as_deref(), Some("no space left"));
    }

    #[test]
    fn dropped_rounds_are_replaced() {
        let mut contest = Contest::new(FIELDS, ["raw", "log"]);
        let mut floors = [100.0, 300.0, 100.0, 100.0].into_iter();
        let stage = Stage::only(3, &haul_measure::Silent);
        let rounds = contest.run_above_floor(&stage, is_raw, rate, |name| {
            let rate = if is_raw(name) { floors.next().unwrap() } else { 1.0 };
            Ok(Outcome::Measured(rate))
        });
        assert_eq!(rounds.unwrap(), CountedRounds { counted: 3, all: 4 });
        let rounds = contest.samples(&"log", rate).unwrap().rounds;
        assert_eq!(rounds.into_keys().collect::<Vec<_>>(), [0, 2, 3]);
    }
}
