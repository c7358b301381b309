//! Reads and writes a segment's header pages: the first page and the last one.

use haul_disk::{AlignedBuf, Durability, File, read_full, write_full};

use crate::error::Result;
use crate::format::{HEADER_BYTES, HeaderError, RecordHeader, SegmentHeader};
use crate::lsn::Lsn;

/// A valid header, and the damage to the other header page, if any.
#[derive(Debug)]
pub(crate) struct FoundHeader {
    pub(crate) header: SegmentHeader,
    /// The damaged header page's offset, and the check that failed.
    pub(crate) damage: Option<(u64, &'static str)>,
}

const FRONT_LOST: &str = "the header page is invalid, the copy at the end of the file is valid";
const END_LOST: &str = "the copy of the header at the end of the file is invalid";

/// Writes a header to the first page, zeros to the second page, and a copy of the header to the
/// last page. The zeros ensure that no stale record is found at the position of the first record.
///
/// 1. Writes the pages. After a crash each page is old or new. The file is then either a spare or
///    unfinished file, whose content is ignored, or a segment without records, for which the first
///    page is valid.
/// 2. Syncs the file. Only then does the caller rename it to a segment or append its first record.
pub(crate) fn write_header(file: &dyn File, header: &SegmentHeader) -> haul_disk::Result<()> {
    let mut pages = AlignedBuf::zeroed(2 * HEADER_BYTES as usize);
    header.encode(&mut pages);
    write_full(file, &pages, 0)?;
    write_full(file, &pages[..HEADER_BYTES as usize], header.limit())?;
    file.sync(Durability::Data)
}

/// Reads the header of segment `number` from the first page of its file, or from the last page if
/// the first is damaged.
pub(crate) fn read_header(
    file: &dyn File,
    number: u32,
) -> Result<std::result::Result<FoundHeader, HeaderError>> {
    let front = SegmentHeader::decode(&page_at(file, 0)?);
    let is_own = |header: &SegmentHeader| header.segment == number;
    match front {
        Ok(front) if is_own(&front) => Ok(Ok(with_end_page(file, front)?)),
        // In an unsupported format version the header's copy may be elsewhere, so it is not
        // searched for.
        Err(version @ HeaderError::Version(_)) => Ok(Err(version)),
        other => {
            let end = file.bytes()?.saturating_sub(HEADER_BYTES.into());
            let header = end_page(file, end)?;
            Ok(match header.ok().filter(|header| is_own(header) && header.limit() == end) {
                Some(header) => Ok(FoundHeader { header, damage: Some((0, FRONT_LOST)) }),
                None => other.map(|header| FoundHeader { header, damage: None }),
            })
        }
    }
}

/// Compares the header in the first page with the one in the last page.
///
/// Both pages are synced before the segment gets its first record. If the pages hold different
/// valid headers and the segment has no record, a crash interrupted the write of a new nonce, and
/// the header in the first page is used. If the segment has a record, the header with that record's
/// nonce is used.
fn with_end_page(file: &dyn File, front: SegmentHeader) -> Result<FoundHeader> {
    let found = |header, damage| Ok(FoundHeader { header, damage });
    let is_possible = front.bytes > 2 * u64::from(HEADER_BYTES);
    // If the file is too short for a last header page, only the first one is used. The wrong file
    // length is reported when the records are read.
    if !is_possible || file.bytes()? < front.bytes {
        return found(front, None);
    }
    let at = front.limit();
    match end_page(file, at)? {
        Ok(end) if end == front => found(front, None),
        Ok(end) if end.segment == front.segment && end.bytes == front.bytes => {
            let first = page_at(file, HEADER_BYTES.into())?;
            let lsn = Lsn::new(front.segment, HEADER_BYTES);
            let has_record =
                |header: &SegmentHeader| RecordHeader::decode(header.salt, &first, lsn).is_some();
            match (has_record(&front), has_record(&end)) {
                (false, true) => found(end, Some((0, FRONT_LOST))),
                (true, _) => found(front, Some((at, END_LOST))),
                (false, false) => found(front, None),
            }
        }
        _ => found(front, Some((at, END_LOST))),
    }
}

/// Reads the header in the page at offset `at`. Returns [`HeaderError`] if a segment cannot have
/// its last header page there.
fn end_page(file: &dyn File, at: u64) -> Result<std::result::Result<SegmentHeader, HeaderError>> {
    if at < 2 * u64::from(HEADER_BYTES) || !at.is_multiple_of(HEADER_BYTES.into()) {
        return Ok(Err(HeaderError::NoMagic));
    }
    Ok(SegmentHeader::decode(&page_at(file, at)?))
}

/// Reads the page at `offset`. Bytes after the end of the file are zeros.
fn page_at(file: &dyn File, offset: u64) -> Result<AlignedBuf> {
    let mut page = AlignedBuf::zeroed(HEADER_BYTES as usize);
    read_full(file, &mut page, offset)?;
    Ok(page)
}
