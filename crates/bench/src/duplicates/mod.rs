//! Compares `haul dups` with other programs that find duplicates.
//!
//! Every tool runs as a process over the same files, in interleaved rounds and with all settings
//! that may be its fastest. Its results are compared with those of `haul dups`. It runs with the
//! files in the page cache (warm) and without (cold).
//!
//! # Sources
//! \[fclones\], \[yadf, jdupes, rdfind, czkawka\].

mod corpus;
mod place;
mod process;
mod tools;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use haul_measure::{Error, Result, Watcher, turns};
use haul_units::parse_bytes;

pub use corpus::Corpus;

use self::corpus::Sizes;
use self::place::{Place, Traffic, drop_caches};
use self::process::{Cost, run as run_once};
use self::tools::{Competitor, Groups, State, Tool};
use crate::benchmark::Benchmark;
use crate::contest::{Contest, Entry, Field, Outcome, Stage, new_report, number};
use crate::host::StorageFacts;
use crate::log::Scratch;
use crate::net::programs::find;
use crate::options::{count, rounds};
use crate::report::{Column, Ratio, Report};

/// Options of `haul bench duplicates`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test files, which needs some GiB
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// The path of the program `haul`.
    #[arg(skip)]
    pub program: PathBuf,
    /// The directories to search for rival programs, separated by colons as in `PATH`.
    #[arg(skip)]
    pub path: OsString,
    /// Files to search: small, middle, big, spinning
    ///
    /// small: files of up to 16 KiB. middle: big files of one length that differ in a sixteenth in
    /// the middle. big: big files, each twice. spinning: small files on a simulated spinning disk, in
    /// a directory tree aged by replacing files; needs root and /dev/fuse.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "small,middle,big")]
    pub corpus: Vec<Corpus>,
    /// Number of files in "small"
    #[arg(long, value_name = "N", default_value = "60000", value_parser = count(2..=10_000_000))]
    pub files: usize,
    /// Number of files in "spinning"
    #[arg(long, value_name = "N", default_value = "6000", value_parser = count(2..=100_000))]
    pub spinning_files: usize,
    /// Total size of the big files in a set
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_bytes)]
    pub big: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
}

/// The figures of one run of a tool.
#[derive(Debug, Clone)]
struct Run {
    cost: Cost,
    traffic: Traffic,
    cached_bytes: Option<u64>,
    groups: usize,
    agrees: bool,
}

const FIELDS: &[Field<Competitor, Run>] = &[
    Field::label("state", "state", |one| one.state.name().into()),
    Field::label("tool", "tool", |one| one.tool.name().into()),
    Field::label("setting", "setting", |one| one.setting.0.into()),
    number("seconds", "s", 3).spread(5, |run| Some(run.cost.wall.as_secs_f64())),
    number("cpu_seconds", "CPU s", 3).rank(2).median(|run| Some(run.cost.cpu.as_secs_f64())),
    number("memory_mib", "memory MiB", 1).rank(3).median(memory_mib),
    number("device_reads", "reads", 0).rank(4).median(|run| Some(run.traffic.reads as f64)),
    number("device_read_mib", "read MiB", 1).rank(4).median(|it| Some(mib(it.traffic.read_bytes))),
    number("disk_seconds", "disk s", 3).rank(6).median(|run| run.traffic.disk_s),
    number("seeks", "seeks", 0).rank(7).median(|run| run.traffic.seeks),
    number("cached_mib", "left in cache MiB", 1).rank(3).median(cached_mib),
    number("groups", "groups", 0).rank(5).median(|run| Some(run.groups as f64)),
    Column::text("agrees", "agrees")
        .rank(1)
        .total(|it| if it.iter().all(|run| run.agrees) { "yes" } else { "NO" }.into()),
];

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
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
    Some(run.traffic.disk_s.unwrap_or(run.cost.wall.as_secs_f64()))
}

impl Benchmark for Options {
    const NAME: &'static str = "duplicates";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        // The path must be absolute, because the tools have different working directories.
        let dir = &self.dir;
        let dir = dir.canonicalize().map_err(Error::other(format!("find {}", dir.display())))?;
        let Self { rounds, files, big, spinning_files, .. } = self;
        let note = format!(
            "{rounds} interleaved rounds; numbers are medians. small: {files} files of up to 16 KiB; big \
             ones: {} MiB in 16 files; spinning: {spinning_files} files on a simulated 2.5-inch disk, by \
             its own clock (disk s). cold: without cached files and names; rerun: warm, with the tool's \
             own cache filled. A ratio is the time of a rival in its best setting divided by ours. \
             Rivals with other results than ours are in no ratio.",
            big >> 20,
        );
        let mut report = new_report(Self::NAME, FIELDS, note);
        let mut programs = BTreeMap::from([(Tool::Haul, self.program.clone())]);
        for tool in Tool::ALL.into_iter().skip(1) {
            match find(&self.path, tool.program()) {
                Some(program) => drop(programs.insert(tool, program)),
                None => {
                    report.notes.push(format!("{tool} is not installed, so it was not measured."))
                }
            }
        }
        let (small_files, spinning_files, big_bytes) = (*files, *spinning_files, *big);
        let sizes = Sizes { small_files, spinning_files, big_bytes };
        for corpus in self.corpus.iter().copied() {
            watcher.check()?;
            watcher.step(0, 1, &format!("writing the files of {corpus}"));
            let place = Place::new(corpus, &dir)?;
            report.host.storage.push(StorageFacts::of(corpus.name(), &place.storage));
            place.write(|root| corpus::write(corpus, sizes, root))?;
            let states: &[State] = match corpus {
                Corpus::Small => &[State::Warm, State::Rerun, State::Cold],
                Corpus::Middle | Corpus::Big => &[State::Warm, State::Cold],
                Corpus::Spinning => &[State::Cold],
            };
            for state in states.iter().copied() {
                let all = programs.iter().flat_map(|(tool, program)| {
                    tool.settings(state == State::Rerun).iter().map(move |setting| Competitor {
                        tool: *tool,
                        program: program.clone(),
                        setting: *setting,
                        state,
                    })
                });
                let mut contest = Contest::new(FIELDS, all);
                let name = format!("{corpus} {state}");
                let stage = Stage { name: &name, ..Stage::only(*rounds, watcher) };
                measure(&mut contest, &stage, &place, &dir, state)?;
                contest.report(&mut report, corpus.name(), |it| it.state.name().to_owned());
                add_ratios(&contest, corpus, state, &mut report);
            }
        }
        Ok(report)
    }
}

/// Measures the tools in turns. Before that, `haul dups` runs once, which returns the expected
/// groups; in the state `rerun`, each rival runs once to fill its cache.
fn measure(
    contest: &mut Contest<Competitor, Run>,
    stage: &Stage<'_>,
    place: &Place,
    dir: &Path,
    state: State,
) -> Result<()> {
    let homes = Scratch::new(dir, &format!("haul-bench-homes.{}", std::process::id()))?;
    let home = |number: usize| homes.path().join(number.to_string());
    if state != State::Cold {
        place.warm()?;
    }
    let mut expected = Groups::new();
    for number in 0..contest.entries.len() {
        let home = home(number);
        fs::create_dir(&home).map_err(Error::other(format!("create {}", home.display())))?;
        let competitor = &contest.entries[number].strategy;
        let is_ours = competitor.tool == Tool::Haul;
        if is_ours || state == State::Rerun {
            match run_once(competitor, &place.root, &home) {
                Ok((_, groups)) if is_ours => expected = groups,
                Ok(_) => {}
                Err(Error::Missing(why)) if !is_ours => {
                    contest.record(number, Outcome::Skipped(why));
                }
                Err(error) => return Err(error),
            }
        }
    }
    for turn in turns(stage.rounds, contest.entries.len()) {
        let entry = &contest.entries[turn.which];
        stage.step(turn, &entry.name)?;
        if entry.is_skipped() {
            continue;
        }
        let outcome = match measure_once(&entry.strategy, place, &home(turn.which), &expected) {
            Ok(run) => Outcome::Measured(run),
            Err(Error::Missing(why)) if entry.strategy.tool != Tool::Haul => Outcome::Skipped(why),
            Err(error) => return Err(error),
        };
        contest.record(turn.which, outcome);
    }
    Ok(())
}

fn measure_once(one: &Competitor, place: &Place, home: &Path, expected: &Groups) -> Result<Run> {
    let is_cold = one.state == State::Cold;
    if is_cold {
        drop_caches()?;
    }
    let ((cost, groups), traffic) = place.watch(|| run_once(one, &place.root, home))?;
    let cached_bytes = is_cold.then(|| place.cached_bytes()).transpose()?;
    Ok(Run { cost, traffic, cached_bytes, groups: groups.len(), agrees: groups == *expected })
}

/// Adds the ratios, except of rivals whose results differ from those of `haul`.
///
/// A ratio such as `small_warm_vs_fclones` is the time of the rival in its fastest setting divided
/// by the time of `haul`. `big_cold_cache_vs_fclones` is the number of bytes that `haul` leaves in
/// the page cache divided by the number that the rival leaves.
fn add_ratios(
    contest: &Contest<Competitor, Run>,
    corpus: Corpus,
    state: State,
    report: &mut Report,
) {
    let is_ours = |entry: &&Entry<Competitor, Run>| entry.strategy.tool == Tool::Haul;
    let Some(own) = contest.entries.iter().find(is_ours) else { return };
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
        add(format!("{corpus}_{state}_vs_{tool}"), rival.ratio(own, time), f64::lt);
        if corpus == Corpus::Big {
            let part = own.ratio(rival, cached_mib);
            add(format!("{corpus}_{state}_cache_vs_{tool}"), part, f64::gt);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn run(seconds: u64, agrees: bool) -> Option<Run> {
        Some(Run {
            cost: Cost { wall: Duration::from_secs(seconds), ..Cost::default() },
            traffic: Traffic::default(),
            cached_bytes: Some(seconds << 20),
            groups: 1,
            agrees,
        })
    }

    #[test]
    fn rivals_count_in_their_best_setting_and_with_equal_results() {
        let competitor = |tool, setting| Competitor {
            tool,
            program: PathBuf::new(),
            setting: (setting, &[]),
            state: State::Cold,
        };
        let all = [
            competitor(Tool::Haul, ""),
            competitor(Tool::Fclones, "slow"),
            competitor(Tool::Fclones, "fast"),
            competitor(Tool::Fclones, "failed"),
            competitor(Tool::Rdfind, "wrong"),
        ];
        let mut contest = Contest::new(FIELDS, all);
        let ours = [2, 1, 9].map(|seconds| run(seconds, true)).to_vec();
        let [slow, fast, wrong] = [run(10, true), run(6, true), run(1, false)].map(|it| vec![it]);
        contest.record_all([ours, slow, fast, vec![None], wrong]);
        let mut report = new_report("duplicates", FIELDS, String::new());
        contest.report(&mut report, "big", |_| String::new());
        add_ratios(&contest, Corpus::Big, State::Cold, &mut report);
        report.assert_ratios(&[
            ("big_cold_cache_vs_fclones", 2.0 / 6.0),
            ("big_cold_vs_fclones", 3.0),
        ]);
        assert_eq!(report.rows[4].values.last(), Some(&"NO".into()));
        assert_eq!(report.rows[3].state.as_deref(), Some("no space left"));
    }
}
