//! `haul store export`: writes objects as files.

use std::fs;

use haul_disk::{Error as DiskError, OsDisk};
use haul_file_store::Damage;
use haul_store_pool::Pool;
use haul_transfer::{
    Error, Export, ExportError, ExportEvents, ExportPlan, Exported, sync_file_system,
};
use serde_json::{Value, json};

use super::failure::{cannot_read, transfer_failed};
use super::objects;
use crate::advice::with_advice;
use crate::args::{ExportArgs, ProgressArgs};
use crate::location::Location;
use crate::output::{Name, print_summary};
use crate::progress::{Amount, Progress, Summary};
use crate::report::{Failure, OrFail, Result, chain, print_message};
use crate::signals::Stop;
use crate::units::Count;

/// Exports objects. `found` is the damage found by recovery. If there is any, the export fails even
/// if all listed objects were exported, because damaged objects may be missing from the listing.
pub(super) fn run(store: &Pool, found: &[Damage], args: &ExportArgs) -> Result {
    let bucket = &args.from.bucket;
    store.bucket(bucket).or_fail(|| format!("cannot export {}", args.from))?;
    let objects = objects::all(store, bucket, &args.from.rest)?;
    if objects.is_empty() && !args.from.rest.is_empty() {
        let prefix = Name(&args.from.rest);
        return Err(Failure::new(format!("no key in {bucket} begins with \"{prefix}\"")));
    }
    let plan = ExportPlan::new(objects, &args.from.rest);
    for (key, reason) in &plan.refused {
        print_message(&format!("cannot export {bucket}/{}: {reason}", Name(key)));
    }
    let dir = &args.dir;
    let cannot = || format!("cannot write to {}", dir.display());
    fs::create_dir_all(dir).or_not_start(cannot)?;
    // The copies are for whomever the user lets read new files.
    let root = OsDisk::open(dir).or_not_start(cannot)?.with_umask();
    let stop = Stop::on_signals("files in progress")?;
    let export = Export { store, bucket, plan: &plan, root: &root, jobs: args.jobs };
    let (exported, summary) = execute(&export, &stop, args.progress)?;
    // The copy must be durable, because the user may delete the store afterwards.
    sync_file_system(dir)
        .or_fail(|| format!("cannot sync the file system of {}", dir.display()))?;
    let mut json = summary_json(&args.from, &exported, &summary);
    json["failed_objects"] = (exported.failed + plan.refused.len() as u64).into();
    print_summary(args.json, json, &format!("exported {summary}"))?;
    conclude(&plan, &exported, &stop)?;
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::new("the store is damaged (see above): the copy may be incomplete"))
}

/// Returns the summary of an export as JSON.
pub(super) fn summary_json(from: &Location, exported: &Exported, summary: &Summary) -> Value {
    json!({
        "bucket": from.bucket,
        "prefix": from.rest,
        "objects": exported.objects,
        "bytes": exported.bytes,
        "failed_objects": exported.failed,
        "seconds": summary.time.as_secs_f64(),
    })
}

/// A receiver of events that shows the progress of an export and prints its errors.
pub(super) struct Events<'a> {
    pub(super) bucket: &'a str,
    pub(super) progress: &'a Progress,
    pub(super) stop: &'a Stop,
}

impl ExportEvents for Events<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.requested().is_some()
    }

    fn progress(&self, things: u64, bytes: u64) {
        self.progress.set(Amount { things, bytes });
    }

    fn directory_failed(&self, error: DiskError) {
        self.progress.print_message(&chain("cannot export", Some(&error)));
    }

    fn failed(&self, key: &str, error: ExportError) {
        let failure = with_advice::<()>(Err(failure(self.bucket, key, error))).err();
        let text = failure.and_then(|failure| failure.text());
        self.progress.print_message(&text.unwrap_or_default());
    }
}

fn execute(
    export: &Export<'_>,
    stop: &Stop,
    progress: ProgressArgs,
) -> Result<(Exported, Summary)> {
    let all = Amount { things: export.plan.files(), bytes: export.plan.bytes };
    let progress = Progress::new(progress.show, "object", all);
    let events = Events { bucket: export.bucket, progress: &progress, stop };
    let exported = export.run(&events).map_err(|error| match error {
        Error::Directory(error) => Failure::new("cannot export").because(error),
        Error::Export { key, source } => failure(export.bucket, &key, source),
        error => transfer_failed(error),
    })?;
    progress.set(Amount { things: exported.objects, bytes: exported.bytes });
    Ok((exported, progress.finish()))
}

fn failure(bucket: &str, key: &str, error: ExportError) -> Failure {
    let name = format!("{bucket}/{}", Name(key));
    let cannot = Failure::new(format!("cannot export {name}"));
    match error {
        ExportError::Open(error) => cannot.because(error),
        ExportError::Read(error) => cannot_read(&name, error),
        ExportError::Write(error) => cannot.because(error),
        ExportError::SetTime(error) => cannot.because(error),
    }
}

fn conclude(plan: &ExportPlan, exported: &Exported, stop: &Stop) -> Result {
    let left = plan.files() - exported.objects - exported.failed;
    if let Some(exit) = stop.requested().filter(|_| left > 0) {
        let left = Count(left, "object");
        return Err(Failure::new(format!("interrupted: {left} not exported")).exit(exit));
    }
    match exported.failed + plan.refused.len() as u64 {
        0 => Ok(()),
        count => {
            let count = Count(count, "object");
            Err(Failure::new(format!("{count} not exported (see above)")))
        }
    }
}
