//! The append log beside the raw disk, a file that grows, and other logs.
//!
//! Every contender, ours and others alike, is driven by the same loop, [`drive`], in rounds that
//! change the order. The others bring native code; a program of their own drives them.

mod contender;
mod drive;
mod group;
mod ours;
mod ratios;
mod raw;
mod recovery;
pub(crate) mod rivals;
mod rotation;
mod rounds;
mod rows;
mod sample;
mod scratch;
mod steady;

use std::path::PathBuf;
use std::time::Duration;

use haul_disk::{Storage, probe};

pub use contender::{Contender, Counts, Failure};
pub use drive::{Load, drive};
pub use rivals::RIVALS_PROGRAM;
pub use sample::Sample;
pub(crate) use scratch::Scratch;

use crate::error::Result;
use crate::host::{Host, load};
use crate::log::group::Group;
use crate::log::rivals::Rivals;
use crate::report::Report;
use crate::stats::{Latencies, Spread};
use crate::watch::Watcher;

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory to measure in. Everything made in it is removed again, unless the process
    /// is killed.
    pub dir: PathBuf,
    /// Numbers of writers.
    pub writers: Vec<usize>,
    /// Lengths of records.
    pub record_bytes: Vec<usize>,
    /// How often everything is measured.
    pub rounds: usize,
    /// How long each is measured.
    pub measure: Duration,
    /// The program that drives the rivals, if it was built.
    pub rivals: Option<PathBuf>,
    /// Whether rivals are measured in all forms, or each in its best one alone.
    pub all_forms: bool,
    /// How many changes of segments are looked at; 0 for none.
    pub rotations: usize,
    /// The length of the log whose opening is timed; 0 for none.
    pub recovery_bytes: u64,
}

/// Measures, and tells what came out.
///
/// # Errors
/// When the directory cannot be used, or ours fails. A rival that fails is told in its row.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let storage = probe(&options.dir)?;
    let scratch = Scratch::new(&options.dir, &format!("haul-bench-log.{}", std::process::id()))?;
    let rivals = options.rivals.as_deref().map(Rivals::ask).transpose()?;
    let plan = rounds::Plan::new(options, rivals, storage.device.as_ref(), &scratch, watcher);
    let load = load();
    let groups = plan.groups()?;

    let host = Host::here().with_storage("", &storage);
    let mut report = Report::new("log", host, rows::COLUMNS, rows::BAR);
    report.rows = rows::rows(&groups);
    report.ratios = ratios::ratios(&groups);
    report.notes.extend(groups.iter().map(dropped));
    report.notes.extend(plan.notes());
    report.notes.extend(load);
    steady(options, &storage, &scratch, watcher, &mut report)?;
    if options.rotations > 0 {
        rotation(options.rotations, &scratch, watcher, &mut report)?;
    }
    if options.recovery_bytes > 0 {
        recovery(options, &scratch, watcher, &mut report)?;
    }
    Ok(report)
}

fn dropped(group: &Group) -> String {
    let Group { record_bytes, writers, rounds, .. } = group;
    let kept = group.kept().len();
    format!(
        "{record_bytes} bytes, {writers} writers: {kept} of {rounds} rounds count; the others were \
         dropped, since their floor was more than a fifth off the median"
    )
}

fn steady(
    options: &Options,
    storage: &Storage,
    scratch: &Scratch,
    watcher: &dyn Watcher,
    report: &mut Report,
) -> Result<()> {
    watcher.step(0, 1, "what a commit asks of the disk");
    watcher.check()?;
    let scratch = Scratch::new(scratch.path(), "steady")?;
    let (counts, why) = steady::counts(storage, &scratch, options.rounds)?;
    report.ratios.extend(counts);
    report.notes.extend(why);
    Ok(())
}

fn rotation(
    changes: usize,
    scratch: &Scratch,
    watcher: &dyn Watcher,
    report: &mut Report,
) -> Result<()> {
    watcher.step(0, 1, "changes of segments");
    let scratch = Scratch::new(scratch.path(), "rotation")?;
    let jitter = rotation::jitter(&scratch, changes, watcher)?;
    if let Some(ratio) = jitter.p999_ratio() {
        report.ratios.insert("rotation_p999_vs_steady".into(), ratio);
    }
    let tell = |times: &Latencies| {
        let us = times.percentile_us(99.9).unwrap_or_default();
        format!("{us:.0} µs of {}", times.count())
    };
    report.notes.push(format!(
        "{} changes of segments, p99.9 of the appends around them: {}; of the others: {}",
        jitter.changes,
        tell(&jitter.around),
        tell(&jitter.steady),
    ));
    Ok(())
}

fn recovery(
    options: &Options,
    scratch: &Scratch,
    watcher: &dyn Watcher,
    report: &mut Report,
) -> Result<()> {
    watcher.step(0, 1, "opening a log");
    let scratch = Scratch::new(scratch.path(), "recovery")?;
    let found = recovery::recovery(&scratch, options.recovery_bytes, options.rounds, watcher)?;
    if let Some(ratio) = found.ratio() {
        report.ratios.insert("recovery_vs_direct_read".into(), ratio);
    }
    let tell = |seconds: &[f64]| {
        let Some(Spread { min, median, max }) = Spread::of(seconds) else { return String::new() };
        format!("{median:.2} s ({min:.2} to {max:.2})")
    };
    report.notes.push(format!(
        "a closed log of {} MiB opens cold in {}; reading the same files with direct I/O, 4 MiB \
         at a time, takes {}",
        found.bytes >> 20,
        tell(&found.open),
        tell(&found.direct_read),
    ));
    Ok(())
}
