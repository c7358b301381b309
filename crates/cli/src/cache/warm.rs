//! `haul cache warm`: reads files into the page cache.

use std::time::{Duration, Instant};

use haul_disk::Error;
use haul_page_cache::{WarmEvents, WarmOptions, Warmed};
use parking_lot::RwLock;
use serde_json::json;

use super::errors::{Errors, error_text};
use super::show::{CountsText, counts_json, in_bytes};
use crate::args::{DiskKind, WarmArgs};
use crate::output::Output;
use crate::progress::{Amount, Progress, ShowProgress};
use crate::report::{Failure, Result};
use crate::signals::Stop;
use crate::units::{Bytes, Time};

pub(super) fn run(args: &WarmArgs) -> Result {
    let stop = Stop::on_signals("files in progress")?;
    let started = Instant::now();
    let errors = Errors::new(&args.files);
    let files = errors.find();
    let options = WarmOptions {
        rotates: args.disk_kind.map(|kind| kind == DiskKind::Rotating),
        bytes_max: args.max_bytes,
    };
    let (show, progress) = (args.progress.show, RwLock::new(None));
    let events = Events { stop: &stop, errors: &errors, show, progress };
    let warmed = Warmed::run(&files, &options, &events);
    print(&warmed, started.elapsed(), args)?;
    match stop.requested() {
        Some(exit) => Err(Failure::new("stopped before all files were read").exit(exit)),
        None => errors.result(),
    }
}

/// A receiver of events that shows the progress of the reads and prints errors.
struct Events<'a> {
    stop: &'a Stop,
    errors: &'a Errors<'a>,
    show: ShowProgress,
    progress: RwLock<Option<Progress>>,
}

impl WarmEvents for Events<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.requested().is_some()
    }

    fn begin_reads(&self, things: u64, bytes: u64) {
        *self.progress.write() = Some(Progress::new(self.show, "file", Amount { things, bytes }));
    }

    fn file_read(&self, bytes: u64) {
        if let Some(progress) = &*self.progress.read() {
            progress.add(bytes);
        }
    }

    fn end_reads(&self) {
        if let Some(progress) = self.progress.write().take() {
            progress.finish();
        }
    }

    fn failed(&self, error: &Error) {
        match &*self.progress.read() {
            Some(progress) => {
                self.errors.count();
                progress.print_message(&error_text(error));
            }
            None => self.errors.report(&error_text(error)),
        }
    }
}

fn print(warmed: &Warmed, time: Duration, args: &WarmArgs) -> Result {
    let Warmed { before, after, bytes_max } = warmed;
    let mut output = Output::new();
    if args.files.json {
        let mut summary = counts_json(after);
        summary["kind"] = json!("summary");
        summary["resident_pages_before"] = json!(before.resident);
        summary["bytes_max"] = json!(bytes_max);
        summary["seconds"] = json!(time.as_secs_f64());
        output.line(summary)?;
        return output.finish();
    }
    let loaded = in_bytes(after.resident.saturating_sub(before.resident));
    output.line(format_args!("loaded {loaded} in {}", Time(time)))?;
    output.line(CountsText(*after))?;
    if after.missing() > 0 {
        let limit = match args.max_bytes {
            Some(_) => "--max-bytes",
            None => "the available memory",
        };
        output.line(format_args!(
            "{} not loaded: {limit} allows {}, and pages may be evicted again",
            in_bytes(after.missing()),
            Bytes(*bytes_max)
        ))?;
    }
    output.finish()
}
