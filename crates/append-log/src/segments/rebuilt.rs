//! Rebuilds a segment's file from a copy of its bytes.

use std::sync::Arc;

use haul_disk::{Allocation, Disk, Durability, File, Open, read_full, write_full};

use crate::error::{Error, Result};
use crate::format::{
    BYTES_MAX, HEADER_BYTES, Kind, RECORD_HEADER_BYTES, RecordHeader, SegmentHeader, record_bytes,
};
use crate::lsn::Lsn;
use crate::names;
use crate::replay::SegmentInfo;

/// The number of bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// The file of a segment that is being rebuilt from the bytes that [`crate::Log::read_bytes`]
/// returned. The ranges may arrive in any order.
///
/// Opening the log then finds exactly the records in these bytes. Their content is verified when
/// the log is opened.
#[derive(Debug)]
pub struct RebuiltSegment {
    file: Arc<dyn File>,
    header: SegmentHeader,
}

impl RebuiltSegment {
    /// Creates the file for the segment whose header page begins with `header_page`, the first
    /// bytes of the copy. The file has its full length and no records.
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
        // Before the header by which [`Self::open`] recognizes the file: after a power cut, an
        // unsynced file's blocks may have other files' bytes, also behind the records.
        file.sync(Durability::Everything)?;
        write_header_pages(&*file, &header)?;
        Ok(Self { file, header })
    }

    /// Parses a segment's identity and length from its header page.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if `header_page` is no header page.
    pub fn parse_info(header_page: &[u8]) -> Result<SegmentInfo> {
        Ok(info(&decode(header_page)?))
    }

    /// Makes `file` a segment without records, of the length in `header_page`: its header pages and
    /// a hole.
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

    /// Opens the file that an earlier process has created for the segment with this header page, to
    /// continue it. Returns `None` if there is no file, or if its creation was interrupted; such a
    /// file is removed.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if `header_page` is no header page; [`Error::Damaged`] if the
    /// file belongs to another segment with the same number; [`Error::Disk`].
    pub fn open(disk: &dyn Disk, header_page: &[u8]) -> Result<Option<Self>> {
        let header = decode(header_page)?;
        let name = names::segment(header.segment);
        let file = match disk.open(&name, Open::default()) {
            Err(error) if error.is_not_found() => return Ok(None),
            opened => opened?,
        };
        let mut page = vec![0; HEADER_BYTES as usize];
        let read = read_full(&*file, &mut page, 0)?;
        let found = SegmentHeader::decode(&page[..read]);
        match found {
            Ok(found) if found.salt == header.salt && file.bytes()? == header.bytes => {
                // A power cut may have left only the first header page.
                write_header_pages(&*file, &header)?;
                Ok(Some(Self { file, header }))
            }
            Ok(found) if found.segment == header.segment && found.salt != header.salt => {
                let what = "the file is of a segment with another nonce".to_owned();
                Err(Error::Damaged { file: disk.root().join(name), offset: 0, what })
            }
            _ => {
                drop(file);
                disk.remove(&name)?;
                Ok(None)
            }
        }
    }

    /// Returns the identity and length of the segment.
    #[must_use]
    pub fn info(&self) -> SegmentInfo {
        info(&self.header)
    }

    /// Writes bytes of the copy to the segment offset `offset`.
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

    /// Passes the bytes from `from` to `to` to `each`, in pieces.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the file cannot be read.
    pub fn read(&self, from: u32, to: u32, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut buffer = vec![0; READ_BYTES];
        let (mut at, to) = (u64::from(from), u64::from(to));
        while at < to {
            let wanted = usize::try_from(to - at).unwrap_or(READ_BYTES).min(READ_BYTES);
            let read = read_full(&*self.file, &mut buffer[..wanted], at)?;
            if read == 0 {
                break;
            }
            each(&buffer[..read]);
            at += read as u64;
        }
        Ok(())
    }

    /// `true` if the space for records contains only zeros at and after `end`.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the file cannot be read.
    pub fn is_zero_from(&self, end: u32) -> Result<bool> {
        let limit = u32::try_from(self.header.limit()).unwrap_or(BYTES_MAX);
        let mut is_zero = true;
        self.read(end.max(HEADER_BYTES), limit, &mut |piece| {
            is_zero &= piece.iter().all(|byte| *byte == 0);
        })?;
        Ok(is_zero)
    }

    /// Verifies the records in `bytes`, which the copy has at segment offset `offset`, and passes
    /// the data records' payloads to `each`.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the bytes are not complete valid records.
    pub fn verify_records(
        &self,
        offset: u32,
        bytes: &[u8],
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        const INVALID: Error = Error::Invalid("the bytes are not valid records of the segment");
        let mut at = (HEADER_BYTES.saturating_sub(offset) as usize).min(bytes.len());
        while at < bytes.len() {
            let lsn = u32::try_from(at).ok().and_then(|at| offset.checked_add(at));
            let lsn = Lsn::new(self.header.segment, lsn.ok_or(INVALID)?);
            let rest = &bytes[at..];
            let head = rest.get(..RECORD_HEADER_BYTES).ok_or(INVALID)?;
            let header = RecordHeader::decode(self.header.salt, head, lsn).ok_or(INVALID)?;
            let end = RECORD_HEADER_BYTES + header.payload_bytes as usize;
            let payload = rest.get(RECORD_HEADER_BYTES..end).ok_or(INVALID)?;
            if !header.matches(payload) {
                return Err(INVALID);
            }
            if header.kind == Kind::Data {
                each(payload);
            }
            at += record_bytes(header.payload_bytes as usize);
        }
        Ok(())
    }

    /// Makes the file's content durable, like [`Self::finish`], and keeps the file open.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the sync fails, which is final.
    ///
    /// # Durability
    /// Like [`Self::finish`].
    pub fn sync(&self) -> Result<()> {
        Ok(self.file.sync(Durability::Everything)?)
    }

    /// Makes the file's content durable.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the sync fails, which is final.
    ///
    /// # Durability
    /// The content survives a power cut when this returns, its name after [`Disk::sync_dir`].
    pub fn finish(self) -> Result<()> {
        self.sync()
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
    Ok(write_full(file, &page, header.limit())?)
}
