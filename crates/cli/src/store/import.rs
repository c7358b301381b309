//! `haul store import`: stores the files of a directory tree.

use std::error::Error as StdError;
use std::path::Path;

use haul_file_store::Error as StoreError;
use haul_store_pool::Pool;
use haul_transfer::{Error, Import, ImportEvents, ImportPlan, Imported, Source};
use serde_json::{Value, json};

use super::failure::transfer_failed;
use crate::args::{ImportArgs, OpenArgs};
use crate::open_store::{IfMissing, with_store};
use crate::output::{Name, print_summary};
use crate::progress::{Amount, Progress, Summary};
use crate::report::{Failure, OrFail, Result, chain, print_message};
use crate::signals::Stop;
use crate::units::Count;

pub(super) fn run(open: &OpenArgs, args: &ImportArgs) -> Result {
    // The source is walked before the store is opened: a mistyped path must not create a store, and
    // the store is not locked during the walk.
    let source = Source::open(&args.path, args.follow).or_not_start(|| cannot(&args.path))?;
    let plan = ImportPlan::new(&source, &open.data, &args.prefix);
    report_skipped(&plan, &args.path);
    with_store(open, "import", IfMissing::Create, |store, _damage| {
        create_bucket(store, &args.bucket)?;
        let stop = Stop::on_signals("files in progress")?;
        let import = Import {
            store,
            bucket: &args.bucket,
            source: &source,
            plan: &plan,
            big_object_bytes: open.big_object,
            skip_existing: args.skip_existing,
            jobs: args.jobs,
        };
        conclude(&plan, &execute(&import, &stop, args)?, &stop)
    })
}

pub(super) fn create_bucket(store: &Pool, bucket: &str) -> Result {
    match store.create_bucket(bucket) {
        Err(StoreError::BucketExists { .. }) => Ok(()),
        other => other.or_fail(|| format!("cannot import into \"{bucket}\"")),
    }
}

fn cannot(path: &Path) -> String {
    format!("cannot import {}", Name(&path.to_string_lossy()))
}

/// Reports the files and directories that will not be imported.
fn report_skipped(plan: &ImportPlan, path: &Path) {
    for store in &plan.stores {
        print_message(&format!("note: skipped {}, the store itself", store.display()));
    }
    for (name, reason) in &plan.refused {
        print_message(&format!("{}: {reason}", cannot(&path.join(name))));
    }
    if plan.links > 0 {
        let links = Count(plan.links, "symbolic link");
        print_message(&format!("note: skipped {links}; use --follow to store their targets"));
    }
    report_special(plan.special);
}

/// Reports the number of special files that were skipped.
pub(super) fn report_special(count: u64) {
    if count > 0 {
        let files = Count(count, "special file");
        print_message(&format!("note: skipped {files} (sockets, FIFOs, devices)"));
    }
}

/// A receiver of events that shows the progress of an import and prints its errors.
pub(super) struct Events<'a> {
    pub(super) progress: &'a Progress,
    pub(super) stop: &'a Stop,
}

impl ImportEvents for Events<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.requested().is_some()
    }

    fn progress(&self, things: u64, bytes: u64) {
        self.progress.set(Amount { things, bytes });
    }

    fn failed(&self, path: &Path, error: &(dyn StdError + 'static)) {
        self.progress.print_message(&chain(&cannot(path), Some(error)));
    }
}

fn execute(import: &Import<'_>, stop: &Stop, args: &ImportArgs) -> Result<Imported> {
    let all = Amount { things: import.plan.files(), bytes: import.plan.bytes };
    let progress = Progress::new(args.progress.show, "file", all);
    let (imported, result) = import.run(&Events { progress: &progress, stop });
    progress.set(Amount { things: imported.files, bytes: imported.bytes });
    // The summary is printed even after a failure: the files that it counts are stored.
    let summary = progress.finish();
    let mut json = summary_json(import.bucket, &imported, &summary, args.skip_existing);
    json["skipped_links"] = import.plan.links.into();
    json["skipped_special"] = import.plan.special.into();
    json["failed_files"] = (imported.failed + import.plan.refused.len() as u64).into();
    print_summary(args.json, json, &format!("imported {summary}"))?;
    match result {
        Ok(()) => Ok(imported),
        Err(Error::Import { path, source }) => Err(Failure::new(cannot(&path)).because(source)),
        Err(error) => Err(transfer_failed(error)),
    }
}

/// Returns the summary of an import as JSON.
pub(super) fn summary_json(
    bucket: &str,
    imported: &Imported,
    summary: &Summary,
    skip_existing: bool,
) -> Value {
    let mut json = json!({
        "bucket": bucket,
        "files": imported.files,
        "bytes": imported.bytes,
        "failed_files": imported.failed,
        "seconds": summary.time.as_secs_f64(),
    });
    if skip_existing {
        json["existing_files"] = imported.same.into();
    }
    json
}

fn conclude(plan: &ImportPlan, imported: &Imported, stop: &Stop) -> Result {
    if imported.same > 0 {
        print_message(&format!("skipped {}, already stored", Count(imported.same, "file")));
    }
    let left = plan.files() - imported.processed();
    if let Some(exit) = stop.requested().filter(|_| left > 0) {
        return Err(Failure::new(format!("interrupted: {} not imported", Count(left, "file")))
            .advise("continue with the same command and --skip-existing")
            .exit(exit));
    }
    match imported.failed + plan.refused.len() as u64 {
        0 => Ok(()),
        count => Err(Failure::new(format!("{} not imported (see above)", Count(count, "file")))),
    }
}
