//! Simulates sequences of new runs and their merges, and checks how many runs there are and how
//! many bytes are rewritten.

use haul_testing::Random;

use super::plan::{FAN_IN, MERGED_MAX, RunSize, choose};

const ENTRY_BYTES: u64 = 60;

/// A simulated tree. A workload with overwrites draws its keys from `keys` keys.
#[derive(Default)]
struct Simulation {
    /// From newest to oldest.
    runs: Vec<RunSize>,
    keys: Option<u64>,
    added_bytes: u64,
    merged_bytes: u64,
    runs_max: usize,
}

fn run(entries: u64, deletions: u64) -> RunSize {
    RunSize { entries, deletions, bytes: entries * ENTRY_BYTES }
}

impl Simulation {
    fn add(&mut self, entries: u64) {
        self.runs.insert(0, run(entries, 0));
        self.added_bytes += entries * ENTRY_BYTES;
    }

    /// Executes one merge; returns `false` if none is needed.
    fn merge_once(&mut self) -> bool {
        let live = self.keys;
        let Some(range) = choose(&self.runs, live) else { return false };
        assert!(range.end <= self.runs.len() && range.len() >= 2, "{range:?}");
        assert!(range.len() <= MERGED_MAX, "{range:?}");
        // The expected number of keys that two random subsets have in common.
        let common = |one: u64, other: u64| self.keys.map_or(0, |keys| one * other / keys);
        let union = |one: u64, other: u64| one + other - common(one, other);
        let entries = self.runs[range.clone()].iter().map(|run| run.entries).fold(0, union);
        self.merged_bytes += entries * ENTRY_BYTES;
        self.runs.splice(range, [run(entries, 0)]);
        true
    }

    fn merge_all(&mut self) {
        while self.merge_once() {}
        self.runs_max = self.runs_max.max(self.runs.len());
    }

    fn rewrites(&self) -> f64 {
        self.merged_bytes as f64 / self.added_bytes as f64
    }
}

fn log4(ratio: f64) -> f64 {
    ratio.max(1.0).log(FAN_IN as f64)
}

#[test]
fn equal_runs_are_rewritten_once_in_each_tier() {
    for entries in [1, 100, 70_000, 123_457] {
        let mut simulation = Simulation::default();
        for _ in 0..2000 {
            simulation.add(entries);
            simulation.merge_all();
        }
        let tiers = log4(2000.0);
        let runs_max = (FAN_IN - 1) as f64 * tiers.ceil();
        assert!(simulation.runs_max as f64 <= runs_max, "{} runs", simulation.runs_max);
        assert!(simulation.rewrites() <= tiers, "{} times", simulation.rewrites());
    }
}

#[test]
fn runs_of_mixed_sizes_stay_few() {
    let mut random = Random::from_environment();
    for largest in [10, 1000, 100_000] {
        let mut simulation = Simulation::default();
        for _ in 0..3000 {
            // As many small runs as large ones on a logarithmic scale.
            let magnitude = random.below(largest) + 1;
            simulation.add(random.below(magnitude) + 1);
            simulation.merge_all();
        }
        let tiers = log4(simulation.added_bytes as f64 / ENTRY_BYTES as f64).ceil() + 1.0;
        assert!(simulation.runs_max as f64 <= 3.0 * tiers, "{} runs", simulation.runs_max);
        assert!(simulation.rewrites() <= tiers, "{} times", simulation.rewrites());
    }
}

#[test]
fn large_runs_among_small_ones_are_rewritten_rarely() {
    for period in [2, 5, 17, 100] {
        let mut simulation = Simulation::default();
        for n in 0..3000 {
            simulation.add(if n % period == 0 { 100_000 } else { 10 });
            simulation.merge_all();
        }
        let tiers = log4(simulation.added_bytes as f64 / ENTRY_BYTES as f64).ceil() + 1.0;
        assert!(simulation.runs_max as f64 <= 3.0 * tiers, "{} runs", simulation.runs_max);
        // A merge with trapped small runs does not raise the tier; this happens at most three times
        // per tier.
        let rewrites = 3.0 * log4(3000.0 / f64::from(period)) + 1.0;
        assert!(simulation.rewrites() <= rewrites, "{} times", simulation.rewrites());
    }
}

#[test]
fn merges_that_fall_behind_catch_up() {
    let mut simulation = Simulation::default();
    for n in 1..=2000 {
        simulation.add(1000);
        if n % 90 == 0 {
            simulation.merge_once();
        }
    }
    simulation.merge_all();
    let runs_max = 3.0 * log4(2000.0).ceil();
    assert!(simulation.runs.len() as f64 <= runs_max, "{} runs", simulation.runs.len());
    assert!(simulation.rewrites() <= log4(2000.0), "{} times", simulation.rewrites());
}

#[test]
fn overwritten_entries_use_limited_space() {
    for keys in [1000, 20_000, 1_000_000] {
        let mut simulation = Simulation { keys: Some(keys), ..Simulation::default() };
        let mut entries_max = 0;
        for _ in 0..3000 {
            simulation.add(1000);
            simulation.merge_all();
            entries_max = entries_max.max(simulation.runs.iter().map(|run| run.entries).sum());
        }
        // Half of the entries may be useless, and the limit is estimated from the newer runs.
        assert!(entries_max <= 2 * keys + 4000, "{entries_max} entries of {keys} keys");
        assert!(simulation.rewrites() <= log4(3000.0), "{} times", simulation.rewrites());
    }
}

#[test]
fn many_tombstones_cause_a_merge_of_all_runs() {
    let old = run(10_000, 0);
    assert_eq!(choose(&[run(2000, 2000), old], None), None);
    assert_eq!(choose(&[run(3500, 3500), old], None), Some(0..2));
    assert_eq!(choose(&[run(300, 300)], None), Some(0..1), "only tombstones");
    assert_eq!(choose(&[old], None), None);
    assert_eq!(choose(&[], None), None);
    assert_eq!(choose(&[], Some(0)), None);
}

#[test]
fn wrong_number_of_live_entries_causes_no_endless_merges() {
    assert_eq!(choose(&[run(10_000, 0)], Some(0)), None);
    assert_eq!(choose(&[run(100, 0), run(10_000, 0)], Some(0)), None, "few entries are new");
    assert_eq!(choose(&[run(4000, 0), run(10_000, 0)], Some(0)), Some(0..2));
    assert_eq!(choose(&[run(4000, 0), run(10_000, 0)], Some(1 << 40)), None);
}

#[test]
fn run_smaller_than_newer_runs_is_merged_with_them() {
    let (small, large) = (run(10, 0), run(1000, 0));
    assert_eq!(choose(&[large, small, large], None), None);
    assert_eq!(choose(&[small, large, small, small, large], None), Some(1..5));
    let many = vec![small; 3 * MERGED_MAX];
    let chosen = choose(&many, None);
    assert_eq!(chosen, Some(2 * MERGED_MAX..3 * MERGED_MAX), "the oldest of too many");
}
