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
use serde_json::json;

use super::place::{absolute, names, paths};
use super::search::transform;
use crate::args::{ActionArgs, ActionOptions, PriorityArg};
use crate::json::set_path;
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
    let output = Lines::new(&args.options)?;
    let is_dry_run = args.options.dry_run;
    let mut summary =
        Summary { action, output, is_dry_run, files: 0, bytes: 0, skipped: 0, failed: None };
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

/// The lines that are printed about the files.
enum Lines {
    None,
    /// The commands that a dry run prints.
    Script(Box<dyn Write>),
    Json(Output),
}

impl Lines {
    fn new(options: &ActionOptions) -> Result<Self> {
        Ok(match (options.json, options.dry_run, &options.output) {
            (true, ..) => Self::Json(Output::new()),
            (false, false, _) => Self::None,
            (false, true, None) => Self::Script(Box::new(Output::new())),
            (false, true, Some(path)) => {
                let file = File::create(path);
                let file = file.or_not_start(|| format!("cannot create {}", path.display()))?;
                Self::Script(Box::new(BufWriter::new(file)))
            }
        })
    }

    fn send(&mut self) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Script(out) => out.flush(),
            Self::Json(out) => Write::flush(out),
        }
    }
}

/// A receiver of events that counts the processed files and reports the skipped files.
struct Summary {
    action: Action,
    output: Lines,
    is_dry_run: bool,
    files: u64,
    bytes: u64,
    skipped: u64,
    failed: Option<io::Error>,
}

impl Events for Summary {
    fn done(&mut self, keep: &Path, drop: &Path, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
        let written = match &mut self.output {
            Lines::None => Ok(()),
            Lines::Script(out) => script(&self.action, keep, drop, bytes)
                .iter()
                .try_for_each(|line| out.write_all(&[&line[..], b"\n"].concat())),
            Lines::Json(out) => {
                let mut line = json!({ "kind": "file", "bytes": bytes });
                set_path(&mut line, "path", drop);
                set_path(&mut line, "kept", keep);
                writeln!(out, "{line}")
            }
        };
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }

    fn skipped(&mut self, path: &Path, why: &SkipReason) {
        if !why.is_fine() {
            self.skipped += 1;
            if let Lines::Json(out) = &mut self.output {
                let mut line = json!({ "kind": "skipped", "reason": why.to_string() });
                set_path(&mut line, "path", path);
                if let Err(error) = writeln!(out, "{line}") {
                    self.failed.get_or_insert(error);
                }
                return;
            }
            let text = format!("skipped {}: {why}", path.display());
            print_message(&Name(&text).to_string());
        }
    }
}

impl Summary {
    fn finish(mut self, stopped: Option<Exit>) -> Result {
        let is_dry = self.is_dry_run;
        if let Lines::Json(out) = &mut self.output {
            let totals = json!({
                "kind": "summary",
                "action": action_name(&self.action),
                "dry_run": is_dry,
                "files": self.files,
                "bytes": self.bytes,
                "skipped": self.skipped,
            });
            if let Err(error) = writeln!(out, "{totals}") {
                self.failed.get_or_insert(error);
            }
        }
        if let Err(error) = self.output.send() {
            self.failed.get_or_insert(error);
        }
        if let Some(error) = self.failed.take() {
            return Err(crate::output::unwritten(error));
        }
        if !matches!(self.output, Lines::Json(_)) {
            print_message(&self.totals());
        }
        match stopped {
            Some(exit) => Err(Failure::reported().exit(exit)),
            None if self.skipped > 0 => Err(Failure::reported()),
            None => Ok(()),
        }
    }

    /// Describes the totals.
    fn totals(&self) -> String {
        let is_dry = self.is_dry_run;
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
        format!("{done}, {skip} {skipped}")
    }
}

/// Returns the name of the subcommand.
fn action_name(action: &Action) -> &'static str {
    match action {
        Action::Remove => "remove",
        Action::HardLink => "link",
        Action::SymLink => "symlink",
        Action::Dedupe => "dedupe",
        Action::Move(_) => "move",
    }
}
