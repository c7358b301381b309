//! One segment: a file of fixed length, whose blocks were written before its first record.

pub(crate) mod pool;
pub(crate) mod prepare;
pub(crate) mod seal;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use haul_disk::{AlignedBuf, Disk, Durability, File, Open, read_full, write_full};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::{Error, Result};
use crate::format::{
    HEADER_BYTES, Kind, NotAHeader, RECORD_HEADER_BYTES, RecordHeader, Salt, SegmentHeader,
    record_bytes,
};
use crate::lsn::{Lsn, Position};
use crate::names;

/// An open segment, for positional reads and writes.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) salt: Salt,
    /// The length the file was made with.
    pub(crate) bytes: u32,
    pub(crate) is_reserve: bool,
    pub(crate) is_recycled: bool,
    pub(crate) follows: Lsn,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    /// Where its records end, whatever is behind; until it ends there, its length.
    end: AtomicU32,
}

/// The longest segment: 2 GiB, so that no offset in it overflows.
pub(crate) const BYTES_MAX: u32 = 2 << 30;

/// Reads of records jump about, and each wants just its own bytes.
pub(crate) const RANDOM: Open =
    Open { direct: false, dsync: false, random: true, read_only: false };

impl Segment {
    pub(crate) fn new(disk: &dyn Disk, header: &SegmentHeader, file: Arc<dyn File>) -> Self {
        let path = disk.root().join(names::segment(header.segment));
        let bytes = u32::try_from(header.bytes).unwrap_or(BYTES_MAX);
        Self {
            number: header.segment,
            salt: header.salt,
            bytes,
            is_reserve: header.is_reserve,
            is_recycled: header.is_recycled,
            follows: header.follows,
            path,
            file,
            end: AtomicU32::new(bytes),
        }
    }

    /// Opens the segment of this number and reads its header.
    pub(crate) fn open(disk: &dyn Disk, number: u32) -> Result<Self> {
        let file = disk.open(&names::segment(number), RANDOM)?;
        let from = Arc::clone(&file);
        Self::read_header(disk, number, file, &*from)
    }

    /// The same segment with the header that `from` has, another handle of its file.
    pub(crate) fn reopened(&self, disk: &dyn Disk, from: &dyn File) -> Result<Self> {
        Self::read_header(disk, self.number, Arc::clone(&self.file), from)
    }

    fn read_header(
        disk: &dyn Disk,
        number: u32,
        file: Arc<dyn File>,
        from: &dyn File,
    ) -> Result<Self> {
        let path = disk.root().join(names::segment(number));
        let mut page = AlignedBuf::zeroed(HEADER_BYTES as usize);
        let read = read_full(from, &mut page, 0)?;
        let header = match SegmentHeader::decode(&page[..read]) {
            Ok(header) => header,
            Err(NotAHeader::Version(version)) => {
                let what = format!("it has version {version} of the format");
                return Err(Error::Foreign { file: path, what });
            }
            Err(NotAHeader::NoMagic | NotAHeader::Checksum) => {
                let what = "neither copy of the segment's header checks out".to_owned();
                return Err(Error::Damaged { file: path, offset: 0, what });
            }
        };
        if header.segment != number {
            let what = format!("its header is that of segment {}", header.segment);
            return Err(Error::Foreign { file: path, what });
        }
        let fits = |bytes: u64| bytes <= BYTES_MAX.into() && bytes > HEADER_BYTES.into();
        if !fits(header.bytes) || !header.bytes.is_multiple_of(HEADER_BYTES.into()) {
            let what = format!("its header states a length of {} bytes", header.bytes);
            return Err(Error::Foreign { file: path, what });
        }
        Ok(Self::new(disk, &header, file))
    }

    /// The header this segment has when it is used anew, from its beginning.
    pub(crate) fn renewed_header(&self) -> Result<SegmentHeader> {
        Ok(SegmentHeader {
            segment: self.number,
            salt: fresh_salt()?,
            bytes: self.bytes.into(),
            is_reserve: self.is_reserve,
            is_recycled: self.is_recycled,
            follows: self.follows,
        })
    }

    /// Where its records end, if it will have no more; else its length.
    pub(crate) fn end(&self) -> u32 {
        self.end.load(Ordering::Acquire)
    }

    /// It has no records from `offset` on, and never will.
    pub(crate) fn end_at(&self, offset: u32) {
        self.end.store(offset, Ordering::Release);
    }

    /// A second handle for reading from one end to the other, with the kernel's readahead.
    pub(crate) fn sequential(&self, disk: &dyn Disk, direct: bool) -> Result<Arc<dyn File>> {
        let how = Open { read_only: true, direct, ..Open::default() };
        Ok(disk.open(&names::segment(self.number), how)?)
    }

    /// Where records must end, so that the seal still fits behind them.
    pub(crate) fn records_end(&self) -> u32 {
        self.bytes - u32::try_from(record_bytes(0)).expect("a seal is a few bytes")
    }

    /// Reads a record with one request and checks it. The payload begins at
    /// [`RECORD_HEADER_BYTES`] of what is returned.
    pub(crate) fn read(&self, at: Position) -> Result<Vec<u8>> {
        let bytes = RECORD_HEADER_BYTES + at.payload_bytes as usize;
        let mut record = vec![0; bytes];
        let read = read_full(&*self.file, &mut record, u64::from(at.lsn.offset()))?;
        if read < bytes {
            return Err(self.damaged(at.lsn, "the file ends within the record"));
        }
        match RecordHeader::decode(self.salt, &record, at.lsn) {
            Some(header)
                if header.kind == Kind::Data && header.is_of(&record[RECORD_HEADER_BYTES..]) =>
            {
                Ok(record)
            }
            Some(_) => Err(self.damaged(at.lsn, "the record's checksum does not match its bytes")),
            None => Err(self.damaged(at.lsn, "there is no record where one was written")),
        }
    }

    fn damaged(&self, lsn: Lsn, what: &str) -> Error {
        let offset = u64::from(lsn.offset());
        Error::Damaged { file: self.path.clone(), offset, what: what.to_owned() }
    }
}

/// Writes a header and, behind it, a page of zeros: where the first record goes there is none
/// for certain. Both are on the medium when this returns.
pub(crate) fn write_header(file: &dyn File, header: &SegmentHeader) -> haul_disk::Result<()> {
    let mut pages = AlignedBuf::zeroed(2 * HEADER_BYTES as usize);
    header.encode(&mut pages);
    let bytes = usize::try_from(header.bytes).unwrap_or(pages.len()).min(pages.len());
    write_full(file, &pages[..bytes], 0)?;
    file.sync(Durability::Data)
}

/// A salt nobody can guess.
pub(crate) fn fresh_salt() -> Result<Salt> {
    let mut nonce = [0; 8];
    getrandom(&mut nonce, GetRandomFlags::empty()).map_err(|errno| {
        haul_disk::Error::new(haul_disk::Op::Read, "the kernel's random numbers", errno)
    })?;
    Ok(Salt::new(u64::from_le_bytes(nonce)))
}
