//! `haul wal cut`: removes old segments of a log, or its newest records.

use std::sync::Arc;

use haul_append_log::{Error, Log, Lsn, OnDamage, Options, Replay, SegmentInfo, SyncMethod};
use serde_json::{Value, json};

use super::open::{disk, failed};
use crate::args::WalCutArgs;
use crate::output::print_line;
use crate::report::{Exit, Failure, Result};
use crate::units::Count;

/// The range of segment lengths that a log accepts in its options.
const SEGMENT_BYTES_MIN: u32 = 1 << 20;
const SEGMENT_BYTES_MAX: u32 = 1 << 31;

/// The length of the longest segment, for the segments that the log creates.
#[derive(Default)]
struct Longest(u32);

impl Replay for Longest {
    fn known_end(&mut self, segment: SegmentInfo) -> u32 {
        self.0 = self.0.max(segment.bytes);
        0
    }

    fn record(&mut self, _: haul_append_log::Position, _: &[u8]) {}
}

/// The file that marks the directory of a store. The folder `volumes` beside it is a log.
const STORE: &str = "../STORE";

pub(super) fn run(args: &WalCutArgs) -> Result {
    let disk = disk(&args.dir)?;
    if args.dir.join(STORE).exists() {
        let context = format!("cannot cut {}: it belongs to a store", args.dir.display());
        let advice = "remove objects with \"haul store rm\"";
        return Err(Failure::new(context).advise(advice).exit(Exit::NotStarted));
    }
    let mut longest = Longest::default();
    super::open::read(&disk, OnDamage::Refuse, &mut longest)?;
    let options = Options {
        segment_bytes: longest.0.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
        reserve_bytes: 0,
        spare_segments_max: 0,
        idle_watermark_ms: 0,
        sync_method: Some(SyncMethod::Buffered),
        ..Options::default()
    };
    let cannot = |error| failed("cut", &args.dir, error);
    let (log, _) =
        Log::open(Arc::clone(&disk), options, &mut Longest::default()).map_err(cannot)?;
    let cut = if args.after { cut_after(&log, args.lsn) } else { cut_before(&log, args.lsn) };
    let cut = cut.map_err(|error| match error {
        Error::Invalid(_) => cannot(error).exit(Exit::Usage),
        error => cannot(error),
    });
    let closed = log.close().map_err(cannot);
    let cut = cut?;
    closed?;
    if args.json { print_line(cut.json) } else { print_line(cut.text) }
}

/// The result of a cut.
struct Cut {
    json: Value,
    text: String,
}

fn cut_before(log: &Log, lsn: Lsn) -> haul_append_log::Result<Cut> {
    let removed = log.truncate_front(lsn)? as u64;
    let first = log.segments().first().map_or(0, |segment| segment.number);
    let json = json!({ "removed_segments": removed, "first_segment": first });
    let removed = Count(removed, "segment");
    Ok(Cut { json, text: format!("removed {removed}; the log begins with segment {first}") })
}

fn cut_after(log: &Log, lsn: Lsn) -> haul_append_log::Result<Cut> {
    log.truncate_back(lsn)?;
    let newest = log.last_record()?.map(|at| at.lsn);
    let words = match newest {
        Some(newest) => format!("the newest record is {newest}"),
        None => "the log has no records".to_owned(),
    };
    Ok(Cut {
        json: json!({ "newest": newest.map(|lsn| lsn.to_string()) }),
        text: format!("removed the records from {lsn} on; {words}"),
    })
}
