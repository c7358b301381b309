//! Encodes and decodes the header of a segment.

use super::{
    HEADER_BYTES, Salt, VERSION_WITH_COMPRESSION, VERSION_WITHOUT_END_PAGE, VERSION_WITHOUT_TAG,
    u32_at, u64_at,
};
use crate::lsn::Lsn;

/// The magic number at the beginning of a segment.
const MAGIC: [u8; 8] = *b"HAUL-LOG";

/// The offset of the second copy of the header within its page, in bytes. The copies lie in
/// different sectors of 512 bytes, so the loss of one sector destroys only one copy.
const HEADER_COPY_AT: usize = 2048;

/// The lengths of one copy of the header in bytes: in the current version and in version 1.
const HEADER_COPY_BYTES: usize = 48;
const HEADER_COPY_BYTES_V1: usize = 40;

const FLAG_RESERVE: u32 = 1;
const FLAG_RECYCLED: u32 = 2;
/// The bit of the flags from which on they contain the distance to the previous segment.
const DISTANCE_SHIFT: u32 = 8;
const DISTANCE_MAX: u32 = u32::MAX >> DISTANCE_SHIFT;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) version: u32,
    /// The segment number, also the upper half of the LSN of each record.
    pub(crate) segment: u32,
    pub(crate) salt: Salt,
    /// The length of the file in bytes.
    pub(crate) bytes: u64,
    /// `true` if the segment was taken from the reserve, the segments kept for deletions and
    /// compaction on a full disk. While the reserve is incomplete, the segment accepts only
    /// deletions and copies made by compaction.
    pub(crate) is_reserve: bool,
    /// `true` if the file was used for a segment before, so that stale bytes instead of zeros
    /// follow the records.
    pub(crate) is_recycled: bool,
    /// The LSN at which the log before this segment ends, even if records lie after that LSN. 0 if
    /// only the seal of the previous segment, its last record, marks that end.
    pub(crate) follows: Lsn,
    /// The number of the segment before this one, which exists as long as any older segment does;
    /// `None` if it is unknown, or if the caller may remove segments in any order.
    pub(crate) previous: Option<u32>,
}

/// The reason why bytes are not a valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAHeader {
    /// The bytes do not begin with the magic number.
    NoMagic,
    /// The header has this unsupported format version.
    Version(u32),
    /// The checksum does not match the header.
    Checksum,
}

impl SegmentHeader {
    /// `true` if the last page of the file holds a copy of the header.
    pub(crate) fn has_end_page(&self) -> bool {
        self.version > VERSION_WITHOUT_END_PAGE
    }

    /// `true` if the segment's format version has watermarks, records that prove that all records
    /// before them were synced.
    pub(crate) fn has_watermarks(&self) -> bool {
        self.version > VERSION_WITHOUT_END_PAGE
    }

    /// `true` if the segment's format version has compressed records.
    pub(crate) fn has_compression(&self) -> bool {
        self.version >= VERSION_WITH_COMPRESSION
    }

    /// Returns the offset at which the space for records ends: at the header page at the end of the
    /// file or, in a version without that page, at the end of the file.
    pub(crate) fn limit(&self) -> u64 {
        let end_page = if self.has_end_page() { u64::from(HEADER_BYTES) } else { 0 };
        self.bytes.saturating_sub(end_page)
    }

    /// Returns the format version with which this header is rewritten. An older segment does not
    /// get a header page at the end: if a crash left only the first of the two pages written, the
    /// missing last page would be reported as damage.
    pub(crate) fn renewed_version(&self) -> u32 {
        self.version.max(VERSION_WITHOUT_END_PAGE)
    }

    /// Encodes the header twice into a header page.
    pub(crate) fn encode(&self, page: &mut [u8]) {
        let mut copy = [0; HEADER_COPY_BYTES];
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let distance = self.previous.and_then(|previous| self.segment.checked_sub(previous));
        let distance = distance.filter(|distance| *distance <= DISTANCE_MAX).unwrap_or(0);
        let flags = flag(self.is_reserve, FLAG_RESERVE)
            | flag(self.is_recycled, FLAG_RECYCLED)
            | distance << DISTANCE_SHIFT;
        copy[0..8].copy_from_slice(&MAGIC);
        copy[8..12].copy_from_slice(&self.version.to_le_bytes());
        copy[16..20].copy_from_slice(&self.segment.to_le_bytes());
        copy[20..24].copy_from_slice(&flags.to_le_bytes());
        copy[24..32].copy_from_slice(&self.salt.nonce.to_le_bytes());
        copy[32..40].copy_from_slice(&self.bytes.to_le_bytes());
        copy[40..48].copy_from_slice(&self.follows.0.to_le_bytes());
        let checksum = haul_crc::crc32c(&copy);
        copy[12..16].copy_from_slice(&checksum.to_le_bytes());
        page[..HEADER_COPY_BYTES].copy_from_slice(&copy);
        page[HEADER_COPY_AT..HEADER_COPY_AT + HEADER_COPY_BYTES].copy_from_slice(&copy);
    }

    /// Decodes the first valid copy of the header in a page. If no copy is valid, but one has a
    /// valid checksum and an unsupported version, returns the version.
    pub(crate) fn decode(page: &[u8]) -> Result<Self, NotAHeader> {
        let copy = |at: usize| {
            let bytes = page.get(at..at + HEADER_COPY_BYTES).ok_or(NotAHeader::NoMagic)?;
            Self::decode_copy(bytes)
        };
        match (copy(0), copy(HEADER_COPY_AT)) {
            (Ok(header), _) | (_, Ok(header)) => Ok(header),
            (_, Err(version @ NotAHeader::Version(_))) => Err(version),
            (Err(reason), _) => Err(reason),
        }
    }

    fn decode_copy(copy: &[u8]) -> Result<Self, NotAHeader> {
        if copy[..8] != MAGIC {
            return Err(NotAHeader::NoMagic);
        }
        let version = u32_at(copy, 8);
        let mut summed = [0; HEADER_COPY_BYTES];
        summed.copy_from_slice(copy);
        summed[12..16].fill(0);
        // The length of the header in an unsupported version is unknown, so both known lengths are
        // tried.
        let lengths = match version {
            VERSION_WITHOUT_TAG => &[HEADER_COPY_BYTES_V1][..],
            VERSION_WITHOUT_END_PAGE..=VERSION_WITH_COMPRESSION => &[HEADER_COPY_BYTES],
            _ => &[HEADER_COPY_BYTES_V1, HEADER_COPY_BYTES],
        };
        if !lengths.iter().any(|bytes| haul_crc::crc32c(&summed[..*bytes]) == u32_at(copy, 12)) {
            return Err(NotAHeader::Checksum);
        }
        let (flags, follows) = match version {
            VERSION_WITHOUT_TAG => (0, Lsn(0)),
            VERSION_WITHOUT_END_PAGE..=VERSION_WITH_COMPRESSION => {
                (u32_at(copy, 20), Lsn(u64_at(copy, 40)))
            }
            other => return Err(NotAHeader::Version(other)),
        };
        let distance = Some(flags >> DISTANCE_SHIFT).filter(|distance| *distance > 0);
        Ok(Self {
            version,
            segment: u32_at(copy, 16),
            salt: Salt::of_version(version, u64_at(copy, 24)),
            bytes: u64_at(copy, 32),
            is_reserve: flags & FLAG_RESERVE != 0,
            is_recycled: flags & FLAG_RECYCLED != 0,
            follows,
            previous: distance.and_then(|distance| u32_at(copy, 16).checked_sub(distance)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::VERSION;

    const NONCE: u64 = 0x0123_4567_89ab_cdef;

    #[test]
    fn either_copy_of_the_segment_header_suffices() {
        let header = SegmentHeader {
            version: VERSION,
            segment: 7,
            salt: Salt::new(NONCE),
            bytes: 1 << 20,
            is_reserve: false,
            is_recycled: true,
            follows: Lsn::new(5, 4104),
            previous: Some(6),
        };
        let mut page = vec![0; HEADER_BYTES as usize];
        header.encode(&mut page);
        assert_eq!(SegmentHeader::decode(&page), Ok(header));
        page[30] ^= 1;
        assert_eq!(SegmentHeader::decode(&page), Ok(header));
        page[HEADER_COPY_AT + 30] ^= 1;
        assert_eq!(SegmentHeader::decode(&page), Err(NotAHeader::Checksum));
        assert_eq!(SegmentHeader::decode(&[0; 4096]), Err(NotAHeader::NoMagic));
        assert_eq!(SegmentHeader::decode(b"HAUL"), Err(NotAHeader::NoMagic));
    }

    #[test]
    fn record_space_ends_before_the_end_page_since_version_3() {
        let header = |version| SegmentHeader {
            version,
            segment: 7,
            salt: Salt::new(NONCE),
            bytes: 1 << 20,
            is_reserve: false,
            is_recycled: false,
            follows: Lsn(0),
            previous: None,
        };
        let shorter = (1 << 20) - 4096;
        for (version, limit) in [(2, 1 << 20), (3, shorter), (4, shorter)] {
            let mut page = vec![0; HEADER_BYTES as usize];
            header(version).encode(&mut page);
            let read = SegmentHeader::decode(&page).unwrap();
            assert_eq!(read, header(version));
            assert_eq!((read.limit(), read.renewed_version()), (limit, version));
            assert_eq!((read.has_watermarks(), read.has_compression()), (version > 2, version > 3));
        }
        let mut page = vec![0; HEADER_BYTES as usize];
        header(5).encode(&mut page);
        assert_eq!(SegmentHeader::decode(&page), Err(NotAHeader::Version(5)));
    }

    #[test]
    fn previous_segment_is_unknown_if_it_is_too_far_away() {
        let segment = DISTANCE_MAX + 2;
        for (previous, expected) in [(2, Some(2)), (1, None), (segment + 1, None)] {
            let header = SegmentHeader {
                version: VERSION,
                segment,
                salt: Salt::new(NONCE),
                bytes: 1 << 20,
                is_reserve: true,
                is_recycled: false,
                follows: Lsn(0),
                previous: Some(previous),
            };
            let mut page = vec![0; HEADER_BYTES as usize];
            header.encode(&mut page);
            let expected = SegmentHeader { previous: expected, ..header };
            assert_eq!(SegmentHeader::decode(&page), Ok(expected));
        }
    }

    #[test]
    fn version_1_header_is_decoded() {
        let mut copy = [0; 40];
        copy[0..8].copy_from_slice(&MAGIC);
        copy[8] = 1;
        copy[16] = 7;
        copy[24..32].copy_from_slice(&NONCE.to_le_bytes());
        copy[32..40].copy_from_slice(&(1_u64 << 20).to_le_bytes());
        let checksum = haul_crc::crc32c(&copy);
        copy[12..16].copy_from_slice(&checksum.to_le_bytes());
        let mut page = vec![0; HEADER_BYTES as usize];
        page[..40].copy_from_slice(&copy);
        let header = SegmentHeader::decode(&page).unwrap();
        assert_eq!((header.segment, header.bytes, header.follows), (7, 1 << 20, Lsn(0)));
        assert_eq!((header.is_reserve, header.is_recycled), (false, false));
        assert_eq!(header.salt, Salt { nonce: NONCE, tag: [0; 3] });
        assert_eq!((header.limit(), header.renewed_version()), (1 << 20, 2));
        page[8] = 3;
        assert_eq!(SegmentHeader::decode(&page), Err(NotAHeader::Checksum));
    }
}
