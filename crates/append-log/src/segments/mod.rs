//! Opens, reads, creates and recycles segments, a log's files. A segment has a fixed length. Its
//! blocks are all allocated, and on most storage written, before its first record.

pub(crate) mod chain;
pub(crate) mod header;
mod lengths;
pub(crate) mod new_file;
pub(crate) mod pages;
pub(crate) mod pool;
mod read;
pub(crate) mod rebuilt;
pub(crate) mod reserve;
mod retire;
pub(crate) mod space;
mod spares;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use haul_disk::{Disk, File, Open};

use crate::error::{Error, Result};
use crate::format::{
    BYTES_MAX, HEADER_BYTES, HeaderError, Salt, SegmentHeader, VERSION, record_bytes,
};
use crate::lsn::Lsn;
use crate::names;
use crate::replay::{Damage, SegmentInfo};
use crate::segments::header::{FoundHeader, read_header};
use crate::segments::pages::PagesState;

pub(crate) type Segments = BTreeMap<u32, Arc<Segment>>;

/// A segment whose file is open for reads and writes at any offset.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) salt: Salt,
    /// The file length in bytes, as declared by the header.
    pub(crate) bytes: u32,
    /// The offset at which the space for records ends: at the header page's copy at the end of the
    /// file.
    pub(crate) limit: u32,
    pub(crate) is_reserve: bool,
    pub(crate) is_recycled: bool,
    pub(crate) follows: Lsn,
    /// The previous segment's number, see [`SegmentHeader::previous`].
    pub(crate) previous: Option<u32>,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    /// The offset at which the records end, even if stale records follow; equal to `limit` until
    /// the end is known.
    end: AtomicU32,
    /// Whether another holder, such as a socket, may keep the file's pages after a read has
    /// returned.
    pub(crate) pages: PagesState,
}

/// Returns a report for each lost segment, see [`chain::lost`], unless its file is in `known`, the
/// damage found so far.
pub(crate) fn lost_segments(root: &Path, segments: &Segments, known: &[Damage]) -> Vec<Damage> {
    let links: Vec<_> = segments.values().map(|s| (s.number, s.follows, s.previous)).collect();
    let damage = |lost: chain::Lost| {
        let what = match lost.is_declared {
            true => "the file of the segment is missing",
            false => {
                "the file of the segment, if there was one, is missing like that of the next one"
            }
        };
        let file = root.join(names::segment(lost.number));
        Damage { file, offset: 0, end: u64::MAX, what: what.to_owned() }
    };
    let lost = chain::lost(&links).into_iter().map(damage);
    lost.filter(|lost| known.iter().all(|known| known.file != lost.file)).collect()
}

/// The mode for random reads of records, without readahead.
pub(crate) const RANDOM: Open =
    Open { direct: false, dsync: false, random: true, read_only: false };

impl Segment {
    pub(crate) fn new(disk: &dyn Disk, header: &SegmentHeader, file: Arc<dyn File>) -> Self {
        let path = disk.root().join(names::segment(header.segment));
        let bytes = u32::try_from(header.bytes).unwrap_or(BYTES_MAX);
        let limit = u32::try_from(header.limit()).unwrap_or(BYTES_MAX);
        debug_assert!(HEADER_BYTES < limit && limit <= bytes);
        Self {
            number: header.segment,
            salt: header.salt,
            bytes,
            limit,
            is_reserve: header.is_reserve,
            is_recycled: header.is_recycled,
            follows: header.follows,
            previous: header.previous,
            path,
            file,
            end: AtomicU32::new(limit),
            pages: PagesState::default(),
        }
    }

    /// Opens the segment with this number and reads its header. If one header page is damaged and
    /// the other one valid, returns the damage, too.
    pub(crate) fn open(disk: &dyn Disk, number: u32, how: Open) -> Result<(Self, Option<Damage>)> {
        let file = disk.open(&names::segment(number), how)?;
        let from = Arc::clone(&file);
        Self::with_header(disk, number, file, &*from)
    }

    /// Returns a copy of the segment with its header read again through `from`, another handle of
    /// the same file.
    pub(crate) fn reopened(&self, disk: &dyn Disk, from: &dyn File) -> Result<Self> {
        let (segment, _reported) =
            Self::with_header(disk, self.number, Arc::clone(&self.file), from)?;
        Ok(segment)
    }

    fn with_header(
        disk: &dyn Disk,
        number: u32,
        file: Arc<dyn File>,
        from: &dyn File,
    ) -> Result<(Self, Option<Damage>)> {
        let path = disk.root().join(names::segment(number));
        let FoundHeader { header, damage } = match read_header(from, number)? {
            Ok(found) => found,
            Err(HeaderError::Version(version)) => {
                let what = format!("its format has version {version}, not {VERSION}");
                return Err(Error::UnsupportedFormat { file: path, what });
            }
            Err(HeaderError::NoMagic | HeaderError::Checksum) => {
                let what = "no copy of the segment's header is valid".to_owned();
                return Err(Error::Damaged { file: path, offset: 0, what });
            }
        };
        if header.segment != number {
            let what = format!("its header is that of segment {}", header.segment);
            return Err(Error::UnsupportedFormat { file: path, what });
        }
        let page = u64::from(HEADER_BYTES);
        let fits = header.bytes <= BYTES_MAX.into() && header.limit() > page;
        if !fits || !header.bytes.is_multiple_of(page) {
            let what = format!("its header declares a length of {} bytes", header.bytes);
            return Err(Error::UnsupportedFormat { file: path, what });
        }
        let damage = damage.map(|(offset, what)| Damage {
            file: path,
            offset,
            end: offset + page,
            what: what.to_owned(),
        });
        Ok((Self::new(disk, &header, file), damage))
    }

    pub(crate) fn info(&self) -> SegmentInfo {
        SegmentInfo {
            number: self.number,
            nonce: self.salt.nonce,
            is_local: self.file.is_local(),
            bytes: self.bytes,
        }
    }

    /// Returns a header with a new nonce, with which the segment can be used again from its
    /// beginning.
    pub(crate) fn renewed_header(&self) -> Result<SegmentHeader> {
        Ok(SegmentHeader {
            segment: self.number,
            salt: fresh_salt()?,
            bytes: self.bytes.into(),
            is_reserve: self.is_reserve,
            is_recycled: self.is_recycled,
            follows: self.follows,
            previous: self.previous,
        })
    }

    /// Returns the offset at which the records end, or `limit` if more records may follow.
    pub(crate) fn end(&self) -> u32 {
        self.end.load(Ordering::Acquire)
    }

    /// Sets the end of the records to `offset`. No record at or after this offset is read or
    /// appended any more.
    pub(crate) fn end_at(&self, offset: u32) {
        debug_assert!((HEADER_BYTES..=self.limit).contains(&offset));
        self.end.store(offset, Ordering::Release);
    }

    /// Opens a read-only handle for sequential reading: with direct I/O if `direct` is set,
    /// otherwise with the kernel's readahead.
    pub(crate) fn sequential(&self, disk: &dyn Disk, direct: bool) -> Result<Arc<dyn File>> {
        let how = Open { read_only: true, direct, ..Open::default() };
        Ok(disk.open(&names::segment(self.number), how)?)
    }

    /// `true` if a record of `record_bytes` bytes, and a seal after it, fit at `offset`.
    pub(crate) fn holds(&self, offset: u32, record_bytes: usize) -> bool {
        offset as usize + record_bytes <= self.records_end() as usize
    }

    /// `true` if a record whose payload has `payload_bytes` bytes fits as the first one.
    pub(crate) fn holds_first(&self, payload_bytes: usize) -> bool {
        self.holds(HEADER_BYTES, record_bytes(payload_bytes))
    }

    /// Returns the greatest offset at which records may end such that a seal, the record that ends
    /// a segment, fits after them.
    pub(crate) fn records_end(&self) -> u32 {
        self.limit - u32::try_from(record_bytes(0)).expect("a seal is a few bytes")
    }
}

/// Returns the length of the shortest segment into which a record with a payload of `payload_bytes`
/// bytes fits as the first one.
pub(crate) fn bytes_for_record(payload_bytes: usize) -> u32 {
    let bytes = record_bytes(payload_bytes) + record_bytes(0) + 2 * HEADER_BYTES as usize;
    u32::try_from(bytes).map_or(BYTES_MAX, |bytes| bytes.next_multiple_of(HEADER_BYTES))
}

/// Creates a salt from the kernel's random numbers.
pub(crate) fn fresh_salt() -> Result<Salt> {
    Ok(Salt::new(u64::from_le_bytes(haul_disk::random_bytes()?)))
}
