//! Writes a seal, the record that ends a segment, to a segment that is no longer being written.

use std::sync::Arc;

use haul_disk::Disk;

use crate::append::batch::{Batch, Tail};
use crate::append::writer::Writer;
use crate::error::Result;
use crate::format::{HEADER_BYTES, Kind};
use crate::read::segment_reader::SegmentReader;
use crate::segments::Segment;
use crate::stats::Counters;
use crate::strategy::SyncMethod;

/// Writes and syncs a seal at segment offset `end`, unless the segment already has a seal there or
/// has no space for one.
pub(crate) fn seal(disk: &dyn Disk, segment: &Arc<Segment>, end: u32) -> Result<()> {
    let file = segment.sequential(disk, false)?;
    let mut reader = SegmentReader::new(segment, &file, segment.limit, 2 * HEADER_BYTES as usize);
    let kind = reader.record_at(end)?.map(|(header, _)| header.kind);
    if kind == Some(Kind::Seal) || end > segment.records_end() {
        return Ok(());
    }
    let writer = Writer::open(disk, segment, SyncMethod::Buffered)?;
    let tail = Tail { segment: Arc::clone(segment), writer };
    let mut batch = Batch::resume(tail, end, 2 * HEADER_BYTES as usize)?;
    batch.push_empty(Kind::Seal);
    batch.write_and_sync(&Counters::default())?;
    Ok(())
}
