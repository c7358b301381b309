//! `haul wal copy`: copies a log to a new directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_append_log::{OnDamage, Position, ReadOnlyLog, ReadOnlyReport};
use haul_disk::{Disk, OsDisk};
use serde_json::json;

use super::open::{check_complete, disk, failed, read};
use crate::args::WalCopyArgs;
use crate::output::print_line;
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::units::{Bytes, Count};

pub(super) fn run(args: &WalCopyArgs) -> Result {
    let disk = disk(&args.dir)?;
    let target = &args.target;
    if fs::symlink_metadata(target).is_ok() {
        let context = format!("cannot copy to {}: it exists", target.display());
        return Err(Failure::new(context).exit(Exit::NotStarted));
    }
    let (log, report) = read(&disk, OnDamage::Refuse, &mut |_: Position, _: &[u8]| {})?;
    check_complete(&report)?;
    let unfinished = unfinished(target);
    fs::create_dir(&unfinished).map_err(|error| {
        let failure = Failure::new(format!("cannot create {}", unfinished.display()));
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                failure.advise("remove it: an interrupted copy left it").exit(Exit::NotStarted)
            }
            _ => failure,
        }
        .because(error)
    })?;
    let copied = copy(&log, &report, &unfinished).and_then(|()| publish(&unfinished, target));
    if let Err(failure) = copied {
        // The copy is incomplete: its directory is removed as far as possible.
        fs::remove_dir_all(&unfinished).ok();
        return Err(failure);
    }
    if report.torn_bytes > 0 {
        let torn = Bytes(report.torn_bytes);
        print_message(&format!("left out {torn} after {}: no complete record", report.end));
    }
    let segments = log.segments().len() as u64;
    if args.json {
        return print_line(json!({
            "records": report.records,
            "segments": segments,
            "end": report.end.to_string(),
            "torn_bytes": report.torn_bytes,
        }));
    }
    let (records, segments) = (Count(report.records, "record"), Count(segments, "segment"));
    print_line(format_args!("copied {records} in {segments}, up to {}", report.end))
}

/// Copies the log to an empty directory, and verifies that the copy has the same records.
fn copy(log: &ReadOnlyLog, report: &ReadOnlyReport, dir: &Path) -> Result {
    let target: Arc<dyn Disk> =
        Arc::new(OsDisk::open(dir).or_fail(|| format!("cannot open {}", dir.display()))?);
    log.copy_to(&*target).map_err(|error| failed("copy", dir, error))?;
    let (_, copied) = read(&target, OnDamage::Refuse, &mut |_: Position, _: &[u8]| {})?;
    if (copied.records, copied.end, copied.torn_bytes) != (report.records, report.end, 0) {
        let (has, of) = (copied.records, Count(report.records, "record"));
        return Err(Failure::new(format!("the copy has only {has} of {of}")));
    }
    Ok(())
}

/// Gives a complete copy its name, and makes the name durable.
fn publish(unfinished: &Path, target: &Path) -> Result {
    let cannot = || format!("cannot publish {}", target.display());
    fs::rename(unfinished, target).or_fail(cannot)?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = OsDisk::open(parent.unwrap_or(Path::new("."))).or_fail(cannot)?;
    parent.sync_dir("").or_fail(cannot)
}

/// Returns the directory in which the copy is made.
fn unfinished(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".haul-copy");
    name.into()
}
