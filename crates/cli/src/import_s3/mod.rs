//! `haul import-s3`: copies buckets of another S3 server into a server that runs.

mod show;

use std::cell::{Cell, RefCell};

use haul_s3_copy::{Credentials, Endpoint, Event, Events, Options, Summary};

use crate::args::ImportS3Args;
use crate::import_s3::show::{json_event, json_summary, line, message};
use crate::output::{Output, print_summary};
use crate::progress::{Amount, Progress};
use crate::report::{Exit, Failure, Result, print_message};
use crate::secrets::credentials::{self, Variables};
use crate::signals::Stop;
use crate::units::Count;

pub(crate) fn run(args: &ImportS3Args) -> Result {
    let from_keys = credentials::load_from(args.from_credentials.as_deref(), Variables::AWS)?;
    let to_keys = credentials::load(args.to_credentials.as_deref())?;
    let options = Options {
        from: endpoint(&args.from, &args.region, from_keys),
        to: endpoint(&args.to, &args.region, to_keys),
        buckets: args.buckets.clone(),
        jobs: args.jobs.get(),
        delete: args.delete,
        dry_run: args.dry_run,
    };
    let stop = Stop::on_signals("objects in progress")?;
    let progress = Progress::new(args.progress.show, "object", Amount::default());
    let shown = Shown {
        args,
        stop: &stop,
        progress: &progress,
        output: RefCell::new(Output::new()),
        failure: RefCell::new(None),
        checked: Cell::new(0),
    };
    let result = haul_s3_copy::run(&options, &shown);
    let Shown { output, failure, .. } = shown;
    output.into_inner().finish()?;
    if let Some(failure) = failure.into_inner() {
        return Err(failure);
    }
    let summary = result.map_err(|error| {
        let failure = Failure::new(format!("cannot copy {} to {}", args.from, args.to));
        let advice = error.advice();
        let failure = failure.because(error).exit(Exit::NotStarted);
        match advice {
            Some(advice) => failure.advise(advice),
            None => failure,
        }
    })?;
    progress.set(Amount { things: summary.objects, bytes: summary.bytes });
    let totals = progress.finish();
    let verb = if args.dry_run { "to copy:" } else { "copied" };
    let json = json_summary(&summary, &totals, args.dry_run);
    print_summary(args.json, json, &format!("{verb} {totals}"))?;
    conclude(args, &summary, &stop)
}

fn endpoint(url: &str, region: &str, credentials: Option<haul_s3_server::Credentials>) -> Endpoint {
    let credentials = credentials
        .map(|keys| Credentials { access_key: keys.access_key, secret_key: keys.secret_key });
    Endpoint { url: url.to_owned(), region: region.to_owned(), credentials }
}

/// Prints what happens while it happens.
struct Shown<'a> {
    args: &'a ImportS3Args,
    stop: &'a Stop,
    progress: &'a Progress,
    output: RefCell<Output>,
    /// The failure of stdout, which ends the copy.
    failure: RefCell<Option<Failure>>,
    checked: Cell<u64>,
}

impl Events for Shown<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.requested().is_some() || self.failure.borrow().is_some()
    }

    fn happened(&self, event: &Event<'_>, summary: &Summary) {
        self.progress.set(Amount { things: summary.objects, bytes: summary.bytes });
        if let Some(text) = message(event, self.args.dry_run) {
            self.progress.print_message(&text);
        }
        if let Err(failure) = self.print(event) {
            self.failure.borrow_mut().get_or_insert(failure);
        }
    }
}

impl Shown<'_> {
    /// Prints an event to stdout, if it belongs there.
    fn print(&self, event: &Event<'_>) -> Result {
        let mut output = self.output.borrow_mut();
        if self.args.json {
            output.line(json_event(event))?;
        } else if self.args.dry_run {
            output.line(line(event))?;
        }
        // A reader of the events follows the copy, without a call for each object.
        self.checked.set(self.checked.get() + 1);
        if self.checked.get().is_multiple_of(256) { output.send() } else { Ok(()) }
    }
}

/// Reports what was not copied, and returns the result of the command.
fn conclude(args: &ImportS3Args, summary: &Summary, stop: &Stop) -> Result {
    if summary.skipped > 0 {
        print_message(&format!("{} unchanged", Count(summary.skipped, "object")));
    }
    if summary.deleted > 0 {
        let verb = if args.dry_run { "to delete" } else { "deleted" };
        print_message(&format!("{} {verb}", Count(summary.deleted, "object")));
    }
    if summary.verified_by_length > 0 {
        let count = Count(summary.verified_by_length, "object");
        let why = "encrypted at the source, or of unknown parts";
        print_message(&format!("note: of {count} only the length was compared: {why}"));
    }
    if summary.objects > 0 && !args.dry_run {
        let note = "note: Last-Modified of the copies is the time of the import, and version IDs \
                    are new ones";
        print_message(note);
    }
    if let Some(exit) = stop.requested().filter(|_| summary.is_stopped) {
        return Err(Failure::new("interrupted: some objects were not compared")
            .advise("continue with the same command")
            .exit(exit));
    }
    match (summary.failed, summary.different) {
        (0, 0) => Ok(()),
        (0, count) => {
            let count = Count(count, "object");
            Err(Failure::new(format!("{count} left alone, with other versions at {}", args.to))
                .advise("delete them at the target to copy them again"))
        }
        (count, _) => {
            Err(Failure::new(format!("{} failed (see above)", Count(count, "operation")))
                .advise("repeat the command: it copies what is missing"))
        }
    }
}
