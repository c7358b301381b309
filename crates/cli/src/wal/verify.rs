//! `haul wal verify`: reads all records of a log and verifies their checksums.

use haul_append_log::{OnDamage, Position, ReadOnlyReport};
use serde_json::json;

use super::open::{all_damage, check_complete, damage_line, disk, read};
use crate::args::WalVerifyArgs;
use crate::output::Output;
use crate::report::{Failure, Result};
use crate::units::{Bytes, Count};

/// The records of a log.
#[derive(Default)]
struct Totals {
    segments: u64,
    bytes: u64,
    first: Option<Position>,
}

pub(super) fn run(args: &WalVerifyArgs) -> Result {
    let disk = disk(&args.dir)?;
    let mut totals = Totals::default();
    let mut each = |at: Position, _: &[u8]| {
        totals.first = totals.first.or(Some(at));
        totals.bytes += u64::from(at.payload_bytes);
    };
    let (log, report) = read(&disk, OnDamage::Report, &mut each)?;
    totals.segments = log.segments().len() as u64;

    let mut output = Output::new();
    for damage in all_damage(&report) {
        if args.json {
            output.line(json!({
                "kind": "damage",
                "file": damage.file.to_string_lossy(),
                "offset": damage.offset,
                "what": damage.what,
            }))?;
        } else {
            output.line(damage_line(damage))?;
        }
    }
    if args.json {
        output.line(json!({
            "kind": "summary",
            "segments": totals.segments,
            "records": report.records,
            "bytes": totals.bytes,
            "first": totals.first.map(|at| at.lsn.to_string()),
            "end": report.end.to_string(),
            "torn_bytes": report.torn_bytes,
            "closed": report.closed,
            "damaged": all_damage(&report).count(),
        }))?;
    } else {
        output.line(summary(&totals, &report))?;
    }
    output.finish()?;
    check_complete(&report)?;
    match all_damage(&report).count() as u64 {
        0 => Ok(()),
        count => Err(Failure::new(format!("found {}", Count(count, "damaged region")))
            .advise("restore the files from a backup; all other records are intact")),
    }
}

fn summary(totals: &Totals, report: &ReadOnlyReport) -> String {
    let (records, segments) = (Count(report.records, "record"), Count(totals.segments, "segment"));
    let mut line = format!("verified {records} ({}) in {segments}", Bytes(totals.bytes));
    if let Some(first) = totals.first {
        line += &format!(", from {}", first.lsn);
    }
    line += &format!(", end at {}", report.end);
    line += match (report.torn_bytes, report.closed) {
        (0, true) => "; the log was closed",
        (0, false) => "; the log was not closed",
        _ => return line + &format!("; {} after it are a torn write", Bytes(report.torn_bytes)),
    };
    line
}
