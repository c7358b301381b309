//! Doing something about what a report says.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use haul_duplicates::Syntax;
use haul_duplicates::act::{Action, Actor, Events, Left, Options, script};
use haul_duplicates::keep::{Priority, Rules, Selection};
use haul_duplicates::report::{Moment, Report, read};

use super::inherit;
use super::place::{absolute, names, paths};
use super::search::{Passing, transform};
use crate::args::{ActionArgs, HowArgs, PriorityArg, SearchArgs};
use crate::output::{Name, Output};
use crate::report::{Exit, Failure, OrFail, Result, say};
use crate::signals::Stop;
use crate::units::{Bytes, Count};

/// Reads the report, and acts on one group after the other.
pub(super) fn run(args: &ActionArgs, action: Action) -> Result {
    let report = read_report(args.report.as_deref())?;
    let search = inherit::search(&report.header)?;
    let passing = Passing::new()?;
    let transform = transform(&search, &passing)?;
    let options = Options {
        rules: rules(&args.how, &search, &report)?,
        lock: !args.how.no_lock,
        dry_run: args.how.dry_run,
        transform,
        action: action.clone(),
    };
    let mut tell =
        Tell { action, script: lines(&args.how)?, files: 0, bytes: 0, left: 0, failed: None };
    let mut actor = Actor::new(options);
    let stop = Stop::on_signals("the file at hand")?;
    for group in &report.groups {
        if stop.asked().is_some() || tell.failed.is_some() {
            break;
        }
        actor.act(group, &mut tell);
    }
    tell.finish(stop.asked())
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
    read.or_fail(|| format!("nothing is done: {name}")).map_err(|failure| {
        failure.exit(Exit::NotStarted).advise("\"haul dups PATH > report\" makes one")
    })
}

fn rules(how: &HowArgs, search: &SearchArgs, report: &Report) -> Result<Rules> {
    let (base, syntax) = (absolute(Path::new("."))?, Syntax::default());
    let modified_before = match &how.modified_before {
        None => report.header.begun,
        Some(text) => Moment::parse(text).ok_or_else(|| {
            Failure::new(format!("\"{text}\" is no moment"))
                .advise("write it like 2026-11-21, \"2026-11-21 15:42\" or 2026-11-21T15:42:04Z")
                .exit(Exit::Usage)
        })?,
    };
    let isolate = match &how.isolate[..] {
        [] => inherit::isolated(search, &report.header)?,
        dirs => dirs.iter().map(|dir| absolute(dir)).collect::<Result<_>>()?,
    };
    Ok(Rules {
        keep_count: how.rf_over.unwrap_or_else(|| inherit::keep_count(search)),
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
        // The lengths of transformed files are not those of the files.
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

/// Where the lines of a dry run go; nowhere, when it is none.
fn lines(how: &HowArgs) -> Result<Option<Box<dyn Write>>> {
    Ok(match (how.dry_run, &how.output) {
        (false, _) => None,
        (true, None) => Some(Box::new(Output::new())),
        (true, Some(path)) => {
            let file = File::create(path).or_fail(|| format!("cannot make {}", path.display()))?;
            Some(Box::new(BufWriter::new(file)))
        }
    })
}

/// Counts what is done, and tells what is not.
struct Tell {
    action: Action,
    script: Option<Box<dyn Write>>,
    files: u64,
    bytes: u64,
    left: u64,
    failed: Option<io::Error>,
}

impl Events for Tell {
    fn done(&mut self, keep: &Path, drop: &Path, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
        let Some(out) = &mut self.script else { return };
        for line in script(&self.action, keep, drop, bytes) {
            if let Err(error) = writeln!(out, "{line}") {
                self.failed.get_or_insert(error);
            }
        }
    }

    fn left(&mut self, path: &Path, why: &Left) {
        if !why.is_fine() {
            self.left += 1;
            let text = format!("{} is left as it is: {why}", path.display());
            say(&Name(&text).to_string());
        }
    }
}

impl Tell {
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
        let what = match (&self.action, is_dry) {
            (Action::Remove, false) => "removed",
            (Action::HardLink | Action::SymLink, false) => "replaced by links",
            (Action::Share, false) => "made to share their blocks",
            (Action::Move(_), false) => "moved",
            (_, true) => "would be dealt with",
        };
        say(&format!("{files} ({bytes}) {what}, {} left as they are", self.left));
        match stopped {
            Some(exit) => Err(Failure::told().exit(exit)),
            None if self.left > 0 => Err(Failure::told()),
            None => Ok(()),
        }
    }
}
