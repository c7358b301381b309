//! Runs the benchmarks of disks one after the other with a limit of time, describes the disk in one
//! line, and judges the claims of five published texts.
//!
//! Each part writes into one directory, which is removed even if the process is killed. The results
//! are saved after each part.

mod claim;
mod disk;
mod part;
mod progress;
mod text;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haul_disk::{Disk, OsDisk, error_chain, probe};
use haul_measure::{Error, Result, Watcher};
use serde_json::{Value as Json, json};

use crate::guardian::Guardian;
use crate::host::Host;
use crate::report::{Circumstances, Report};
use claim::{Judgement, judge};
use disk::{DiskFigures, measure_disk};
pub use part::Part;
use part::{Plan, SECONDS_MAX, SECONDS_MAX_QUICK};
use progress::PartWatcher;

/// Options of `haul bench all`.
#[derive(Debug, Clone, clap::Parser)]
pub struct AllOptions {
    /// Directory for the test files
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Measure with less data, within a minute
    #[arg(long)]
    pub quick: bool,
    /// Parts of the run; all if none is named
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<Part>,
}

impl AllOptions {
    fn selects(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// The results of all parts so far.
#[derive(Debug, Clone)]
pub struct Run {
    circumstances: Circumstances,
    host: Host,
    is_quick: bool,
    disk: Option<DiskFigures>,
    reports: Vec<Report>,
    /// The parts without results, and the reason.
    missing: Vec<(Part, String)>,
}

/// Runs the selected parts in `options.dir`. Calls `save` with the results so far after each part.
/// A part that fails or takes too long is listed as missing. All files are removed when this
/// returns, and also when the process is killed.
///
/// # Errors
/// Returns an error if the directory cannot be used, and the errors of `save`.
pub fn run(
    options: &AllOptions,
    circumstances: Circumstances,
    watcher: &dyn Watcher,
    mut save: impl FnMut(&Run) -> Result<()>,
) -> Result<Run> {
    let host = Host::here().with_storage("", &probe(&options.dir)?);
    let mut run = Run {
        circumstances,
        host,
        is_quick: options.quick,
        disk: None,
        reports: Vec::new(),
        missing: Vec::new(),
    };
    let (dir, _guardian) = Guardian::for_tree(&options.dir, "haul-bench-all")?;
    let seconds_max = if options.quick { SECONDS_MAX_QUICK } else { SECONDS_MAX };
    let end = Instant::now() + Duration::from_secs(seconds_max);
    let mut plans = Vec::new();
    for part in Part::ALL {
        match part.plan(options.quick).filter(|_| options.selects(part)) {
            Some(plan) => plans.push((part, plan)),
            None => run.missing.push((part, not_selected(options, part))),
        }
    }
    let of: u64 = plans.iter().map(|(_, plan)| plan.seconds).sum();
    let mut before = 0;
    for (part, plan) in plans {
        let watcher = PartWatcher {
            inner: watcher,
            name: part.name(),
            before,
            seconds: plan.seconds,
            of,
            deadline: PartWatcher::deadline(plan.seconds, of - before - plan.seconds, end),
            furthest: Cell::new(0),
        };
        if let Err(why) = run.attempt(part, plan, &dir, &watcher) {
            run.missing.push((part, why));
        }
        before += plan.seconds;
        run.circumstances = run.circumstances.clone().at_end();
        save(&run)?;
    }
    Ok(run)
}

fn not_selected(options: &AllOptions, part: Part) -> String {
    match options.selects(part) {
        true => "it is not part of --quick".to_owned(),
        false => "it was not selected with --only".to_owned(),
    }
}

impl Run {
    /// Runs a part; returns the reason if it has no results.
    fn attempt(
        &mut self,
        part: Part,
        plan: Plan,
        dir: &Path,
        watcher: &PartWatcher<'_>,
    ) -> Result<(), String> {
        if watcher.inner.is_cancelled() {
            return Err("the run was stopped before".to_owned());
        }
        if watcher.is_late() {
            return Err("the time of the whole run was used up".to_owned());
        }
        has_space(dir, plan)?;
        watcher.step(0, 1, "starting");
        self.measure(part, plan, dir, watcher).map_err(|error| {
            if watcher.inner.is_cancelled() {
                "the run was stopped during this part".to_owned()
            } else if watcher.is_late() {
                "it took longer than its limit of time".to_owned()
            } else {
                error_chain(&error)
            }
        })
    }

    fn measure(&mut self, part: Part, plan: Plan, dir: &Path, watcher: &dyn Watcher) -> Result<()> {
        if part == Part::Disk {
            self.disk = Some(measure_disk(dir, self.is_quick, watcher)?);
            return Ok(());
        }
        let start = Circumstances::at_start(part.command(plan));
        if let Some(report) = part.run(plan, dir, watcher)? {
            self.reports.push(Report { circumstances: start.at_end(), ..report });
        }
        Ok(())
    }

    /// Describes the disk in one line; `None` if it was not measured.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let cached = self.reports.iter().find(|it| it.bench == Part::DirectOrCached.name());
        let crossover = cached.and_then(|report| report.ratios.get("crossover"));
        Some(self.disk.as_ref()?.line(crossover.map(|ratio| ratio.value)))
    }

    fn judgements(&self) -> Vec<Judgement> {
        let why = |part| {
            let missing = self.missing.iter().find(|missing| missing.0 == part);
            missing.map(|(_, why)| why.clone())
        };
        judge(&self.reports, why)
    }

    /// Returns a JSON object with the circumstances, the line on the disk and its figures, the
    /// answer to each claim, the missing parts, and the reports of all parts.
    #[must_use]
    pub fn json(&self) -> String {
        let judgements = self.judgements();
        let missing = self.missing.iter();
        let missing = missing.map(|(part, why)| json!({ "part": part.name(), "why": why }));
        let run = json!({
            "bench": "all", "quick": self.is_quick, "circumstances": self.circumstances.json(),
            "host": self.host.json(), "line": self.line(),
            "disk": self.disk.as_ref().map(DiskFigures::json),
            "claims": judgements.iter().map(Judgement::json).collect::<Vec<_>>(),
            "missing": missing.collect::<Vec<_>>(),
            "reports": self.reports.iter().map(Report::to_json).collect::<Vec<_>>(),
        });
        format!("{run:#}\n")
    }
}

impl Judgement {
    fn json(&self) -> Json {
        json!({
            "text": self.claim.text, "claim": self.claim.sentence,
            "figure_of_text": self.claim.figure, "bench": self.claim.part.name(),
            "ratio": self.claim.ratio, "figure_here": self.figure(),
            "answer": self.answer.name(), "meaning": self.meaning,
        })
    }
}

/// Fails unless the files of a part fit, with a tenth of the space left free.
fn has_space(dir: &Path, plan: Plan) -> Result<(), String> {
    let free = OsDisk::open(dir).and_then(|disk| disk.free_bytes());
    let free = free.map_err(|error| error_chain(&Error::from(error)))?;
    let needed = (plan.space_mib << 20) / 9 * 10;
    match free {
        Some(free) if free < needed => {
            Err(format!("its files need {} MiB, and {} MiB are free", needed >> 20, free >> 20))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_checked_before_a_part() {
        let dir = tempfile::tempdir().unwrap();
        let plan = |space_mib| Plan { options: "", seconds: 1, space_mib };
        assert_eq!(has_space(dir.path(), plan(0)), Ok(()));
        let why = has_space(dir.path(), plan(1 << 40)).unwrap_err();
        assert!(why.contains("its files need") && why.contains("MiB are free"), "{why}");
    }
}
