//! Delivers a segment's valid records in order, and reports invalid bytes between them.

use std::sync::Arc;

use haul_disk::File;

use crate::error::Result;
use crate::format::{HEADER_BYTES, Kind, RECORD_HEADER_BYTES, RecordHeader, SEAL_BYTES};
use crate::lsn::{Lsn, Position};
use crate::read::read_ahead::Windows;
use crate::read::segment_reader::{SegmentReader, TailSurvey, padded};
use crate::replay::{Damage, Replay};
use crate::segments::Segment;

/// The caller's knowledge about a segment's end before the segment is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// The last segment with records. After a crash it may end with a torn tail, which cannot begin
    /// before `durable_end`.
    Last { durable_end: u32 },
    /// A later segment has records, so all its records, including its seal, are durable.
    Sealed,
    /// The segment is read up to this offset. All records before it are durable.
    SyncedTo(u32),
}

/// The kind of a segment's last record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndState {
    /// The last record is a seal.
    Sealed,
    /// The last record is a close record, written when the log was closed.
    Closed,
    /// The last record is a watermark, written when the log was idle.
    Watermark,
    /// The last record is a data record, or the segment has no records.
    Open,
}

/// The result of reading a segment.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The offset at which the next record would be appended.
    pub(crate) end: u32,
    pub(crate) end_state: EndState,
    /// The number of bytes after `end` that were written and never acknowledged. They extend to the
    /// last non-zero byte or, in a recycled file, which contains stale bytes, to the end of the
    /// last valid record.
    pub(crate) torn_bytes: u32,
    pub(crate) records: u64,
    pub(crate) damage: Vec<Damage>,
    /// `true` if the file is shorter than its header declares.
    pub(crate) is_shortened: bool,
}

impl Scan {
    fn damage(&mut self, segment: &Segment, offset: u64, end: u64, what: String) {
        self.damage.push(Damage { file: segment.path.clone(), offset, end, what });
    }

    /// Delivers a valid record and advances past it.
    fn apply(&mut self, header: &RecordHeader, payload: &[u8], replay: &mut dyn Replay) {
        match header.kind {
            Kind::Data => {
                replay.record(Position::of(header.lsn, payload), payload);
                self.records += 1;
                self.end_state = EndState::Open;
            }
            Kind::Close => self.end_state = EndState::Closed,
            // Padding is written together with the record before it, so it proves nothing.
            Kind::Watermark if header.synced < header.lsn => self.end_state = EndState::Open,
            Kind::Watermark => self.end_state = EndState::Watermark,
            Kind::Seal => self.end_state = EndState::Sealed,
        }
        self.end += padded(header);
    }

    /// Reports damage if the file length differs from the length in the header.
    fn check_length(&mut self, segment: &Segment, state: SegmentState, file_bytes: u64) {
        if file_bytes == u64::from(segment.bytes) {
            return;
        }
        let what = format!("the file ends here, its header declares {} bytes", segment.bytes);
        // If `true`, the file's missing part lies after the last record, so no record is lost.
        let ended_before = matches!(state, SegmentState::Last { durable_end } if durable_end <= self.end)
            && u64::from(self.end) + RECORD_HEADER_BYTES as u64 <= file_bytes
            && self.torn_bytes == 0;
        let end = if ended_before { file_bytes } else { segment.bytes.into() };
        self.damage(segment, file_bytes, end.max(file_bytes), what);
    }

    /// Reports the invalid bytes up to `end` as damage, and continues at `end`.
    fn skip_damage(&mut self, segment: &Segment, end: u32) {
        let what = invalid_bytes(end - self.end);
        self.damage(segment, self.end.into(), end.into(), what);
        self.end = end;
    }
}

/// Delivers every valid record in a segment to `replay`, in order, and finds the end and the
/// damage. Reads no record before `from`, the offset at which a record begins or the records end.
/// The records may end with the seal.
///
/// Invalid bytes in the last segment are classified by the records after them. If the `synced`
/// field of such a record lies after the invalid bytes, these bytes were durable when the record
/// was written. They are then damage, and the scan continues at the next record. Otherwise the
/// invalid bytes are the torn tail left by a crash, which contains no acknowledged record, and the
/// scan ends.
///
/// # Source
/// This follows the synced offset in Pebble's log chunks (cockroachdb/pebble, pull request 4331).
pub(crate) fn scan(
    segment: &Arc<Segment>,
    file: &Arc<dyn File>,
    (from, state): (u32, SegmentState),
    windows: &Windows,
    replay: &mut dyn Replay,
) -> Result<Scan> {
    let file_bytes = file.bytes()?;
    let is_shortened = file_bytes < u64::from(segment.bytes);
    let (end_state, damage) = (EndState::Open, Vec::new());
    let limit = match state {
        SegmentState::SyncedTo(end) => end,
        SegmentState::Last { .. } | SegmentState::Sealed => segment.limit,
    };
    let from = from.min(limit).max(HEADER_BYTES);
    let mut scan = Scan { end: from, end_state, torn_bytes: 0, records: 0, damage, is_shortened };
    // Nothing follows the seal, so without it the segment would seem to be cut off.
    let seal = from.saturating_sub(SEAL_BYTES).max(HEADER_BYTES);
    let mut reader = SegmentReader::sequential(segment, file, (seal, limit), windows);
    if reader.record_at(seal)?.is_some_and(|(header, _)| header.kind == Kind::Seal) {
        scan.end = seal;
    }
    let mut survey = None;
    loop {
        if let Some((header, payload)) = reader.record_at(scan.end)? {
            scan.apply(&header, payload, replay);
            if !replay.wants_more() {
                return Ok(scan);
            }
            if header.kind == Kind::Seal {
                break;
            }
            continue;
        }
        if state == SegmentState::SyncedTo(scan.end) {
            break;
        }
        // The caller's `durable_end`, if only the caller, and no later record, proves that the
        // invalid bytes were durable.
        let mut known_end = None;
        if let SegmentState::Last { durable_end } = state {
            // One survey suffices: it starts at the first invalid bytes, so it covers all later
            // invalid bytes, too.
            let survey: &TailSurvey = match &mut survey {
                Some(survey) => survey,
                none => none.insert(reader.survey(scan.end)?),
            };
            if survey.synced_max <= Lsn::new(segment.number, scan.end) {
                if durable_end <= scan.end {
                    scan.torn_bytes = survey.written_end.saturating_sub(scan.end);
                    break;
                }
                known_end = Some(durable_end.min(segment.limit));
            }
        }
        if let Some((header, payload)) = reader.damaged_at(scan.end)? {
            let at = Position { lsn: header.lsn, payload_bytes: header.payload_bytes };
            replay.damaged(at, payload);
            scan.skip_damage(segment, scan.end + padded(&header));
            continue;
        }
        let next = reader.next_record(scan.end)?.0.map(|(next, _)| next);
        if let Some(end) =
            known_end.filter(|end| next.is_none_or(|next| next > *end) && !is_shortened)
        {
            scan.skip_damage(segment, end);
            continue;
        }
        let Some(next) = next else {
            // A torn tail would have ended the scan above, so these bytes are damage.
            if !is_shortened {
                let what = match state {
                    SegmentState::SyncedTo(end) => invalid_bytes(end - scan.end),
                    _ => "the segment ends without its seal".to_owned(),
                };
                scan.damage(segment, scan.end.into(), limit.into(), what);
            }
            break;
        };
        scan.skip_damage(segment, next);
    }
    scan.check_length(segment, state, file_bytes);
    Ok(scan)
}

/// `true` if the page with a segment's first record contains only zeros, as in a new segment.
pub(crate) fn is_first_page_zero(segment: &Arc<Segment>, file: &Arc<dyn File>) -> Result<bool> {
    // If the file was shortened, its missing part may have contained records.
    if file.bytes()? != u64::from(segment.bytes) {
        return Ok(false);
    }
    let limit = segment.limit.min(2 * HEADER_BYTES);
    let mut reader = SegmentReader::new(segment, file, limit, HEADER_BYTES as usize);
    Ok(reader.next_written_page(HEADER_BYTES)?.is_none())
}

/// `true` if any record's `synced` field in the segment lies after the first record. Such a field
/// proves that records before it were durable. If the segment's first page is zero nevertheless,
/// the segment was in use and has lost this page.
pub(crate) fn has_durable_records(segment: &Arc<Segment>, file: &Arc<dyn File>) -> Result<bool> {
    let range = (HEADER_BYTES, segment.limit);
    let mut reader = SegmentReader::sequential(segment, file, range, &Windows::default());
    let first = Lsn::new(segment.number, HEADER_BYTES);
    Ok(reader.survey(HEADER_BYTES)?.synced_max > first)
}

fn invalid_bytes(bytes: u32) -> String {
    format!("{bytes} bytes are invalid")
}
