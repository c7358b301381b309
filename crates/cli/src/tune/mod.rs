//! `haul tune`: what becomes of writes on this machine, what could be better, and `--apply`.

mod advice;
mod apply;
mod case;
mod json;
mod outlook;
mod rate;
mod setting;
mod show;
mod words;

use std::path::{Path, PathBuf};

use haul_bench::Watcher;
use haul_bench::storage::{RateOptions, Rotation, WriteRate, write_rate};
use haul_disk::{KernelFiles, MountFacts, probe};
use serde_json::{Value, json};

use crate::args::TuneArgs;
use crate::console::Console;
use crate::output::{Name, Output};
use crate::probe::directory;
use crate::report::{Exit, Failure, OrFail, Result, say};
use advice::Finding;
use case::{Case, Place};
use rate::{Known, Rate};
use setting::Setting;

pub(crate) fn run(args: &TuneArgs) -> Result {
    let files = args.system_root.as_ref().map_or_else(KernelFiles::default, KernelFiles::below);
    let machine = files.machine();
    let (places, is_whole) = places(args, &files)?;
    let case = Case { machine, places, oddities: files.oddities() };
    let findings = advice::advise(&case);
    let settings = advice::settings(&findings);
    let mut output = Output::new();
    if !args.json {
        output.bytes(show::text(&case, &findings).as_bytes())?;
    }
    if args.apply {
        carry_out(args, &files, &case, &findings, &settings, output)?;
    } else if args.json {
        output.line(json::json(&case, &findings, None))?;
        output.finish()?;
    } else {
        output.bytes(show::keep(&settings).as_bytes())?;
        output.finish()?;
    }
    if is_whole { Ok(()) } else { Err(Failure::told()) }
}

/// `--apply`, or what it would do.
fn carry_out(
    args: &TuneArgs,
    files: &KernelFiles,
    case: &Case,
    findings: &[Finding],
    settings: &[Setting],
    mut output: Output,
) -> Result {
    output.send()?;
    if !args.dry_run && !settings.is_empty() {
        apply::prepare(files, settings, args.undo_to.as_deref())?;
    }
    if !args.json {
        let head = match (settings, args.dry_run) {
            ([], _) => "nothing to set",
            (_, true) => "would be set",
            (_, false) => "set",
        };
        output.line(format_args!("\n{head}"))?;
        output.send()?;
    }
    let mut tell = |setting: &Setting| -> Result {
        if !args.json {
            output.line(format_args!("  {}", setting.told()))?;
            output.line(format_args!("    undo: {}", setting.undo()))?;
            // Whoever is stopped now knows what was done.
            output.send()?;
        }
        Ok(())
    };
    let applied = if args.dry_run {
        settings.iter().try_for_each(&mut tell)?;
        apply::Applied { done: &[], failed: None }
    } else {
        apply::apply(files, settings, tell)?
    };
    if args.json {
        let done: Vec<_> = applied.done.iter().map(json::setting).collect();
        let failed = applied.failed.as_ref().map(|(setting, error)| failed(setting, error));
        let done = json!({ "set": done, "failed": failed, "dry_run": args.dry_run });
        output.line(json::json(case, findings, Some(done)))?;
    } else {
        output.bytes(show::keep(settings).as_bytes())?;
    }
    output.finish()?;
    apply::in_the_middle(applied)
}

fn failed(setting: &Setting, error: &haul_disk::Error) -> Value {
    json!({ "name": setting.name, "path": setting.path, "why": error.source.to_string() })
}

/// What was asked about, with the rate of its disk; and whether all of it could be measured.
fn places(args: &TuneArgs, files: &KernelFiles) -> Result<(Vec<Place>, bool)> {
    let mut is_whole = true;
    let mut places: Vec<Place> = Vec::new();
    for (path, facts) in asked(args, files)? {
        if places.iter().any(|known| known.facts == facts) {
            continue;
        }
        let (mut rotation, mut notes) = (Rotation::Unknown, Vec::new());
        let mut rate = Rate::by_kind(&facts);
        if let Some(given) = args.rate {
            rate = Rate::exactly(given, Known::Given);
        } else if args.measure && facts.device.is_some() {
            match measure(&path)? {
                Ok(measured) => {
                    rate = Rate::exactly(measured.bytes_per_s(), Known::Measured);
                    rotation = measured.rotation;
                    notes = measured.notes;
                }
                Err(error) => {
                    let what = format!("cannot measure {}", Name(&path.to_string_lossy()));
                    say(&crate::report::chain(&what, Some(&error)));
                    is_whole = false;
                }
            }
        }
        let path = path.to_string_lossy().into_owned();
        places.push(Place { facts, path, rate, rotation, notes });
    }
    Ok((places, is_whole))
}

/// The file systems that are meant, each with a path on it.
fn asked(args: &TuneArgs, files: &KernelFiles) -> Result<Vec<(PathBuf, MountFacts)>> {
    if args.all {
        // Nobody writes to what is read-only.
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
        let storage = probe(path).or_fail(|| format!("cannot find out about {}", path.display()));
        let storage = storage.map_err(|failure| failure.exit(Exit::NotStarted))?;
        Ok((path.clone(), files.mounted(&storage)))
    };
    paths.iter().map(facts).collect()
}

/// Measures the disk below a path, with a bar on stderr; Ctrl-C ends the program.
fn measure(path: &Path) -> Result<std::result::Result<WriteRate, haul_bench::Error>> {
    let console = Console::new("the write under way")?;
    let measured = write_rate(&RateOptions::new(directory(path)), &console as &dyn Watcher);
    match console.finish() {
        Some(exit) if measured.is_err() => Err(Failure::new("haul tune was stopped").exit(exit)),
        _ => Ok(measured),
    }
}
