//! Runs, added up into rows and ratios. Pure.

use std::collections::BTreeMap;

use super::corpus::Corpus;
use super::place::Traffic;
use super::process::Cost;
use super::tools::{Contender, Tool};
use crate::report::{Column, Row, Value};
use crate::stats::Spread;

pub(super) const BAR: &str = "seconds";

/// Medians of the rounds.
pub(super) const COLUMNS: &[Column] = &[
    Column::text("state", "state"),
    Column::text("tool", "tool"),
    Column::text("setting", "setting"),
    Column::number("seconds", "s", 3),
    Column::number("seconds_min", "min", 3).ranked(5),
    Column::number("seconds_max", "max", 3).ranked(5),
    Column::number("cpu_seconds", "CPU s", 3).ranked(2),
    Column::number("memory_mib", "memory MiB", 1).ranked(3),
    Column::number("device_reads", "reads", 0).ranked(4),
    Column::number("device_read_mib", "read MiB", 1).ranked(4),
    Column::number("service_seconds", "disk s", 2).ranked(6),
    Column::number("seeks", "seeks", 0).ranked(7),
    Column::number("cached_mib", "left in cache MiB", 1).ranked(3),
    Column::number("groups", "groups", 0).ranked(5),
    Column::text("agrees", "agrees").ranked(1),
];

/// In what state the page cache is, and the tool's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Cold,
    Warm,
    /// Warm, and the tool has searched it before with its cache.
    Rerun,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Rerun => "rerun",
        }
    }
}

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) cost: Cost,
    pub(super) traffic: Traffic,
    pub(super) cached_bytes: Option<u64>,
    pub(super) groups: usize,
    pub(super) agrees: bool,
}

/// All runs of a contender over a corpus in a state.
#[derive(Debug, Clone)]
pub(super) struct Runs {
    pub(super) contender: Contender,
    pub(super) corpus: Corpus,
    pub(super) state: State,
    pub(super) runs: Vec<Run>,
    /// Why there are none.
    pub(super) not: Option<String>,
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl Runs {
    fn spread(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<Spread> {
        let numbers: Option<Vec<_>> = self.runs.iter().map(of).collect();
        Spread::of(&numbers?)
    }

    fn median(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        self.spread(of).map(|spread| spread.median)
    }

    fn seconds(&self) -> Option<f64> {
        self.median(|run| Some(run.cost.wall.as_secs_f64()))
    }

    /// What ratios are about: the disk's own clock where it has one.
    fn judged(&self) -> Option<f64> {
        self.median(|run| run.traffic.service_s).or_else(|| self.seconds())
    }

    pub(super) fn row(&self) -> Row {
        let (state, tool) = (self.state.name(), self.contender.tool.name());
        let mut values: Vec<Value> =
            vec![state.into(), tool.into(), self.contender.form.clone().into()];
        if let Some(why) = &self.not {
            return Row::new(self.corpus.name(), state, values).without_numbers(why.clone());
        }
        let seconds = self.spread(|run| Some(run.cost.wall.as_secs_f64()));
        values.extend([
            Value::from(seconds.map(|spread| spread.median)),
            seconds.map(|spread| spread.min).into(),
            seconds.map(|spread| spread.max).into(),
            self.median(|run| Some(run.cost.cpu.as_secs_f64())).into(),
            self.median(|run| run.cost.memory_bytes.map(mib)).into(),
            self.median(|run| Some(run.traffic.reads as f64)).into(),
            self.median(|run| Some(mib(run.traffic.read_bytes))).into(),
            self.median(|run| run.traffic.service_s).into(),
            self.median(|run| run.traffic.seeks.map(|seeks| seeks as f64)).into(),
            self.median(|run| run.cached_bytes.map(mib)).into(),
            self.median(|run| Some(run.groups as f64)).into(),
            if self.agrees() { "yes" } else { "NO" }.into(),
        ]);
        Row::new(self.corpus.name(), state, values)
    }

    fn agrees(&self) -> bool {
        self.runs.iter().all(|run| run.agrees)
    }
}

/// For each corpus and state, how many times longer each rival takes in the best of its settings
/// (`small_warm_vs_fclones`), and those that do not sort on a spinning disk together; the part of
/// what a rival leaves in the page cache that ours does (`big_cold_cache_vs_fclones`); our memory
/// (`paths_memory_mib`). A rival that found something else is in none.
pub(super) fn ratios(all: &[Runs]) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    let ours = all.iter().filter(|runs| runs.contender.tool == Tool::Haul);
    for own in ours {
        let Some(our) = own.judged() else { continue };
        let name = format!("{}_{}", own.corpus.name(), own.state.name());
        if let (Corpus::Paths, Some(bytes)) =
            (own.corpus, own.median(|run| run.cost.memory_bytes.map(mib)))
        {
            ratios.insert("paths_memory_mib".to_owned(), bytes);
        }
        for rival in all.iter().filter(|runs| {
            let same = (runs.corpus, runs.state) == (own.corpus, own.state);
            same && runs.contender.tool != Tool::Haul && runs.agrees()
        }) {
            let tool = rival.contender.tool;
            let mut keep = |key: String, ratio: Option<f64>, better: fn(f64, f64) -> f64| {
                if let Some(ratio) = ratio.filter(|ratio| ratio.is_finite()) {
                    let best = ratios.get(&key).map_or(ratio, |before| better(*before, ratio));
                    ratios.insert(key, best);
                }
            };
            let times = rival.judged().map(|theirs| theirs / our);
            keep(format!("{name}_vs_{}", tool.name()), times, f64::min);
            if own.corpus.spins() && !tool.sorts() {
                keep(format!("{name}_vs_unsorted"), times, f64::min);
            }
            if own.corpus == Corpus::Big {
                let cached = |runs: &Runs| runs.median(|run| run.cached_bytes.map(mib));
                let part = cached(own).zip(cached(rival)).map(|(our, theirs)| our / theirs);
                keep(format!("{name}_cache_vs_{}", tool.name()), part, f64::max);
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::super::tools::contenders;
    use super::*;

    fn runs(contender: &Contender, seconds: &[u64], agrees: bool) -> Runs {
        let run = |s: &u64| Run {
            cost: Cost { wall: Duration::from_secs(*s), ..Cost::default() },
            traffic: Traffic::default(),
            cached_bytes: Some(s << 20),
            groups: 1,
            agrees,
        };
        Runs {
            contender: contender.clone(),
            corpus: Corpus::Big,
            state: State::Cold,
            runs: seconds.iter().map(run).collect(),
            not: None,
        }
    }

    #[test]
    fn a_rival_counts_in_the_best_of_its_settings_and_not_when_it_found_something_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["fclones", "rdfind"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let all = contenders(Path::new("haul"), dir.path().as_os_str(), false, false);
        let all = [
            runs(&all[0], &[2, 1, 9], true),
            runs(&all[1], &[10], true),
            runs(&all[2], &[6], true),
            runs(&all[5], &[1], false),
        ];
        let ratios = ratios(&all);
        assert_eq!(
            ratios.into_iter().collect::<Vec<_>>(),
            [
                ("big_cold_cache_vs_fclones".to_owned(), 2.0 / 6.0),
                ("big_cold_vs_fclones".to_owned(), 3.0)
            ]
        );
        assert_eq!(all[3].row().values.last(), Some(&"NO".into()));
    }

    #[test]
    fn what_could_not_be_run_says_why() {
        let all = contenders(Path::new("haul"), "".as_ref(), false, false);
        let not = Runs { not: Some("it failed".to_owned()), ..runs(&all[0], &[], true) };
        assert_eq!(not.row().state.as_deref(), Some("it failed"));
        assert!(ratios(&[not]).is_empty());
    }
}
