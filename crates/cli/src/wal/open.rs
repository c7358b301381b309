//! Opens the directory of a log, and turns errors of the log into failures.

use std::path::Path;
use std::sync::Arc;

use haul_append_log::{
    Damage, Error, Log, OnDamage, Options, ReadOnlyLog, ReadOnlyReport, Replay, is_segment_name,
};
use haul_disk::{Disk, OsDisk};

use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::units::Count;

/// Opens the directory of a log, which must contain a segment.
pub(super) fn disk(dir: &Path) -> Result<Arc<dyn Disk>> {
    let not_a_log = || format!("cannot read the log in {}", dir.display());
    let disk = OsDisk::open(dir).or_fail(not_a_log);
    let disk = disk.map_err(|failure| failure.exit(Exit::NotStarted))?;
    let names = disk.list("").or_fail(not_a_log)?;
    if !names.iter().any(|name| is_segment_name(name)) {
        let context = format!("{}: the directory contains no segment", not_a_log());
        return Err(Failure::new(context).exit(Exit::NotStarted));
    }
    Ok(Arc::new(disk))
}

/// Opens a log read-only and delivers its records to `replay`.
pub(super) fn read(
    disk: &Arc<dyn Disk>,
    on_damage: OnDamage,
    replay: &mut dyn Replay,
) -> Result<(ReadOnlyLog, ReadOnlyReport)> {
    let options = Options { on_damage, ..Options::default() };
    Log::open_read_only(Arc::clone(disk), options, replay)
        .map_err(|error| failed("read", disk.root(), error))
}

/// Returns the failure of an operation on the log in `dir`.
pub(super) fn failed(verb: &str, dir: &Path, error: Error) -> Failure {
    let failure = Failure::new(format!("cannot {verb} the log in {}", dir.display()));
    let failure = match &error {
        Error::InUse { .. } => failure.exit(Exit::NotStarted).advise("wait until it exits"),
        Error::UnsupportedFormat { .. } => failure.exit(Exit::NotStarted),
        Error::Damaged { .. } => failure.advise("\"haul wal verify\" lists all damage"),
        Error::SegmentRemoved { .. } => failure.advise("run the command again"),
        _ => failure,
    };
    failure.because(error)
}

/// Describes damage in one line.
pub(super) fn damage_line(damage: &Damage) -> String {
    let Damage { file, offset, what, .. } = damage;
    format!("damaged: {} at offset {offset}: {what}", file.display())
}

/// Returns all damage of the report, that of header pages included.
pub(super) fn all_damage(report: &ReadOnlyReport) -> impl Iterator<Item = &Damage> {
    report.damage.iter().chain(&report.header_damage)
}

/// Prints the damage to stderr. Fails if there is any, or if the writer removed a segment.
pub(super) fn check(report: &ReadOnlyReport) -> Result {
    all_damage(report).for_each(|damage| print_message(&damage_line(damage)));
    let count = all_damage(report).count() as u64;
    if count > 0 {
        return Err(Failure::new(format!("found {}", Count(count, "damaged region"))));
    }
    check_complete(report)
}

/// Fails if the writer of the log removed a segment, so that the read ended before the end.
pub(super) fn check_complete(report: &ReadOnlyReport) -> Result {
    if report.segment_removed {
        let context = "the writer of the log removed a segment while it was read";
        return Err(Failure::new(context).advise("run the command again"));
    }
    Ok(())
}
