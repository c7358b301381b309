//! Defines the columns of the report and computes its ratios. Performs no I/O.

use super::corpus::Corpus;
use super::corpus_dir::Traffic;
use super::process::Cost;
use super::tools::{Competitor, State, Tool};
use crate::contest::{Contest, Entry, Field};
use crate::report::{Column, Ratio, Report};

/// The figures of one run of a tool.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) cost: Cost,
    pub(super) traffic: Traffic,
    pub(super) cached_bytes: Option<u64>,
    pub(super) groups: usize,
    pub(super) agrees: bool,
}

pub(super) const BAR: &str = "seconds";

pub(super) const FIELDS: &[Field<Competitor, Run>] = &[
    Field::label("state", "state", |competitor| competitor.state.name().into()),
    Field::label("tool", "tool", |competitor| competitor.tool.name().into()),
    Field::label("setting", "setting", |competitor| competitor.form.as_str().into()),
    Field::spread(Column::number("seconds", "s", 3), 5, seconds),
    Field::median(Column::number("cpu_seconds", "CPU s", 3).ranked(2), |run| {
        Some(run.cost.cpu.as_secs_f64())
    }),
    Field::median(Column::number("memory_mib", "memory MiB", 1).ranked(3), memory_mib),
    Field::median(Column::number("device_reads", "reads", 0).ranked(4), |run| {
        Some(run.traffic.reads as f64)
    }),
    Field::median(Column::number("device_read_mib", "read MiB", 1).ranked(4), |run| {
        Some(mib(run.traffic.read_bytes))
    }),
    Field::median(Column::number("disk_seconds", "disk s", 3).ranked(6), disk_seconds),
    Field::median(Column::number("metadata_seconds", "of metadata", 3).ranked(7), |run| {
        Some(run.traffic.simulated?.metadata_s)
    }),
    Field::median(Column::number("bound_seconds", "bound s", 3).ranked(7), |run| {
        Some(run.traffic.simulated?.bound_s)
    }),
    Field::median(Column::number("metadata_bound_seconds", "of metadata", 3).ranked(7), |run| {
        Some(run.traffic.simulated?.metadata_bound_s)
    }),
    Field::median(Column::number("seeks", "seeks", 0).ranked(7), |run| {
        Some(run.traffic.simulated?.seeks as f64)
    }),
    Field::median(Column::number("cached_mib", "left in cache MiB", 1).ranked(3), cached_mib),
    Field::median(Column::number("groups", "groups", 0).ranked(5), |run| Some(run.groups as f64)),
    Field::summary(Column::text("agrees", "agrees").ranked(1), |runs| {
        if runs.iter().all(|run| run.agrees) { "yes" } else { "NO" }.into()
    }),
];

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn seconds(run: &Run) -> Option<f64> {
    Some(run.cost.wall.as_secs_f64())
}

fn disk_seconds(run: &Run) -> Option<f64> {
    Some(run.traffic.simulated?.disk_s)
}

fn memory_mib(run: &Run) -> Option<f64> {
    run.cost.memory_bytes.map(mib)
}

fn cached_mib(run: &Run) -> Option<f64> {
    run.cached_bytes.map(mib)
}

/// Returns the time that ratios compare: the time in which a simulated disk was reading, otherwise
/// the wall-clock time.
fn time(run: &Run) -> Option<f64> {
    disk_seconds(run).or_else(|| seconds(run))
}

/// Adds the ratios, except of rivals whose results differ from those of `haul`.
///
/// A ratio such as `small_warm_vs_fclones` is the time of the rival in its fastest setting divided
/// by the time of `haul`. On a spinning disk, `…_vs_unsorted` compares the fastest rival that does
/// not sort its reads. `big_cold_cache_vs_fclones` is the number of bytes that `haul` leaves in the
/// page cache divided by the number that the rival leaves. `paths_memory_mib` is the peak memory of
/// `haul`.
pub(super) fn add_ratios(
    contest: &Contest<Competitor, Run>,
    corpus: Corpus,
    state: State,
    report: &mut Report,
) {
    let is_ours = |entry: &&Entry<Competitor, Run>| entry.strategy.tool == Tool::Haul;
    let Some(own) = contest.entries.iter().find(is_ours) else { return };
    if corpus == Corpus::Paths {
        report.amount("paths_memory_mib", own.samples(memory_mib));
    }
    let ratios = &mut report.ratios;
    let mut add = |key: String, ratio: Option<Ratio>, is_better: fn(&f64, &f64) -> bool| {
        let Some(ratio) = ratio else { return };
        if ratios.get(&key).is_none_or(|before| is_better(&ratio.value, &before.value)) {
            ratios.insert(key, ratio);
        }
    };
    let agrees = |entry: &&Entry<Competitor, Run>| entry.rounds.iter().all(|run| run.agrees);
    for rival in contest.entries.iter().filter(|it| !is_ours(it)).filter(agrees) {
        let tool = rival.strategy.tool;
        let times = rival.ratio(own, time);
        add(format!("{corpus}_{state}_vs_{tool}"), times.clone(), f64::lt);
        if corpus.is_on_spinning_disk() && !tool.sorts() {
            add(format!("{corpus}_{state}_vs_unsorted"), times, f64::lt);
        }
        if corpus == Corpus::Big {
            let part = own.ratio(rival, cached_mib);
            add(format!("{corpus}_{state}_cache_vs_{tool}"), part, f64::gt);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::super::tools::competitors;
    use super::*;
    use crate::contest::{Outcome, columns};
    use crate::host::Host;

    fn run(seconds: u64, agrees: bool) -> Outcome<Run> {
        Outcome::Measured(Run {
            cost: Cost { wall: Duration::from_secs(seconds), ..Cost::default() },
            traffic: Traffic::default(),
            cached_bytes: Some(seconds << 20),
            groups: 1,
            agrees,
        })
    }

    #[test]
    fn rivals_count_in_their_best_setting_and_with_equal_results() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["fclones", "rdfind"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let path = dir.path().as_os_str();
        let all = competitors(Path::new("haul"), path, State::Cold, false);
        let mut contest = Contest::new(FIELDS, all);
        [2, 1, 9].into_iter().for_each(|seconds| contest.record(0, run(seconds, true)));
        contest.record(1, run(10, true));
        contest.record(2, run(6, true));
        contest.record(3, Outcome::Skipped("exit status: 1".to_owned()));
        contest.record(5, run(1, false));
        let mut report = Report::new("duplicates", Host::default(), columns(FIELDS), BAR);
        contest.report(&mut report, "big", |_| String::new());
        add_ratios(&contest, Corpus::Big, State::Cold, &mut report);
        assert_eq!(
            report.values().into_iter().collect::<Vec<_>>(),
            [
                ("big_cold_cache_vs_fclones".to_owned(), 2.0 / 6.0),
                ("big_cold_vs_fclones".to_owned(), 3.0)
            ]
        );
        assert_eq!(report.rows[5].values.last(), Some(&"NO".into()));
        assert_eq!(report.rows[3].state.as_deref(), Some("exit status: 1"));
    }
}
