//! Executes the subcommands of `haul dups`: reads a report, and removes, links, deduplicates or
//! moves the duplicates that the report lists.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use haul_duplicates::Syntax;
use haul_duplicates::act::{Action, Events, Executor, Options, SkipReason, script};
use haul_duplicates::keep::{Priority, Rules, Selection};
use haul_duplicates::report::{Report, Search, Timestamp, read};

use super::place::{absolute, names, paths};
use super::search::transform;
use crate::args::{ActionArgs, ActionOptions, PriorityArg};
use crate::output::{Name, Output};
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::signals::Stop;
use crate::units::{Bytes, Count};

/// Reads the report and processes its groups in order, until a signal requests a stop.
pub(super) fn run(args: &ActionArgs, action: Action) -> Result {
    let report = read_report(args.report.as_deref())?;
    let search = search(&report)?;
    let command = search.transform.as_deref();
    let transform = transform(command, search.transform_options, search.hash)?;
    let (transform, _transform_dir) = transform.unzip();
    let options = Options {
        rules: rules(&args.options, &search, &report)?,
        lock: !args.options.no_lock,
        dry_run: args.options.dry_run,
        transform,
        ignore_permissions: args.options.ignore_permissions,
        action: action.clone(),
    };
    let script = script_output(&args.options)?;
    let mut summary = Summary { action, script, files: 0, bytes: 0, skipped: 0, failed: None };
    let mut executor = Executor::new(options);
    let stop = Stop::on_signals("the current file")?;
    for group in &report.groups {
        if stop.requested().is_some() || summary.failed.is_some() {
            break;
        }
        executor.process(group, &mut summary);
    }
    summary.finish(stop.requested())
}

fn read_report(path: Option<&Path>) -> Result<Report> {
    let name = path.map_or("stdin".to_owned(), |path| path.display().to_string());
    let read = match path {
        None => read(&mut io::stdin().lock()),
        Some(path) => {
            let file = File::open(path).or_fail(|| format!("cannot open {name}"));
            read(&mut BufReader::new(file.map_err(|failure| failure.exit(Exit::NotStarted))?))
        }
    };
    read.or_fail(|| format!("cannot read the report {name}")).map_err(|failure| {
        failure
            .exit(Exit::NotStarted)
            .advise("nothing was changed; \"haul dups PATH > report\" writes a report")
    })
}

/// Returns the options of the search that wrote the report. Fails if the command in the header of
/// the report is not a search.
fn search(report: &Report) -> Result<Search> {
    report.header.search().ok_or_else(|| {
        let command = report.header.command.join(OsStr::new(" "));
        let command = command.display();
        let message = format!("cannot parse the search command in the report: {command}");
        Failure::new(message).advise("run \"haul dups\" again").exit(Exit::Usage)
    })
}

/// Returns the directories of the search if it had `--isolate`, which counts all equal files below
/// one of these directories as one replica.
fn isolated(search: &Search) -> Result<Vec<PathBuf>> {
    if !search.isolate {
        return Ok(Vec::new());
    }
    search.roots().ok_or_else(|| {
        let message = "cannot apply --isolate: the report lacks its paths, which came from stdin";
        Failure::new(message).advise("repeat them with --isolate").exit(Exit::Usage)
    })
}

fn rules(how: &ActionOptions, search: &Search, report: &Report) -> Result<Rules> {
    let (base, syntax) = (absolute(Path::new("."))?, Syntax::default());
    let modified_before = match &how.modified_before {
        None => report.header.timestamp,
        Some(text) => Timestamp::parse(text).ok_or_else(|| {
            Failure::new(format!("invalid time \"{text}\""))
                .advise("for example 2026-11-21, \"2026-11-21 15:42\" or 2026-11-21T15:42:04Z")
                .exit(Exit::Usage)
        })?,
    };
    let isolate = match &how.isolate[..] {
        [] => isolated(search)?,
        dirs => dirs.iter().map(|dir| absolute(dir)).collect::<Result<_>>()?,
    };
    Ok(Rules {
        keep_count: how.rf_over.unwrap_or_else(|| search.keep_count()),
        priorities: how.priority.iter().copied().map(priority).collect(),
        keep: Selection {
            names: names(&how.keep_name, syntax)?,
            paths: paths(&how.keep_path, &base, syntax)?,
        },
        keep_roots: how.keep_root.iter().map(|dir| absolute(dir)).collect::<Result<_>>()?,
        drop: Selection {
            names: names(&how.name, syntax)?,
            paths: paths(&how.path, &base, syntax)?,
        },
        isolate,
        match_links: how.match_links || search.match_links,
        modified_before: Some(modified_before),
        // After a search with `--transform`, the report has the lengths of the command's outputs,
        // so the lengths of the files cannot be checked.
        check_bytes: !how.no_check_size && search.transform.is_none(),
    })
}

fn priority(priority: PriorityArg) -> Priority {
    match priority {
        PriorityArg::Top => Priority::Top,
        PriorityArg::Bottom => Priority::Bottom,
        PriorityArg::Newest => Priority::Newest,
        PriorityArg::Oldest => Priority::Oldest,
        PriorityArg::MostRecentlyModified => Priority::MostRecentlyModified,
        PriorityArg::LeastRecentlyModified => Priority::LeastRecentlyModified,
        PriorityArg::MostRecentlyAccessed => Priority::MostRecentlyAccessed,
        PriorityArg::LeastRecentlyAccessed => Priority::LeastRecentlyAccessed,
        PriorityArg::MostRecentStatusChange => Priority::MostRecentStatusChange,
        PriorityArg::LeastRecentStatusChange => Priority::LeastRecentStatusChange,
        PriorityArg::MostNested => Priority::MostNested,
        PriorityArg::LeastNested => Priority::LeastNested,
    }
}

/// Returns the output for the commands that a dry run prints, or `None` without `--dry-run`.
fn script_output(options: &ActionOptions) -> Result<Option<Box<dyn Write>>> {
    Ok(match (options.dry_run, &options.output) {
        (false, _) => None,
        (true, None) => Some(Box::new(Output::new())),
        (true, Some(path)) => {
            let file =
                File::create(path).or_fail(|| format!("cannot create {}", path.display()))?;
            Some(Box::new(BufWriter::new(file)))
        }
    })
}

/// A receiver of events that counts the processed files and reports the skipped files.
struct Summary {
    action: Action,
    script: Option<Box<dyn Write>>,
    files: u64,
    bytes: u64,
    skipped: u64,
    failed: Option<io::Error>,
}

impl Events for Summary {
    fn done(&mut self, keep: &Path, drop: &Path, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
        let Some(out) = &mut self.script else { return };
        for line in script(&self.action, keep, drop, bytes) {
            if let Err(error) = out.write_all(&[&line[..], b"\n"].concat()) {
                self.failed.get_or_insert(error);
            }
        }
    }

    fn skipped(&mut self, path: &Path, why: &SkipReason) {
        if !why.is_fine() {
            self.skipped += 1;
            let text = format!("skipped {}: {why}", path.display());
            print_message(&Name(&text).to_string());
        }
    }
}

impl Summary {
    fn finish(mut self, stopped: Option<Exit>) -> Result {
        let is_dry = self.script.is_some();
        if let Some(out) = &mut self.script
            && let Err(error) = out.flush()
        {
            self.failed.get_or_insert(error);
        }
        if let Some(error) = self.failed {
            return Err(crate::output::unwritten(error));
        }
        let (files, bytes) = (Count(self.files, "file"), Bytes(self.bytes));
        let skipped = self.skipped;
        let done = match (&self.action, is_dry) {
            (Action::Remove, false) => format!("removed {files} ({bytes})"),
            (Action::Remove, true) => format!("would remove {files} ({bytes})"),
            (Action::HardLink | Action::SymLink, false) => {
                format!("replaced {files} ({bytes}) with links")
            }
            (Action::HardLink | Action::SymLink, true) => {
                format!("would replace {files} ({bytes}) with links")
            }
            (Action::Dedupe, false) => format!("deduplicated {files} ({bytes})"),
            (Action::Dedupe, true) => format!("would deduplicate {files} ({bytes})"),
            (Action::Move(_), false) => format!("moved {files} ({bytes})"),
            (Action::Move(_), true) => format!("would move {files} ({bytes})"),
        };
        let skip = if is_dry { "skip" } else { "skipped" };
        print_message(&format!("{done}, {skip} {skipped}"));
        match stopped {
            Some(exit) => Err(Failure::reported().exit(exit)),
            None if skipped > 0 => Err(Failure::reported()),
            None => Ok(()),
        }
    }
}
