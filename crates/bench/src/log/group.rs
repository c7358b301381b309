//! The samples of one load, round by round, and which rounds count. Pure.

use crate::log::sample::Sample;
use crate::stats::Spread;

/// How far the floor of a round may be from the median of all floors before the round is dropped.
const FLOOR_MOVED_MAX: f64 = 0.2;

/// Ours, in tables and keys.
pub(crate) const OURS: &str = "haul";
/// Both ways of the floor begin so; the better of the two counts, round by round.
pub(crate) const RAW: &str = "raw";
/// What a program does that knows nothing better.
pub(crate) const GROWING: &str = "growing-file";

/// One contender, measured once in each round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    /// The contender; behind a `/`, which form of it.
    pub(crate) name: String,
    /// With how many writers it was driven.
    pub(crate) writers: usize,
    /// By round; `None` where it failed.
    pub(crate) samples: Vec<Option<Sample>>,
    /// Why it failed, or was not there at all.
    pub(crate) why: Option<String>,
}

/// All contenders under one load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    pub(crate) writers: usize,
    pub(crate) record_bytes: usize,
    pub(crate) rounds: usize,
    pub(crate) cells: Vec<Cell>,
}

impl Cell {
    /// Nothing measured yet.
    pub(crate) fn of(name: &str, writers: usize) -> Self {
        Self { name: name.to_owned(), writers, ..Self::default() }
    }

    pub(crate) fn family(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }
}

impl Group {
    /// The rounds that count: those whose floor stayed where it was. Without any floor, all.
    pub(crate) fn kept(&self) -> Vec<usize> {
        let floors: Vec<_> = (0..self.rounds).map(|round| self.best_rate(RAW, round)).collect();
        let known: Vec<_> = floors.iter().copied().flatten().collect();
        let Some(Spread { median, .. }) = Spread::of(&known) else {
            return (0..self.rounds).collect();
        };
        let stayed = |floor: f64| (floor / median - 1.0).abs() <= FLOOR_MOVED_MAX;
        (0..self.rounds).filter(|round| floors[*round].is_some_and(stayed)).collect()
    }

    /// The best rate of any form of `family` in a round.
    fn best_rate(&self, family: &str, round: usize) -> Option<f64> {
        let cells = self.cells.iter().filter(|cell| cell.family() == family);
        let rates = cells.filter_map(|cell| cell.samples.get(round)?.as_ref().map(Sample::rate));
        rates.reduce(f64::max)
    }

    /// Something of all samples of a cell that count.
    pub(crate) fn spread(
        &self,
        cell: &Cell,
        number: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<Spread> {
        let samples = self.kept().into_iter().filter_map(|round| cell.samples.get(round)?.as_ref());
        Spread::of(&samples.filter_map(number).collect::<Vec<_>>())
    }

    /// The rate to compare with. Of the floor, the median of each round's better way; of a rival,
    /// the median of its best form.
    pub(crate) fn rate_of(&self, family: &str) -> Option<f64> {
        if family == RAW {
            let rates: Vec<_> =
                self.kept().into_iter().filter_map(|round| self.best_rate(RAW, round)).collect();
            return Spread::of(&rates).map(|spread| spread.median);
        }
        let cells = self.cells.iter().filter(|cell| cell.family() == family);
        let rate = |cell| self.spread(cell, |sample| Some(sample.rate())).map(|it| it.median);
        cells.filter_map(rate).reduce(f64::max)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A cell with these rates, each measured for a second; 0 stands for a failure.
    pub(crate) fn cell(name: &str, rates: &[f64]) -> Cell {
        let sample = |rate: &f64| {
            (*rate > 0.0).then(|| Sample { appends: *rate, seconds: 1.0, ..Sample::default() })
        };
        Cell { samples: rates.iter().map(sample).collect(), ..Cell::of(name, 1) }
    }

    pub(crate) fn group(writers: usize, cells: Vec<Cell>) -> Group {
        let rounds = cells.iter().map(|cell| cell.samples.len()).max().unwrap_or(0);
        Group { writers, record_bytes: 4096, rounds, cells }
    }

    #[test]
    fn a_round_whose_floor_moved_is_dropped() {
        for (sync, dsync, expected) in [
            (&[100.0, 100.0, 100.0][..], &[90.0, 90.0, 90.0][..], &[0, 1, 2][..]),
            // The better of the two is the floor: here it stays where it was.
            (&[100.0, 50.0, 100.0], &[90.0, 100.0, 90.0], &[0, 1, 2]),
            (&[100.0, 79.0, 100.0], &[1.0, 1.0, 1.0], &[0, 2]),
            (&[100.0, 121.0, 120.0, 99.0, 98.0], &[1.0; 5], &[0, 2, 3, 4]),
            (&[100.0, 0.0, 100.0], &[0.0, 0.0, 0.0], &[0, 2]),
        ] {
            let cells = vec![cell("raw/fdatasync", sync), cell("raw/dsync", dsync)];
            assert_eq!(group(1, cells).kept(), expected, "{sync:?} {dsync:?}");
        }
        assert_eq!(group(1, vec![cell(OURS, &[1.0, 9.0])]).kept(), [0, 1], "no floor");
    }

    #[test]
    fn the_rate_of_a_rival_is_that_of_its_best_form() {
        let it = group(
            16,
            vec![
                cell("raw/a", &[100.0, 100.0, 200.0]),
                cell("raw/b", &[10.0, 110.0, 10.0]),
                cell("rival", &[5.0, 7.0, 1000.0]),
                cell("rival/other", &[9.0, 0.0, 1000.0]),
                cell("rival-like", &[99.0, 99.0, 99.0]),
            ],
        );
        assert_eq!(it.kept(), [0, 1], "the last one's floor moved");
        assert_eq!(
            it.rate_of("rival"),
            Some(9.0),
            "the median of 9 alone, against that of 5 and 7"
        );
        assert_eq!(it.rate_of(RAW), Some(105.0));
        assert_eq!(it.rate_of("nobody"), None);
    }
}
