//! Determines the floor of each round, which is the rate of durable writes to a plain file, and
//! selects the rounds whose floor is near the median. Performs no I/O.

use haul_measure::Spread;

use super::competitor::{Competitor, Round, rate};
use crate::contest::{Contest, Entry};

/// The largest accepted deviation of a round's floor from the median of all floors, as a fraction;
/// rounds that deviate more are dropped.
const DEVIATION_MAX: f64 = 0.2;

/// The name and family of the append log. A family is the part of a competitor's name before `/`.
pub(crate) const OURS: &str = "haul";
/// The family of durable overwrites of a plain file. In each round, the rate of its faster mode is
/// the floor.
pub(crate) const RAW: &str = "raw";
/// The family of buffered, synced appends to a plain file that grows.
pub(crate) const GROWING: &str = "growing-file";

type LogContest = Contest<Competitor, Round>;

/// Returns the numbers of those rounds, from 0 to `rounds` - 1, whose floor is near the median of
/// all floors. If no floor was measured, returns the numbers of all rounds.
pub(crate) fn kept(contest: &LogContest, rounds: usize) -> Vec<usize> {
    let floors: Vec<_> = (0..rounds).map(|round| best_rate(contest, RAW, round)).collect();
    let known: Vec<_> = floors.iter().copied().flatten().collect();
    let Some(Spread { median, .. }) = Spread::of(&known) else { return (0..rounds).collect() };
    let is_close = |floor: f64| (floor / median - 1.0).abs() <= DEVIATION_MAX;
    (0..rounds).filter(|round| floors[*round].is_some_and(is_close)).collect()
}

fn members<'a>(
    contest: &'a LogContest,
    family: &'a str,
) -> impl Iterator<Item = &'a Entry<Competitor, Round>> {
    contest.entries.iter().filter(move |entry| entry.strategy.family() == family)
}

/// Returns the best rate of a family in one round.
fn best_rate(contest: &LogContest, family: &str, number: usize) -> Option<f64> {
    let rounds = members(contest, family).flat_map(|entry| &entry.rounds);
    rounds.filter(|round| round.number == number).filter_map(rate).reduce(f64::max)
}

/// Returns the rate of a family. The rate of [`RAW`] is the median of the floors of all rounds; the
/// rate of any other family is the largest median of its configurations.
pub(crate) fn rate_of(contest: &LogContest, family: &str) -> Option<f64> {
    if family != RAW {
        return members(contest, family).filter_map(|entry| entry.median(rate)).reduce(f64::max);
    }
    let rounds = members(contest, RAW).flat_map(|entry| &entry.rounds).map(|round| round.number);
    let numbers: std::collections::BTreeSet<_> = rounds.collect();
    let best = numbers.into_iter().filter_map(|number| best_rate(contest, RAW, number));
    Spread::of(&best.collect::<Vec<_>>()).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::super::rounds::tests::contest;
    use super::*;

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
            let contest = contest(1, &[("raw/fdatasync", sync), ("raw/dsync", dsync)]);
            assert_eq!(kept(&contest, sync.len()), expected, "{sync:?} {dsync:?}");
        }
        assert_eq!(kept(&contest(1, &[(OURS, &[1.0, 9.0])]), 2), [0, 1], "no floor");
    }

    #[test]
    fn rate_of_a_rival_is_that_of_its_best_configuration() {
        let mut contest = contest(
            16,
            &[
                ("raw/a", &[100.0, 100.0, 200.0]),
                ("raw/b", &[10.0, 110.0, 10.0]),
                ("rival", &[5.0, 7.0, 1000.0]),
                ("rival/other", &[9.0, 0.0, 1000.0]),
                ("rival-like", &[99.0, 99.0, 99.0]),
            ],
        );
        let kept = kept(&contest, 3);
        assert_eq!(kept, [0, 1], "the floor of the last round moved");
        for entry in &mut contest.entries {
            entry.rounds.retain(|round| kept.contains(&round.number));
        }
        assert_eq!(rate_of(&contest, "rival"), Some(9.0), "9 alone, and the median of 5 and 7");
        assert_eq!(rate_of(&contest, RAW), Some(105.0));
        assert_eq!(rate_of(&contest, "unknown"), None);
    }
}
