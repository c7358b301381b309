//! Reading a segment from its first record to its last, whatever state it is in.

use haul_disk::{File, PAGE_BYTES, align_down, read_full};

use crate::error::Result;
use crate::format::record_bytes;
use crate::format::{HEADER_BYTES, Kind, RECORD_ALIGN, RECORD_HEADER_BYTES, RecordHeader};
use crate::lsn::{Lsn, Position};
use crate::replay::{Damage, Replay};
use crate::segment::Segment;

/// How much is read at a time.
const WINDOW_BYTES: usize = 4 << 20;

/// Most of an unused segment looks like this.
const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

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
    /// How many bytes behind `end` reach up to the last one that is not zero: what was written
    /// and never acknowledged.
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
    segment: &Segment,
    file: &dyn File,
    known: Known,
    replay: &mut dyn Replay,
) -> Result<Scan> {
    let file_bytes = file.bytes()?;
    let end = HEADER_BYTES;
    let is_cut = file_bytes < u64::from(segment.bytes);
    let (ending, damage) = (Ending::Open, Vec::new());
    let mut scan = Scan { end, ending, torn_bytes: 0, records: 0, damage, is_cut };
    let mut reader = Reader::new(segment, file, known);
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

/// Whether anything was ever written behind the header of a segment, or may have been: what is
/// missing of a file that was cut.
pub(crate) fn is_begun(segment: &Segment, file: &dyn File) -> Result<bool> {
    if file.bytes()? != u64::from(segment.bytes) {
        return Ok(true);
    }
    let mut reader = Reader::new(segment, file, Known::Last);
    Ok(reader.next_written_page(HEADER_BYTES)?.is_some())
}

fn not_checking_out(bytes: u32) -> String {
    format!("{bytes} bytes do not check out")
}

fn padded(header: &RecordHeader) -> u32 {
    u32::try_from(record_bytes(header.payload_bytes as usize)).unwrap_or(u32::MAX)
}

/// What lies behind bytes that do not check out.
struct Beyond {
    /// The furthest watermark of the records there.
    synced_max: Lsn,
    /// Behind the last byte that is not zero.
    written_end: u32,
}

struct Reader<'a> {
    segment: &'a Segment,
    file: &'a dyn File,
    /// Nothing is looked at from here on.
    limit: u32,
    /// Memory for what was read last.
    window: Vec<u8>,
    window_start: u64,
    /// How much of it the file had.
    window_bytes: usize,
}

impl<'a> Reader<'a> {
    fn new(segment: &'a Segment, file: &'a dyn File, known: Known) -> Self {
        let limit = match known {
            Known::SyncedTo(end) => end,
            Known::Last | Known::Sealed => segment.bytes,
        };
        Self { segment, file, limit, window: Vec::new(), window_start: 0, window_bytes: 0 }
    }

    /// The bytes at `offset`, `bytes` of them unless the file ends before.
    fn bytes_at(&mut self, offset: u32, bytes: usize) -> Result<&[u8]> {
        let offset = u64::from(offset);
        let have = self.window_start..self.window_start + self.window_bytes as u64;
        if offset < have.start || offset + bytes as u64 > have.end {
            let wanted = (bytes + PAGE_BYTES).max(WINDOW_BYTES.min(self.segment.bytes as usize));
            if self.window.len() < wanted {
                self.window = vec![0; wanted];
            }
            self.window_start = align_down(offset, PAGE_BYTES as u64);
            self.window_bytes = read_full(self.file, &mut self.window, self.window_start)?;
        }
        let from = usize::try_from(offset - self.window_start).unwrap_or(usize::MAX);
        let from = from.min(self.window_bytes);
        let to = (from + bytes).min(self.window_bytes);
        Ok(&self.window[from..to])
    }

    /// The record at `offset`, whole, if there is one and it checks out.
    fn record_at(&mut self, offset: u32) -> Result<Option<(RecordHeader, &[u8])>> {
        let record = self.claimed_at(offset)?;
        Ok(record.filter(|(header, payload)| header.is_of(payload)))
    }

    /// The record of data at `offset` whose header checks out and whose payload does not.
    fn damaged_at(&mut self, offset: u32) -> Result<Option<(RecordHeader, &[u8])>> {
        let record = self.claimed_at(offset)?;
        Ok(record.filter(|(header, payload)| header.kind == Kind::Data && !header.is_of(payload)))
    }

    /// The record the header at `offset` claims, if that checks out, and all its bytes are there.
    fn claimed_at(&mut self, offset: u32) -> Result<Option<(RecordHeader, &[u8])>> {
        let Segment { nonce, number, .. } = *self.segment;
        let room = self.limit.saturating_sub(offset) as usize;
        if room < RECORD_HEADER_BYTES {
            return Ok(None);
        }
        let bytes = self.bytes_at(offset, RECORD_HEADER_BYTES)?;
        if bytes.len() < RECORD_HEADER_BYTES {
            return Ok(None);
        }
        let Some(header) = RecordHeader::decode(nonce, bytes, Lsn::new(number, offset)) else {
            return Ok(None);
        };
        let whole = RECORD_HEADER_BYTES + header.payload_bytes as usize;
        if whole > room {
            return Ok(None);
        }
        let payload = self.bytes_at(offset, whole)?.get(RECORD_HEADER_BYTES..);
        let is_whole = |payload: &&[u8]| payload.len() == header.payload_bytes as usize;
        Ok(payload.filter(is_whole).map(|payload| (header, payload)))
    }

    /// The first page, or rest of one, from `offset` on that is not all zeros: where it begins
    /// and where its zeros do.
    fn next_written_page(&mut self, offset: u32) -> Result<Option<(u32, u32)>> {
        let mut offset = offset;
        while offset < self.limit {
            let page_end = (offset + 1).next_multiple_of(HEADER_BYTES).min(self.limit);
            let page = self.bytes_at(offset, (page_end - offset) as usize)?;
            if *page != ZEROS[..page.len()] {
                let last = page.iter().rposition(|byte| *byte != 0).unwrap_or(0);
                return Ok(Some((offset, offset + u32::try_from(last).unwrap_or(0) + 1)));
            }
            offset = page_end;
        }
        Ok(None)
    }

    /// The first record that checks out at `offset` or behind, and where the bytes before it that
    /// are not zero end.
    fn next_record(&mut self, offset: u32) -> Result<(Option<(u32, RecordHeader)>, u32)> {
        let (mut offset, mut written_end) = (offset, offset);
        while let Some((start, end)) = self.next_written_page(offset)? {
            let page_end = (start + 1).next_multiple_of(HEADER_BYTES).min(self.limit);
            for at in (start..page_end).step_by(RECORD_ALIGN) {
                if let Some((header, _)) = self.record_at(at)? {
                    return Ok((Some((at, header)), written_end.max(at)));
                }
            }
            (offset, written_end) = (page_end, end);
        }
        Ok((None, written_end))
    }

    /// Looks at everything behind `from`, where no record begins.
    fn survey(&mut self, from: u32) -> Result<Beyond> {
        let mut beyond = Beyond { synced_max: Lsn(0), written_end: from };
        let mut offset = from;
        loop {
            let (found, written_end) = self.next_record(offset)?;
            beyond.written_end = beyond.written_end.max(written_end);
            let Some((at, header)) = found else { return Ok(beyond) };
            offset = at + padded(&header);
            beyond.written_end = beyond.written_end.max(offset);
            beyond.synced_max = beyond.synced_max.max(header.synced);
        }
    }
}
