//! Delivers the records in a log that another process may be writing.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_disk::Disk;

use super::list::{SegmentList, has_name};
use super::report::ReadOnlyReport;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind};
use crate::lsn::{Lsn, Position};
use crate::options::OnDamage;
use crate::read::read_ahead::Windows;
use crate::read::scan::{SegmentState, has_durable_records};
use crate::read::segment_reader::{SegmentReader, TailSurvey, padded};
use crate::replay::{Damage, Replay};
use crate::segments::Segment;

/// The number of bytes per read request when no readahead thread is used.
const WINDOW_BYTES: usize = 256 << 10;

/// A segment and the offset at which its records end.
#[derive(Debug)]
pub(super) struct ReadSegment {
    pub(super) segment: Arc<Segment>,
    pub(super) end: u32,
}

/// Delivers all segments' records in order, up to the log's end or to a segment that the writing
/// process removed. Returns the segments that were read or are known to `replay`, with the offsets
/// at which their records end.
pub(super) fn deliver(
    disk: &dyn Disk,
    listed: SegmentList,
    on_damage: OnDamage,
    report: &mut ReadOnlyReport,
    replay: &mut dyn Replay,
) -> Result<BTreeMap<u32, ReadSegment>> {
    let mut delivered = BTreeMap::new();
    let SegmentList { segments, mut unused, chain } = listed;
    let last = segments.keys().next_back().copied();
    let is_known = |replay: &mut dyn Replay, segment: &Segment| {
        Some(segment.number) != last && replay.is_known(segment.info())
    };
    let mut all: Vec<_> =
        segments.into_values().map(|segment| (is_known(replay, &segment), segment)).collect();
    all.reverse();
    while let Some((is_known, segment)) = all.pop() {
        let state = match chain.ends.get(&segment.number) {
            Some(end) => SegmentState::SyncedTo(*end),
            // A read-only log does not call [`Replay::durable_end`], so only the records prove
            // which bytes were durable.
            None if all.is_empty() => SegmentState::Last { durable_end: 0 },
            None => SegmentState::Sealed,
        };
        let number = segment.number;
        if is_known && replay.apply_known(segment.info()) {
            let end = if let SegmentState::SyncedTo(end) = state { end } else { segment.limit };
            delivered.insert(number, ReadSegment { segment, end });
            continue;
        }
        let from = replay.known_end(segment.info()).max(HEADER_BYTES);
        let walk = Walk { disk, segment: &segment, from, state, on_damage };
        let outcome = walk.run(report, replay)?;
        report.end = Lsn::new(number, outcome.end);
        // A segment that was unused when the directory was listed may contain records now.
        let has_ended = outcome.is_sealed || chain.ends.contains_key(&number);
        delivered.insert(number, ReadSegment { segment, end: outcome.end });
        if outcome.segment_removed {
            report.segment_removed = true;
            return Ok(delivered);
        }
        if all.is_empty() && has_ended {
            report.closed = false;
            while let Some((_, next)) = unused.pop_first() {
                if has_durable_records(&next, &next.file)? {
                    all.push((false, next));
                    break;
                }
            }
        }
    }
    Ok(delivered)
}

/// The inputs for reading one segment from its first record to its last.
struct Walk<'a> {
    disk: &'a dyn Disk,
    segment: &'a Arc<Segment>,
    /// The first offset to read.
    from: u32,
    state: SegmentState,
    on_damage: OnDamage,
}

/// The result of reading one segment.
struct WalkOutcome {
    end: u32,
    is_sealed: bool,
    segment_removed: bool,
}

impl Walk<'_> {
    /// Delivers every valid record, in order.
    ///
    /// The other process may write a record to a position after this function found no valid record
    /// there. In the last segment, an invalid position is classified by the records after it: all
    /// bytes before the `synced` field of such a record were durable when the record was written. A
    /// position before the greatest `synced` field is therefore read again, and is damage only if
    /// it is still invalid and the segment's file still has its name. The first invalid position
    /// after all `synced` fields is the log's end. The bytes after an invalid position are surveyed
    /// only once, so that a fast writer cannot postpone the end indefinitely.
    fn run(&self, report: &mut ReadOnlyReport, replay: &mut dyn Replay) -> Result<WalkOutcome> {
        let (segment, file) = (self.segment, &self.segment.file);
        let limit = if let SegmentState::SyncedTo(end) = self.state { end } else { segment.limit };
        let range = (self.from.min(limit), limit);
        let mut reader = SegmentReader::sequential(segment, file, range, &Windows::default());
        let mut outcome = WalkOutcome { end: range.0, is_sealed: false, segment_removed: false };
        let mut survey: Option<TailSurvey> = None;
        report.closed = false;
        while !outcome.is_sealed {
            if let Some((header, payload)) = reader.record_at(outcome.end)? {
                report.closed = header.kind == Kind::Close;
                outcome.is_sealed = header.kind == Kind::Seal;
                if header.kind == Kind::Data {
                    replay.record(Position::of(header.lsn, payload), payload);
                    report.records += 1;
                }
                outcome.end += padded(&header);
                continue;
            }
            if outcome.end >= limit {
                break;
            }
            if matches!(self.state, SegmentState::Last { .. }) && survey.is_none() {
                survey = Some(reader.survey(outcome.end)?);
            }
            let at = Lsn::new(segment.number, outcome.end);
            let is_end = survey.as_ref().is_some_and(|survey| survey.synced_max <= at);
            reader = SegmentReader::new(segment, file, limit, WINDOW_BYTES);
            if !is_end && reader.record_at(outcome.end)?.is_some() {
                continue;
            }
            if !has_name(self.disk, segment.number)? {
                outcome.segment_removed = true;
                return Ok(outcome);
            }
            if is_end {
                let written_end = survey.map_or(0, |survey| survey.written_end);
                report.torn_bytes = written_end.saturating_sub(outcome.end).into();
                report.closed &= report.torn_bytes == 0;
                break;
            }
            match self.skip_damage(&mut reader, outcome.end, report, replay)? {
                Some(next) => outcome.end = next,
                None => break,
            }
        }
        let (bytes, made) = (file.bytes()?, u64::from(segment.bytes));
        if bytes != made {
            let what = format!("the file ends here, its header declares {made} bytes");
            self.damage(report, bytes, made.max(bytes), what)?;
        }
        Ok(outcome)
    }

    /// Reports the invalid bytes at `offset`, and returns the offset of the next record; `None` if
    /// no record follows.
    fn skip_damage(
        &self,
        reader: &mut SegmentReader,
        offset: u32,
        report: &mut ReadOnlyReport,
        replay: &mut dyn Replay,
    ) -> Result<Option<u32>> {
        let damaged = |bytes: u32| format!("{bytes} bytes are invalid");
        if let Some((header, payload)) = reader.damaged_at(offset)? {
            let at = Position { lsn: header.lsn, payload_bytes: header.payload_bytes };
            let end = offset + padded(&header);
            self.damage(report, offset.into(), end.into(), damaged(padded(&header)))?;
            replay.damaged(at, payload);
            return Ok(Some(end));
        }
        let next = reader.next_record(offset)?.0.map(|(next, _)| next);
        let (end, what) = match (next, self.state) {
            (Some(next), _) => (next, damaged(next - offset)),
            (None, SegmentState::SyncedTo(end)) => (end, damaged(end - offset)),
            (None, _) => (self.segment.limit, "the segment ends without its seal".to_owned()),
        };
        self.damage(report, offset.into(), end.into(), what)?;
        Ok(next)
    }

    fn damage(
        &self,
        report: &mut ReadOnlyReport,
        offset: u64,
        end: u64,
        what: String,
    ) -> Result<()> {
        let file = self.segment.path.clone();
        if self.on_damage == OnDamage::Refuse {
            return Err(Error::Damaged { file, offset, what });
        }
        report.damage.push(Damage { file, offset, end, what });
        Ok(())
    }
}
