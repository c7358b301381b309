//! `haul tune`: explains writeback on this machine, recommends kernel settings, and changes them.

mod apply;
mod json;
mod persist;
mod revert;

use std::path::{Path, PathBuf};

use haul_disk::{KernelFiles, MountFacts, probe};
use haul_measure::Watcher;
use haul_measure::{RateOptions, Rotation, WriteRate, write_rate};
use haul_tuning::{
    Case, Finding, Load, MEASUREMENTS, Rate, RateSource, Rates, Setting, Target,
    objection_to_targets, text,
};
use serde_json::{Value, json};

use crate::args::TuneArgs;
use crate::console::Console;
use crate::output::{Name, Output};
use crate::probe::directory;
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use persist::PlannedFile;

pub(crate) fn run(args: &TuneArgs) -> Result {
    let files = args.system_root.as_ref().map_or_else(KernelFiles::default, KernelFiles::below);
    if args.revert {
        return revert::run(args, &files);
    }
    let machine = files.machine();
    let Targets { targets, is_whole, objections } = targets(args, &files)?;
    let case = Case { machine, targets, oddities: files.anomalies() };
    let findings = haul_tuning::advise(&case);
    let settings = haul_tuning::settings(&findings);
    let mut output = Output::new();
    if !args.json {
        output.bytes(text::text(&case, &findings).as_bytes())?;
    }
    if args.applies() {
        let settings = Settings { all: &settings, objections: &objections };
        apply_settings(args, &files, &case, &findings, settings, output)?;
    } else if args.json {
        output.line(json::json(&case, &findings, None))?;
        output.finish()?;
    } else {
        output.bytes(text::persist(&settings).as_bytes())?;
        output.finish()?;
    }
    if is_whole { Ok(()) } else { Err(Failure::reported()) }
}

/// The settings to change, and the objections against changing them.
#[derive(Clone, Copy)]
struct Settings<'a> {
    all: &'a [Setting],
    objections: &'a [String],
}

/// Changes the settings; with `--dry-run`, only prints them.
fn apply_settings(
    args: &TuneArgs,
    files: &KernelFiles,
    case: &Case,
    findings: &[Finding],
    Settings { all: settings, objections }: Settings<'_>,
    mut output: Output,
) -> Result {
    output.send()?;
    let is_refused = !objections.is_empty() && !settings.is_empty();
    if is_refused && !args.dry_run {
        output.finish()?;
        return Err(refused(objections));
    }
    let planned = match args.persist {
        true => persist::plan(args.system_root.as_deref(), settings)?,
        false => Vec::new(),
    };
    if !args.dry_run && !settings.is_empty() {
        apply::prepare(files, settings, args.undo_to.as_deref())?;
    }
    if !args.json {
        let reasons = if is_refused { objections } else { &[] };
        print_head(&mut output, settings, reasons, args.dry_run)?;
    }
    let mut report = |setting: &Setting| -> Result {
        if !args.json {
            output.line(format_args!("  {}", setting.describe()))?;
            output.line(format_args!("    undo: {}", setting.undo()))?;
            // Each change is printed immediately, so that an interrupted run has printed all of its
            // changes.
            output.send()?;
        }
        Ok(())
    };
    let applied = if args.dry_run {
        settings.iter().try_for_each(&mut report)?;
        apply::Applied { done: &[], failed: None }
    } else {
        apply::apply(files, settings, report)?
    };
    let is_complete = applied.failed.is_none() && !args.dry_run;
    let written = if is_complete { persist::write(&planned) } else { Ok(()) };
    let is_written = is_complete && written.is_ok();
    if args.json {
        let done: Vec<_> = applied.done.iter().map(json::setting).collect();
        let failed = applied.failed.as_ref().map(|(setting, error)| failed(setting, error));
        let persisted: Vec<_> =
            planned.iter().filter(|_| is_written).map(|file| file.name).collect();
        let done = json!({
            "set": done,
            "failed": failed,
            "persisted": persisted,
            "dry_run": args.dry_run,
            "refused": objections,
        });
        output.line(json::json(case, findings, Some(done)))?;
    } else if args.persist {
        if planned.is_empty() {
            output.line("no file to write; what --apply changed before lasts until reboot")?;
        }
        let words = if args.dry_run { "would write" } else { "wrote" };
        let files = if is_written || args.dry_run { &planned[..] } else { &[] };
        print_files(&mut output, files, words)?;
    } else {
        output.bytes(text::persist(settings).as_bytes())?;
    }
    output.finish()?;
    apply::partial_failure(applied).and(written)
}

/// Prints the line before the settings. `reasons` are those for which they would not be changed.
fn print_head(
    output: &mut Output,
    settings: &[Setting],
    reasons: &[String],
    is_dry_run: bool,
) -> Result {
    let head = match (settings, is_dry_run) {
        ([], _) => "no settings to change",
        (_, true) if !reasons.is_empty() => "would be refused",
        (_, true) => "would change",
        (_, false) => "changed",
    };
    output.line(format_args!("\n{head}"))?;
    reasons.iter().try_for_each(|reason| output.line(format_args!("  reason: {reason}")))?;
    output.send()
}

/// Prints the files that make the settings persistent.
fn print_files(output: &mut Output, files: &[PlannedFile], words: &str) -> Result {
    for file in files {
        output.line(format_args!("\n{words} {}", file.name))?;
        file.text.lines().try_for_each(|line| output.line(format_args!("  {line}")))?;
    }
    Ok(())
}

fn failed(setting: &Setting, error: &haul_disk::Error) -> Value {
    json!({ "name": setting.name, "path": setting.path, "why": error.source.to_string() })
}

/// Returns the failure of a run that must not change settings, because its measurements are
/// unreliable.
fn refused(objections: &[String]) -> Failure {
    let failure = Failure::new("nothing was changed: the measured rate is unreliable");
    let failure = objections.iter().fold(failure, |failure, reason| failure.advise(reason.clone()));
    failure.advise("repeat on an idle machine, or give the rate with --rate").exit(Exit::NotStarted)
}

/// The file systems to examine, with the results of the measurements.
struct Targets {
    targets: Vec<Target>,
    /// `true` if all requested measurements succeeded.
    is_whole: bool,
    /// Reasons why the measured rates are too unreliable to change settings.
    objections: Vec<String>,
}

/// Finds the file systems and the write rates of their disks. With `--apply`, each rate is measured
/// several times.
fn targets(args: &TuneArgs, files: &KernelFiles) -> Result<Targets> {
    let (mut is_whole, mut objections) = (true, Vec::new());
    let mut targets: Vec<Target> = Vec::new();
    if args.measure {
        objections.extend(load().and_then(Load::objection));
    }
    for (path, facts) in file_systems(args, files)? {
        if targets.iter().any(|known| known.facts == facts) {
            continue;
        }
        let (mut rotation, mut notes) = (Rotation::Unknown, Vec::new());
        let mut rate = Rate::by_kind(&facts);
        if let Some(given) = args.rate {
            rate = Rate::exactly(given, RateSource::Given);
        } else if args.measure && facts.device.is_some() {
            let times = if args.applies() { MEASUREMENTS } else { 1 };
            match measure(&path, times)? {
                Ok((measured, rates)) => {
                    objections.extend(rates.objection(&path.to_string_lossy()));
                    rate = Rate::exactly(rates.median(), RateSource::Measured);
                    rotation = measured.rotation;
                    notes = measured.notes;
                }
                Err(error) => {
                    let message = format!("cannot measure {}", Name(&path.to_string_lossy()));
                    print_message(&crate::report::chain(&message, Some(&error)));
                    is_whole = false;
                }
            }
        }
        let path = path.to_string_lossy().into_owned();
        targets.push(Target { facts, path, rate, rotation, notes });
    }
    objections.extend(objection_to_targets(&targets));
    Ok(Targets { targets, is_whole, objections })
}

/// Returns the load average of the machine; returns `None` if it is unknown.
fn load() -> Option<Load> {
    let cores = std::thread::available_parallelism().ok()?.get();
    Load::parse(&std::fs::read_to_string("/proc/loadavg").ok()?, cores)
}

/// Returns the selected file systems, each with a path on it.
fn file_systems(args: &TuneArgs, files: &KernelFiles) -> Result<Vec<(PathBuf, MountFacts)>> {
    if args.all {
        // Read-only file systems are left out, because they have no writers.
        let all = files.all_mounted().into_iter().filter(|facts| !facts.has("ro"));
        let named = |facts: MountFacts| {
            let point = facts.mount.as_ref().map(|mount| PathBuf::from(&mount.point));
            (point.unwrap_or_default(), facts)
        };
        return Ok(all.map(named).collect());
    }
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here } else { args.paths.as_slice() };
    let facts = |path: &PathBuf| {
        let storage = probe(path).or_not_start(|| format!("cannot probe {}", path.display()))?;
        Ok((path.clone(), files.mounted(&storage)))
    };
    paths.iter().map(facts).collect()
}

/// Measures `times` times how fast the disk below a path writes, with a progress bar. Returns the
/// first measurement and all rates, or the error of a failed measurement. The outer result is an
/// error if a termination signal interrupted the measurement.
fn measure(
    path: &Path,
    times: usize,
) -> Result<std::result::Result<(WriteRate, Rates), haul_measure::Error>> {
    let console = Console::new("the write in progress")?;
    let once = || write_rate(&RateOptions::new(directory(path)), &console as &dyn Watcher);
    let measured = once().and_then(|first| {
        let others: std::result::Result<Vec<_>, _> =
            (1..times).map(|_| once().map(|measured| measured.bytes_per_s())).collect();
        let rates = Rates::new(first.bytes_per_s(), others?);
        Ok((first, rates))
    });
    match console.finish() {
        Some(exit) if measured.is_err() => {
            Err(Failure::new("the measurement was interrupted").exit(exit))
        }
        _ => Ok(measured),
    }
}
