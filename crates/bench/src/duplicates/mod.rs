//! Searching for duplicates, beside the tools others use for it.
//!
//! Every tool runs as a process of its own over the same files, in turn with the others, in all
//! settings that may be its best. What it found is compared with what ours found. The page cache
//! is warm, or empty; where the disk says that it rotates and does not, fclones also runs with that
//! set right, since it believes it.
//!
//! # Sources
//! \[fclones\], \[yadf, jdupes, rdfind, czkawka\].

mod corpus;
mod groups;
mod place;
mod process;
mod rows;
mod tools;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

pub use corpus::{Corpus, Sizes};

use self::groups::Groups;
use self::place::Place;
use self::process::run as run_once;
use self::rows::{BAR, COLUMNS, Run, Runs, State};
use self::tools::{Contender, Tool, contenders, missing};
use crate::error::{Error, Result};
use crate::host::{Host, StorageFacts};
use crate::log::Scratch;
use crate::report::Report;
use crate::rounds::turns;
use crate::setting::Setting;
use crate::watch::Watcher;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory to make the files in; some GiB must be free there.
    pub dir: PathBuf,
    /// The program `haul`.
    pub program: PathBuf,
    /// Where the rivals are looked for: directories as in `PATH`.
    pub path: OsString,
    /// What is searched.
    pub corpora: Vec<Corpus>,
    /// How much of it there is.
    pub sizes: Sizes,
    /// How often each is measured, in turn.
    pub rounds: usize,
}

/// Measures, and tells what came out. What it made is removed, unless the process is killed.
///
/// # Errors
/// When the files cannot be made, or ours fails. A rival that fails is told in its row.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    // Tools run in directories of their own.
    let dir = &options.dir;
    let dir = dir.canonicalize().map_err(Error::other(format!("find {}", dir.display())))?;
    let options = &Options { dir, ..options.clone() };
    let mut report = Report::new("duplicates", Host::here(), COLUMNS, BAR);
    report.notes.push(note(options));
    let missing = missing(&options.path);
    if !missing.is_empty() {
        report.notes.push(format!("Not found, and so not measured: {}.", missing.join(", ")));
    }
    let mut all = Vec::new();
    for corpus in &options.corpora {
        watcher.check()?;
        watcher.step(0, 1, &format!("making the files of {}", corpus.name()));
        let place = Place::of(*corpus, &options.dir, options.sizes.big_bytes)?;
        report.host.storage.push(StorageFacts::of(corpus.name(), &place.storage));
        place.make(|root| options.sizes.make(*corpus, root))?;
        for state in states(*corpus) {
            let measured = measured(options, &place, *corpus, *state, watcher)?;
            report.rows.extend(measured.iter().map(Runs::row));
            all.extend(measured);
        }
    }
    report.ratios = rows::ratios(&all);
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { rounds, sizes, .. } = options;
    format!(
        "Rounds: {rounds}, each tool in turn; numbers are medians. small: {} files of up to 16 KiB; \
         big ones: {} MiB in 16 files; spinning: {} files, of the medium ones a tenth, on a simulated \
         2.5-inch disk, judged by its own clock (disk s). cold: the kernel has forgotten files and names; rerun: warm, and \
         the tool's own cache is filled. A ratio is the time of a rival in the best of its settings \
         over ours. Who does not agree with what ours found is in no ratio.",
        sizes.small_files,
        sizes.big_bytes >> 20,
        sizes.spinning_files,
    )
}

/// In which states a corpus is searched.
fn states(corpus: Corpus) -> &'static [State] {
    match corpus {
        Corpus::Small => &[State::Warm, State::Rerun, State::Cold],
        Corpus::Middle | Corpus::Somewhere | Corpus::Big => &[State::Warm, State::Cold],
        Corpus::Paths => &[State::Warm],
        _ => &[State::Cold],
    }
}

fn rounds(corpus: Corpus, rounds: usize) -> usize {
    match corpus {
        // Its own clock is the same in every round, and memory too.
        Corpus::Paths => rounds.min(1),
        corpus if corpus.spins() => rounds.min(1),
        _ => rounds,
    }
}

fn measured(
    options: &Options,
    place: &Place,
    corpus: Corpus,
    state: State,
    watcher: &dyn Watcher,
) -> Result<Vec<Runs>> {
    let cached = state == State::Rerun;
    let contenders = contenders(&options.program, &options.path, cached, place.may_lie());
    let home = Scratch::new(&options.dir, &format!("haul-bench-homes.{}", std::process::id()))?;
    let mut all: Vec<Runs> = contenders
        .into_iter()
        .map(|contender| Runs { contender, corpus, state, runs: Vec::new(), not: None })
        .collect();
    if state != State::Cold {
        place.warm()?;
    }
    let found = prepare(&mut all, place, home.path(), cached)?;
    for turn in turns(rounds(corpus, options.rounds), all.len()) {
        watcher.check()?;
        let runs = &mut all[turn.which];
        let what = format!("{} {}: {}", corpus.name(), state.name(), runs.contender.tool.name());
        watcher.step(turn.done, turn.of, &what);
        if runs.not.is_none() {
            match one(
                &runs.contender,
                place,
                state,
                &home.path().join(turn.which.to_string()),
                &found,
            ) {
                Ok(run) => runs.runs.push(run),
                Err(Error::Missing(why)) if runs.contender.tool != Tool::Haul => {
                    runs.not = Some(why)
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(all)
}

/// Gives each a home; what ours finds is what the others are compared with. Caches are filled.
fn prepare(all: &mut [Runs], place: &Place, homes: &Path, cached: bool) -> Result<Groups> {
    let mut found = Groups::new();
    for (number, runs) in all.iter_mut().enumerate() {
        let home = homes.join(number.to_string());
        fs::create_dir(&home).map_err(Error::other(format!("make {}", home.display())))?;
        let ours = runs.contender.tool == Tool::Haul;
        if ours || cached {
            match run_once(&runs.contender, &place.root, &home) {
                Ok((_, groups)) if ours => found = groups,
                Ok(_) => {}
                Err(Error::Missing(why)) if !ours => runs.not = Some(why),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(found)
}

fn one(
    contender: &Contender,
    place: &Place,
    state: State,
    home: &Path,
    found: &Groups,
) -> Result<Run> {
    let solid = place.rotational().filter(|_| contender.as_solid);
    let _solid = solid.map(|path| Setting::change(&path, "0")).transpose()?;
    if state == State::Cold {
        place.forget()?;
    }
    let ((cost, groups), traffic) = place.watched(|| run_once(contender, &place.root, home))?;
    let cached_bytes = (state == State::Cold).then(|| place.cached_bytes()).transpose()?;
    Ok(Run { cost, traffic, cached_bytes, groups: groups.len(), agrees: groups == *found })
}
