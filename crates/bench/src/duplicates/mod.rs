//! Compares `haul dups` with other programs that find duplicates.
//!
//! Every tool runs as a process over the same files, in interleaved rounds and with all settings
//! that may be its fastest. Its results are compared with those of `haul dups`. It runs with the
//! files in the page cache (warm) and without (cold). By default, fclones uses one thread on a
//! rotational disk. Virtual disks often report themselves as rotational wrongly, so fclones also
//! runs with the kernel's setting `rotational` changed to 0.
//!
//! # Sources
//! \[fclones\], \[yadf, jdupes, rdfind, czkawka\].

mod corpus;
mod corpus_dir;
mod groups;
mod process;
mod sweep;
mod table;
mod tools;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use haul_measure::{Error, Result, Watcher, turns};
use haul_units::parse_bytes;

pub use corpus::Corpus;

use self::corpus::Sizes;
use self::corpus_dir::CorpusDir;
use self::groups::Groups;
use self::process::run as run_once;
use self::table::{BAR, FIELDS, Run, add_ratios};
use self::tools::{Competitor, State, Tool, competitors, missing};
use crate::contest::{Contest, Outcome, Stage, columns};
use crate::host::{Host, StorageFacts};
use crate::log::Scratch;
use crate::options::{count, rounds};
use crate::report::Report;
use crate::setting::Setting;

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
    /// Files to search: small, middle, somewhere, big, reflinks, spinning, spinning-fresh,
    /// spinning-medium, paths
    ///
    /// small: files of up to 16 KiB. middle: big files of one length that differ in a sixteenth in
    /// the middle. somewhere: big files of one length that differ in one page. big: big files, each
    /// twice. reflinks: a big file and its reflinks on btrfs. spinning: small files on a simulated
    /// spinning disk, in a directory tree aged by replacing files. spinning-fresh: the same number
    /// of files in a fresh tree. spinning-medium: files of 64 KiB to 1 MiB in an aged tree. paths:
    /// a million short files, to measure memory use. The last five take long or need root.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "small,middle,somewhere,big")]
    pub corpus: Vec<Corpus>,
    /// Number of files in "small"
    #[arg(long, value_name = "N", default_value = "60000", value_parser = count(2..=10_000_000))]
    pub files: usize,
    /// Number of files in "spinning" and "spinning-fresh"; "spinning-medium": a tenth
    #[arg(long, value_name = "N", default_value = "6000", value_parser = count(2..=100_000))]
    pub spinning_files: usize,
    /// Number of files in "paths"
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = count(2..=10_000_000))]
    pub paths: usize,
    /// Total size of the big files in a set
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_bytes)]
    pub big: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
}

impl Options {
    fn sizes(&self) -> Sizes {
        Sizes {
            small_files: self.files,
            spinning_files: self.spinning_files,
            paths: self.paths,
            big_bytes: self.big,
        }
    }
}

/// Runs the benchmark. The files are removed when this returns, but not if the process is killed.
///
/// # Errors
/// Returns an error if files cannot be created or `haul dups` fails. The failure of a rival is
/// reported in its row.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    // The path must be absolute, because the tools have different working directories.
    let dir = &options.dir;
    let dir = dir.canonicalize().map_err(Error::other(format!("find {}", dir.display())))?;
    let options = &Options { dir, ..options.clone() };
    let mut report = Report::new("duplicates", Host::here(), columns(FIELDS), BAR);
    report.notes.push(note(options));
    let missing = missing(&options.path);
    if !missing.is_empty() {
        report.notes.push(format!("Not found and not measured: {}.", missing.join(", ")));
    }
    for corpus in options.corpus.iter().copied() {
        watcher.check()?;
        watcher.step(0, 1, &format!("writing the files of {corpus}"));
        let place = CorpusDir::new(corpus, &options.dir, options.big)?;
        report.host.storage.push(StorageFacts::of(corpus.name(), &place.storage));
        place.write(|root| options.sizes().write(corpus, root))?;
        for state in states(corpus).iter().copied() {
            let contest = measure(options, &place, corpus, state, watcher)?;
            contest.report(&mut report, corpus.name(), |it| it.state.name().to_owned());
            add_ratios(&contest, corpus, state, &mut report);
        }
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { rounds, files, big, spinning_files, .. } = options;
    format!(
        "{rounds} interleaved rounds; numbers are medians. small: {files} files of up to 16 KiB; big \
         ones: {} MiB in 16 files; spinning: {spinning_files} files, a tenth of it medium ones, on a \
         simulated 2.5-inch disk, by its own clock (disk s). cold: without cached files and names; \
         rerun: warm, with the tool's own cache filled. A ratio is the time of a rival in its best \
         setting divided by ours. Rivals with other results than ours are in no ratio.",
        big >> 20,
    )
}

/// Returns the states of the caches in which a corpus is searched.
fn states(corpus: Corpus) -> &'static [State] {
    match corpus {
        Corpus::Small => &[State::Warm, State::Rerun, State::Cold],
        Corpus::Middle | Corpus::Somewhere | Corpus::Big => &[State::Warm, State::Cold],
        Corpus::Paths => &[State::Warm],
        _ => &[State::Cold],
    }
}

fn measure(
    options: &Options,
    place: &CorpusDir,
    corpus: Corpus,
    state: State,
    watcher: &dyn Watcher,
) -> Result<Contest<Competitor, Run>> {
    let Options { program, path, .. } = options;
    let all = competitors(program, path, state, place.is_rotational_in_doubt());
    let mut contest = Contest::new(FIELDS, all);
    let home = Scratch::new(&options.dir, &format!("haul-bench-homes.{}", std::process::id()))?;
    if state != State::Cold {
        place.warm()?;
    }
    let expected = prepare(&mut contest, place, home.path(), state)?;
    // One round is enough: memory use does not vary between rounds.
    let rounds = if corpus == Corpus::Paths { 1 } else { options.rounds };
    let name = format!("{corpus} {state}");
    let stage = Stage { name: &name, ..Stage::only(rounds, watcher) };
    for turn in turns(rounds, contest.entries.len()) {
        let competitor = &contest.entries[turn.which].strategy;
        stage.step(turn, competitor)?;
        if contest.entries[turn.which].is_skipped() {
            continue;
        }
        let home = home.path().join(turn.which.to_string());
        let outcome = match measure_once(competitor, place, state, &home, &expected) {
            Ok(run) => Outcome::Measured(run),
            Err(Error::Missing(why)) if competitor.tool != Tool::Haul => Outcome::Skipped(why),
            Err(error) => return Err(error),
        };
        contest.record(turn.which, outcome);
    }
    Ok(contest)
}

/// Creates a home directory for each tool, runs `haul dups` once, and returns the groups of
/// duplicates it finds. In the state `rerun`, also runs each rival once to fill the rival's cache.
fn prepare(
    contest: &mut Contest<Competitor, Run>,
    place: &CorpusDir,
    homes: &Path,
    state: State,
) -> Result<Groups> {
    let mut expected = Groups::new();
    for number in 0..contest.entries.len() {
        let home = homes.join(number.to_string());
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
    Ok(expected)
}

fn measure_once(
    competitor: &Competitor,
    place: &CorpusDir,
    state: State,
    home: &Path,
    expected: &Groups,
) -> Result<Run> {
    let rotational = place.rotational_setting().filter(|_| competitor.as_solid);
    let _changed = rotational.map(|path| Setting::change(&path, "0")).transpose()?;
    if state == State::Cold {
        place.drop_caches()?;
    }
    let ((cost, groups), traffic) = place.watch(|| run_once(competitor, &place.root, home))?;
    let cached_bytes = (state == State::Cold).then(|| place.cached_bytes()).transpose()?;
    Ok(Run { cost, traffic, cached_bytes, groups: groups.len(), agrees: groups == *expected })
}
