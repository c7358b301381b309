//! A segment's stub: the local file in place of a segment file that is only in the copy.

use haul_append_log::{RebuiltSegment, SegmentInfo};
use haul_disk::{Disk, Durability, File, Open, read_full, write_full};

use crate::error::Result;
use crate::manifest::{HEADER_PAGE_BYTES, SegmentCopy};

/// The suffix of stub names.
const SUFFIX: &str = ".remote";

/// The first bytes of the page after the segment.
const MAGIC: &[u8; 8] = b"HAUL-STB";

#[derive(Debug, Clone, Copy)]
pub(super) struct Stub {
    pub(super) info: SegmentInfo,
    /// The offset at which the bytes in the copy end.
    pub(super) copied_end: u64,
}

/// Returns the name of a segment's stub.
pub(crate) fn name(segment: &str) -> String {
    format!("{segment}{SUFFIX}")
}

/// Returns the segment name that belongs to a stub name.
pub(crate) fn segment_of(name: &str) -> Option<&str> {
    name.strip_suffix(SUFFIX)
}

/// Creates a segment's stub.
///
/// # Durability
/// The content survives a power cut when this returns, the name after [`Disk::sync_dir`].
pub(crate) fn create(disk: &dyn Disk, segment: &str, copy: &SegmentCopy) -> Result<()> {
    let name = name(segment);
    match disk.remove(&name) {
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    let stub = disk.create(&name, Open::default())?;
    let header_page = copy.header_page();
    RebuiltSegment::write_header_pages(&*stub, &header_page)?;
    let mut page = MAGIC.to_vec();
    page.extend_from_slice(&copy.chunks_end().to_le_bytes());
    page.extend_from_slice(&haul_crc::crc32c(&page).to_le_bytes());
    page.resize(HEADER_PAGE_BYTES as usize, 0);
    write_full(&*stub, &page, RebuiltSegment::parse_info(&header_page)?.bytes.into())?;
    Ok(stub.sync(Durability::Everything)?)
}

/// Reads a stub; `None` if it is damaged.
pub(super) fn read(stub: &dyn File) -> haul_disk::Result<Option<Stub>> {
    let mut page = [0; HEADER_PAGE_BYTES as usize];
    read_full(stub, &mut page, 0)?;
    let Ok(info) = RebuiltSegment::parse_info(&page) else { return Ok(None) };
    let mut end = [0; 16];
    read_full(stub, &mut end, info.bytes.into())?;
    let (content, checksum) = end.split_at(12);
    let is_valid =
        content.starts_with(MAGIC) && haul_crc::crc32c(content).to_le_bytes() == checksum;
    let copied_end = u32::from_le_bytes([content[8], content[9], content[10], content[11]]);
    Ok(is_valid.then(|| Stub { info, copied_end: copied_end.into() }))
}
