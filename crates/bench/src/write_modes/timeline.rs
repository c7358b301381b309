//! Records the requests that single durable records cause on a new ext4, on a time line.

use std::path::Path;

use haul_measure::{Error, Result};
use serde_json::{Value as Json, json};

use super::VirtualDisk;
use super::modes::{Cell, Preparation, Sync};
use super::prepare::{Prepared, prepare, remove};
use super::target_fs::TargetFs;
use crate::trace::{Event, Kind};
use haul_disk::{AlignedBuf, Durability, write_full};

/// The number of records written before the recorded one: the first records of a file also cause
/// writes of its inode.
const SETTLING: u64 = 8;
const RECORD_BYTES: u64 = 4096;

/// One request to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TracedRequest {
    /// The time since the write of the record in microseconds.
    pub(crate) at_us: u64,
    pub(crate) kind: RequestKind,
    pub(crate) bytes: u64,
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// The record itself.
    Data,
    /// The journal of the file system.
    Journal,
    /// A flush of the write cache of the device.
    Sync,
}

impl RequestKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Journal => "journal",
            Self::Sync => "sync",
        }
    }
}

/// The requests of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// The preparation of the file.
    pub(crate) name: &'static str,
    pub(crate) requests: Vec<TracedRequest>,
    /// The time from the write of the record to the end of its sync in microseconds.
    pub(crate) end_us: u64,
}

impl Timeline {
    pub(crate) fn json(&self) -> Json {
        let request = |it: &TracedRequest| json!({ "at_us": it.at_us, "kind": it.kind.name(), "bytes": it.bytes });
        let requests: Vec<_> = self.requests.iter().map(request).collect();
        json!({ "preparation": self.name, "end_us": self.end_us, "requests": requests })
    }
}

/// Writes a record of 4 KiB with `fdatasync` into a growing file and into a filled one, on a new
/// ext4 in an image file in `dir`, and returns the requests of each.
///
/// # Errors
/// Returns [`Error::Missing`] without root or the programs for a virtual disk.
pub(crate) fn timelines(dir: &Path) -> Result<Vec<Timeline>> {
    let place = TargetFs::on_virtual_disk(VirtualDisk::Ext4, dir, (SETTLING + 1) * RECORD_BYTES)?;
    [Preparation::Append, Preparation::Filled].map(|it| timeline(&place, it)).into_iter().collect()
}

fn timeline(place: &TargetFs, preparation: Preparation) -> Result<Timeline> {
    let cell = Cell { sync: Sync::Fdatasync, record_bytes: RECORD_BYTES, preparation };
    let missing = || Error::Missing("ext4 cannot prepare the file".to_owned());
    let Some(Prepared::File(file)) = prepare(place, &cell, SETTLING + 1)? else {
        return Err(missing());
    };
    let record = AlignedBuf::zeroed(4096);
    let write = |number: u64| -> Result<()> {
        write_full(&*file, &record, number * RECORD_BYTES)?;
        Ok(file.sync(Durability::Data)?)
    };
    (0..SETTLING).try_for_each(write)?;
    place.settle()?;
    let tracing = place.tracing()?;
    tracing.start()?;
    let began = std::time::Instant::now();
    write(SETTLING)?;
    let end_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let trace = tracing.stop()?;
    drop(file);
    remove(place)?;
    let requests = requests(&trace.events, trace.marked_us.unwrap_or(0));
    Ok(Timeline { name: preparation.name(), requests, end_us })
}

/// Returns the issued requests, with times relative to `start_us`.
fn requests(events: &[Event], start_us: u64) -> Vec<TracedRequest> {
    let issued = events.iter().filter(|event| event.kind == Kind::Issued);
    let request = |event: &Event| {
        let kind = match (event.sectors, event.flags.metadata) {
            (0, _) => RequestKind::Sync,
            (_, true) => RequestKind::Journal,
            (_, false) => RequestKind::Data,
        };
        let is_relevant = event.sectors == 0 || event.flags.is_write;
        let at_us = event.at_us.saturating_sub(start_us);
        is_relevant.then_some(TracedRequest { at_us, kind, bytes: event.sectors * 512 })
    };
    issued.filter_map(request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;

    #[test]
    fn issued_requests_have_a_kind_and_a_time() {
        let text = "\
 haul-9 [001] ..... 7.000100: tracing_mark_write: m
 haul-9 [001] ..... 7.000150: block_bio_queue: 7,0 WS 33120 + 8 [haul]
 haul-9 [001] ..... 7.000160: block_rq_issue: 7,0 WS 4096 () 33120 + 8 be,0,4 [haul]
 jbd2/loop0-8-5 [001] ..... 7.000300: block_rq_issue: 7,0 WSM 16384 () 262480 + 32 be,0,3 [j]
 k-1 [001] ..... 7.000400: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [k]
 k-1 [001] ..... 7.000500: block_rq_issue: 7,0 RSM 4096 () 8 + 8 none,0,0 [k]
";
        let trace = Trace::parse(text, "m");
        let found = requests(&trace.events, trace.marked_us.unwrap());
        let expected = [
            (60, RequestKind::Data, 4096),
            (200, RequestKind::Journal, 16384),
            (300, RequestKind::Sync, 0),
        ];
        let expected = expected.map(|(at_us, kind, bytes)| TracedRequest { at_us, kind, bytes });
        assert_eq!(found, expected);
    }
}
