//! Reads a segment's verified bytes, so that they can be copied elsewhere.

use std::cmp::Ordering;

use super::Log;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind};
use crate::lsn::{Lsn, Position};
use crate::read::segment_reader::{SegmentReader, padded};
use crate::replay::SegmentInfo;
use crate::segments::Segment;
use crate::segments::header::read_header;

/// The maximum number of bytes per read request: few enough that they are still in the processor's
/// cache when they are verified and copied.
const READ_BYTES: usize = 256 << 10;

/// The result of [`crate::Log::read_bytes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentBytes {
    /// The segment.
    pub segment: SegmentInfo,
    /// The number of bytes that were read. They end where a record ends.
    pub bytes: u32,
    /// `true` if no record follows these bytes in the segment, now or later.
    pub is_complete: bool,
}

impl Log {
    /// Appends a segment's durable bytes, beginning at offset `from`, to `target`, and passes the
    /// records in them to `each`. `from` is 0 or the end of the bytes that an earlier call read.
    /// Bytes that begin at 0 include the segment's header page. Reads no bytes if none are durable
    /// yet, and about `bytes_max` bytes at most, but at least one record if there is one.
    ///
    /// All records are verified. The bytes never change: a later call reads the same bytes for the
    /// same range, until the segment is removed. These bytes, concatenated, are a copy of the
    /// segment, see [`crate::RebuiltSegment`].
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if a record is invalid; [`Error::Disk`] if the file cannot be
    /// read; [`Error::Invalid`] if the log has no such segment, also if it was removed meanwhile.
    /// `target` is then as before.
    pub fn read_bytes(
        &self,
        number: u32,
        from: u32,
        bytes_max: usize,
        target: &mut Vec<u8>,
        each: &mut dyn FnMut(Position, &[u8]),
    ) -> Result<SegmentBytes> {
        let before = target.len();
        let read = self.try_read_bytes(number, from, bytes_max, target, each);
        if read.is_err() {
            target.truncate(before);
        }
        read
    }

    fn try_read_bytes(
        &self,
        number: u32,
        from: u32,
        bytes_max: usize,
        target: &mut Vec<u8>,
        each: &mut dyn FnMut(Position, &[u8]),
    ) -> Result<SegmentBytes> {
        let synced = self.synced();
        let segment = self.segment(number)?;
        let limit = match number.cmp(&synced.segment()) {
            Ordering::Less => segment.end(),
            Ordering::Equal => synced.offset(),
            Ordering::Greater => HEADER_BYTES,
        };
        let is_before = number < synced.segment();
        let start = from.max(HEADER_BYTES);
        let mut read = SegmentBytes { segment: segment.info(), bytes: 0, is_complete: false };
        if limit <= start {
            read.is_complete = is_before;
            return Ok(read);
        }
        target.reserve(bytes_max.min((limit - from) as usize));
        if from == 0 {
            target.extend_from_slice(&header_page(&segment)?);
        }
        let file = segment.sequential(&*self.shared.disk, false)?;
        let mut reader = SegmentReader::new(&segment, &file, limit, bytes_max.min(READ_BYTES));
        let mut at = start;
        while at < limit && !read.is_complete && (at == start || ((at - from) as usize) < bytes_max)
        {
            let Some((header, payload)) = reader.record_at(at)? else {
                return Err(invalid_record(&segment, at));
            };
            if header.kind == Kind::Data {
                each(Position::of(header.lsn, payload), payload);
            }
            target.extend_from_slice(reader.stored(at, &header)?);
            at += padded(&header);
            read.is_complete = header.kind == Kind::Seal || is_before && at >= limit;
        }
        read.bytes = at - from;
        // A segment that was removed meanwhile may have been recycled.
        self.segment(number).map(|_| read)
    }
}

/// Returns a segment's header page as it is in a file without damage.
fn header_page(segment: &Segment) -> Result<Vec<u8>> {
    let header = match read_header(&*segment.file, segment.number)? {
        Ok(found) if found.header.salt == segment.salt => found.header,
        _ => return Err(invalid_record(segment, 0)),
    };
    let mut page = vec![0; HEADER_BYTES as usize];
    header.encode(&mut page);
    Ok(page)
}

fn invalid_record(segment: &Segment, offset: u32) -> Error {
    let lsn = Lsn::new(segment.number, offset);
    let what = format!("no valid record begins at LSN {lsn}");
    Error::Damaged { file: segment.path.clone(), offset: offset.into(), what }
}
