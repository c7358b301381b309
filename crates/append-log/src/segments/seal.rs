//! Ending a segment that is not the one being filled.

use std::sync::Arc;

use haul_disk::Disk;

use crate::append::batch::{Batch, Tail};
use crate::append::writer::Writer;
use crate::error::Result;
use crate::format::{HEADER_BYTES, Kind};
use crate::read::segment_reader::SegmentReader;
use crate::segments::Segment;
use crate::stats::Counters;
use crate::ways::SyncMethod;

/// Puts a seal where a segment ends, if there is none.
pub(crate) fn seal(disk: &dyn Disk, segment: &Arc<Segment>, end: u32) -> Result<()> {
    let file = segment.sequential(disk, false)?;
    let mut reader = SegmentReader::new(segment, &file, segment.bytes, 2 * HEADER_BYTES as usize);
    let there = reader.record_at(end)?.map(|(header, _)| header.kind);
    if there == Some(Kind::Seal) || end > segment.records_end() {
        return Ok(());
    }
    let writer = Writer::open(disk, segment, SyncMethod::Buffered)?;
    let tail = Tail { segment: Arc::clone(segment), writer };
    let mut batch = Batch::resume(tail, end, 2 * HEADER_BYTES as usize)?;
    batch.push(Kind::Seal, &[], 0);
    batch.carry_out(&Counters::default())?;
    Ok(())
}
