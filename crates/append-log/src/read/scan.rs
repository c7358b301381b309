//! Reading a segment from its first record to its last, whatever state it is in.

use std::sync::Arc;

use haul_disk::File;

use crate::error::Result;
use crate::format::{HEADER_BYTES, Kind};
use crate::lsn::{Lsn, Position};
use crate::read::feeder::Windows;
use crate::read::segment_reader::{Beyond, SegmentReader, padded};
use crate::recover::replay::{Damage, Replay};
use crate::segments::Segment;

/// What is known of a segment before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is the last one with records: after a crash it may end in a torn tail.
    Last,
    /// A later one has records: all of it was on the medium, up to its seal.
    Sealed,
    /// What lies before this offset is on the medium, and more is being written behind it.
    SyncedTo(u32),
}

/// How a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With a seal: nothing was or will be appended behind it.
    Sealed,
    /// With the mark of a log that was closed.
    Closed,
    /// With a record, or with nothing at all.
    Open,
}

/// What one reading of a segment found.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Where the next record would go.
    pub(crate) end: u32,
    pub(crate) ending: Ending,
    /// How many bytes behind `end` were written and never acknowledged: up to the last one that
    /// is not zero, or in a recycled file, where that says nothing, to the last that is a
    /// record's.
    pub(crate) torn_bytes: u32,
    pub(crate) records: u64,
    pub(crate) damage: Vec<Damage>,
    /// The file is shorter than it was made.
    pub(crate) is_cut: bool,
}

impl Scan {
    fn damage(&mut self, segment: &Segment, offset: u64, what: String) {
        self.damage.push(Damage { file: segment.path.clone(), offset, what });
    }
}

/// Delivers every record that checks out, in order.
///
/// Where bytes do not check out and the segment is the last, the records behind them decide: if
/// one of them was written when these bytes were on the medium already (its watermark lies
/// behind them), the bytes are damage and the scan goes on at the next record. Otherwise this is
/// the torn tail of a crash, nothing in it was acknowledged, and the scan ends.
///
/// # Source
/// The synced offset in the chunks of Pebble's log (cockroachdb/pebble, pull request 4331).
pub(crate) fn scan(
    segment: &Arc<Segment>,
    file: &Arc<dyn File>,
    known: Known,
    windows: &Windows,
    replay: &mut dyn Replay,
) -> Result<Scan> {
    let file_bytes = file.bytes()?;
    let end = HEADER_BYTES;
    let is_cut = file_bytes < u64::from(segment.bytes);
    let (ending, damage) = (Ending::Open, Vec::new());
    let mut scan = Scan { end, ending, torn_bytes: 0, records: 0, damage, is_cut };
    let limit = match known {
        Known::SyncedTo(end) => end,
        Known::Last | Known::Sealed => segment.bytes,
    };
    let mut reader = SegmentReader::ahead(segment, file, limit, windows);
    let mut beyond = None;
    loop {
        if let Some((header, payload)) = reader.record_at(scan.end)? {
            match header.kind {
                Kind::Data => {
                    let at = Position { lsn: header.lsn, payload_bytes: header.payload_bytes };
                    replay.record(at, payload);
                    scan.records += 1;
                    scan.ending = Ending::Open;
                }
                Kind::Close => scan.ending = Ending::Closed,
                Kind::Seal => scan.ending = Ending::Sealed,
            }
            scan.end += padded(&header);
            if header.kind == Kind::Seal {
                break;
            }
            continue;
        }
        if known == Known::SyncedTo(scan.end) {
            break;
        }
        if known == Known::Last {
            // What lies behind the first such bytes lies behind all of them.
            let beyond: &Beyond = match &mut beyond {
                Some(beyond) => beyond,
                none => none.insert(reader.survey(scan.end)?),
            };
            if beyond.synced_max <= Lsn::new(segment.number, scan.end) {
                scan.torn_bytes = beyond.written_end.saturating_sub(scan.end);
                break;
            }
        }
        if let Some((header, payload)) = reader.damaged_at(scan.end)? {
            let at = Position { lsn: header.lsn, payload_bytes: header.payload_bytes };
            replay.damaged(at, payload);
            scan.damage(segment, scan.end.into(), not_checking_out(padded(&header)));
            scan.end += padded(&header);
            continue;
        }
        let Some((next, _)) = reader.next_record(scan.end)?.0 else {
            // The last segment has one, or it would have ended in a torn tail.
            if !is_cut {
                let what = match known {
                    Known::SyncedTo(end) => not_checking_out(end - scan.end),
                    _ => "the segment ends without its seal".to_owned(),
                };
                scan.damage(segment, scan.end.into(), what);
            }
            break;
        };
        scan.damage(segment, scan.end.into(), not_checking_out(next - scan.end));
        scan.end = next;
    }
    if file_bytes != u64::from(segment.bytes) {
        let what = format!("the file ends here, and was {} bytes long", segment.bytes);
        scan.damage(segment, file_bytes, what);
    }
    Ok(scan)
}

/// Whether the place of a segment's first record is as it was made.
pub(crate) fn is_first_page_zero(segment: &Arc<Segment>, file: &Arc<dyn File>) -> Result<bool> {
    // What is missing of a file that was cut may have been anything.
    if file.bytes()? != u64::from(segment.bytes) {
        return Ok(false);
    }
    let limit = segment.bytes.min(2 * HEADER_BYTES);
    let mut reader = SegmentReader::new(segment, file, limit, HEADER_BYTES as usize);
    Ok(reader.next_written_page(HEADER_BYTES)?.is_none())
}

/// Whether any record in a segment proves that it was begun, and something in it acknowledged,
/// although its first page is empty.
pub(crate) fn is_begun(segment: &Arc<Segment>, file: &Arc<dyn File>) -> Result<bool> {
    let mut reader = SegmentReader::ahead(segment, file, segment.bytes, &Windows::default());
    let first = Lsn::new(segment.number, HEADER_BYTES);
    Ok(reader.survey(HEADER_BYTES)?.synced_max > first)
}

fn not_checking_out(bytes: u32) -> String {
    format!("{bytes} bytes do not check out")
}
