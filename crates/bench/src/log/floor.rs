//! Names the families of competitors, and selects the rates of a family: the floor of each round is
//! the rate of durable writes to a plain file. Performs no I/O.

use super::competitor::{Competitor, Round, rate};
use crate::contest::{Contest, best_of_families};
use crate::report::Samples;

/// The name and family of the append log. A family is the part of a competitor's name before `/`.
pub(crate) const OURS: &str = "haul";
/// The family of durable overwrites of a plain file. In each round, the rate of its faster mode is
/// the floor.
pub(crate) const RAW: &str = "raw";
/// The family of buffered, synced appends to a plain file that grows.
pub(crate) const GROWING: &str = "growing-file";

/// Returns the rates of a family. The rates of [`RAW`] are the floors; the rates of any other
/// family are those of its configuration with the largest median.
pub(crate) fn rates_of(contest: &Contest<Competitor, Round>, family: &str) -> Option<Samples> {
    if family == RAW {
        return Some(contest.best_of_rounds(RAW, |it| it.family() == RAW, rate));
    }
    let members = contest.entries.iter().filter(|entry| entry.strategy.family() == family);
    best_of_families(members, |_| family.to_owned(), rate).get(family)?.samples(rate)
}

#[cfg(test)]
mod tests {
    use super::super::rounds::tests::contest;
    use super::*;

    #[test]
    fn rates_of_a_rival_are_those_of_its_best_configuration() {
        let contest = contest(
            16,
            &[
                ("raw/a", &[100.0, 100.0, 200.0]),
                ("raw/b", &[10.0, 110.0, 10.0]),
                ("rival", &[5.0, 7.0, 8.0]),
                ("rival/other", &[9.0, 0.0, 9.0]),
                ("rival-like", &[99.0, 99.0, 99.0]),
            ],
        );
        let rates = |family| -> Option<Vec<f64>> {
            Some(rates_of(&contest, family)?.rounds.into_values().collect())
        };
        assert_eq!(rates("rival"), Some(vec![9.0, 9.0]));
        assert_eq!(rates(RAW), Some(vec![100.0, 110.0, 200.0]));
        assert_eq!(rates("unknown"), None);
    }
}
