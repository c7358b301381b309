//! Rebuilds the file of a segment from a copy of its bytes.

use std::sync::Arc;

use haul_disk::{Allocation, Disk, Durability, File, Open, write_full};

use crate::error::{Error, Result};
use crate::format::{BYTES_MAX, HEADER_BYTES, SegmentHeader};
use crate::names;
use crate::replay::SegmentInfo;

/// The file of a segment that is being rebuilt from the bytes that [`crate::Log::read_bytes`]
/// returned, in any order of the ranges.
///
/// Opening the log then finds exactly the records in these bytes. Their content is verified when the
/// log is opened.
#[derive(Debug)]
pub struct RebuiltSegment {
    file: Arc<dyn File>,
    header: SegmentHeader,
}

impl RebuiltSegment {
    /// Creates the file of the segment whose header page begins with `header_page`, which the first
    /// bytes of the copy contain. The file has its full length and no records.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if `header_page` is no header page; [`Error::Full`] if the disk
    /// has no space; [`Error::Disk`] if the file exists or cannot be created.
    ///
    /// # Durability
    /// None, see [`Self::finish`].
    pub fn create(disk: &dyn Disk, header_page: &[u8]) -> Result<Self> {
        let header = decode(header_page)?;
        let file = disk.create(&names::segment(header.segment), Open::default())?;
        // Space is reserved, because an open log writes to its last segment.
        match file.allocate(Allocation::Reserve, 0, header.bytes) {
            Err(error) if error.is_full() => return Err(Error::Full { source: Arc::new(error) }),
            _ => file.resize(header.bytes)?,
        }
        write_header_pages(&*file, &header)?;
        Ok(Self { file, header })
    }

    /// Returns the identity and length of the segment with this header page.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if `header_page` is no header page.
    pub fn info_of(header_page: &[u8]) -> Result<SegmentInfo> {
        Ok(info(&decode(header_page)?))
    }

    /// Makes `file` a segment without records of the length in `header_page`, which consists of its
    /// header pages and a hole.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if `header_page` is no header page; [`Error::Disk`] if the file
    /// cannot be written.
    ///
    /// # Durability
    /// None until the file is synced.
    pub fn write_header_pages(file: &dyn File, header_page: &[u8]) -> Result<()> {
        let header = decode(header_page)?;
        file.resize(header.bytes)?;
        write_header_pages(file, &header)
    }

    /// Returns the identity and length of the segment.
    #[must_use]
    pub fn info(&self) -> SegmentInfo {
        info(&self.header)
    }

    /// Writes bytes of the copy that begin at `offset` of the segment.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if they do not fit into the segment; [`Error::Disk`] if the write
    /// fails.
    ///
    /// # Durability
    /// None, see [`Self::finish`].
    pub fn write(&self, offset: u32, bytes: &[u8]) -> Result<()> {
        let end = u64::from(offset) + bytes.len() as u64;
        if end > self.header.limit() {
            return Err(Error::Invalid("the bytes do not fit into the segment"));
        }
        // The header page has been written.
        let skipped = (HEADER_BYTES.saturating_sub(offset) as usize).min(bytes.len());
        Ok(write_full(&*self.file, &bytes[skipped..], u64::from(offset) + skipped as u64)?)
    }

    /// Makes the content of the file durable.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the sync fails, which is final.
    ///
    /// # Durability
    /// The content survives a power cut when this returns, its name after [`Disk::sync_dir`].
    pub fn finish(self) -> Result<()> {
        Ok(self.file.sync(Durability::Everything)?)
    }
}

fn decode(header_page: &[u8]) -> Result<SegmentHeader> {
    let Ok(header) = SegmentHeader::decode(header_page) else {
        return Err(Error::Invalid("the bytes do not begin with the header of a segment"));
    };
    if header.bytes > BYTES_MAX.into() || header.limit() <= HEADER_BYTES.into() {
        return Err(Error::Invalid("the header declares an impossible length"));
    }
    Ok(header)
}

fn info(header: &SegmentHeader) -> SegmentInfo {
    SegmentInfo {
        number: header.segment,
        nonce: header.salt.nonce,
        is_local: true,
        bytes: u32::try_from(header.bytes).unwrap_or(BYTES_MAX),
    }
}

fn write_header_pages(file: &dyn File, header: &SegmentHeader) -> Result<()> {
    let mut page = vec![0; HEADER_BYTES as usize];
    header.encode(&mut page);
    write_full(file, &page, 0)?;
    if header.has_end_page() {
        write_full(file, &page, header.limit())?;
    }
    Ok(())
}
