//! Encodes and decodes segment headers.

use super::{HEADER_BYTES, Salt, VERSION, u32_at, u64_at};
use crate::lsn::Lsn;

/// The magic number at a segment's beginning.
const MAGIC: [u8; 8] = *b"HAUL-LOG";

/// The offset of the header's second copy within its page, in bytes. The copies lie in different
/// 512-byte sectors, so the loss of one sector destroys only one copy.
const HEADER_COPY_AT: usize = 2048;

/// The length of one header copy in bytes.
const HEADER_COPY_BYTES: usize = 48;

const FLAG_RESERVE: u32 = 1;
const FLAG_RECYCLED: u32 = 2;
/// The position of the distance to the previous segment in the flags.
const DISTANCE_SHIFT: u32 = 8;
const DISTANCE_MAX: u32 = u32::MAX >> DISTANCE_SHIFT;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// The segment number, also the upper half of each record's LSN.
    pub(crate) segment: u32,
    pub(crate) salt: Salt,
    /// The file length in bytes.
    pub(crate) bytes: u64,
    /// `true` if the segment was taken from the reserve, the segments kept for deletions and
    /// compaction on a full disk. While the reserve is incomplete, the segment accepts only
    /// deletions and copies made by compaction.
    pub(crate) is_reserve: bool,
    /// `true` if the file was used for a segment before, so that stale bytes instead of zeros
    /// follow the records.
    pub(crate) is_recycled: bool,
    /// The LSN at which the log before this segment ends, even if records lie after that LSN. 0 if
    /// the previous segment's seal, its last record, marks that end.
    pub(crate) follows: Lsn,
    /// The number of the segment before this one, which exists as long as any older segment does;
    /// `None` if it is unknown, or if the caller may remove segments in any order.
    pub(crate) previous: Option<u32>,
}

/// The reason why bytes are not a valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The bytes do not begin with the magic number.
    NoMagic,
    /// The header has this unsupported format version.
    Version(u32),
    /// The checksum does not match the header.
    Checksum,
}

impl SegmentHeader {
    /// Returns the offset at which the space for records ends: at the header page's copy at the end
    /// of the file.
    pub(crate) fn limit(&self) -> u64 {
        self.bytes.saturating_sub(HEADER_BYTES.into())
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
        copy[8..12].copy_from_slice(&VERSION.to_le_bytes());
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

    /// Decodes the header's first valid copy in a page. If no copy is valid, but one has a valid
    /// checksum and an unsupported version, returns the version.
    pub(crate) fn decode(page: &[u8]) -> Result<Self, HeaderError> {
        let copy = |at: usize| {
            let bytes = page.get(at..at + HEADER_COPY_BYTES).ok_or(HeaderError::NoMagic)?;
            Self::decode_copy(bytes)
        };
        match (copy(0), copy(HEADER_COPY_AT)) {
            (Ok(header), _) | (_, Ok(header)) => Ok(header),
            (_, Err(version @ HeaderError::Version(_))) => Err(version),
            (Err(reason), _) => Err(reason),
        }
    }

    fn decode_copy(copy: &[u8]) -> Result<Self, HeaderError> {
        if copy[..8] != MAGIC {
            return Err(HeaderError::NoMagic);
        }
        let version = u32_at(copy, 8);
        let mut summed = [0; HEADER_COPY_BYTES];
        summed.copy_from_slice(copy);
        summed[12..16].fill(0);
        if haul_crc::crc32c(&summed) != u32_at(copy, 12) {
            return Err(HeaderError::Checksum);
        }
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        let flags = u32_at(copy, 20);
        let distance = Some(flags >> DISTANCE_SHIFT).filter(|distance| *distance > 0);
        Ok(Self {
            segment: u32_at(copy, 16),
            salt: Salt::new(u64_at(copy, 24)),
            bytes: u64_at(copy, 32),
            is_reserve: flags & FLAG_RESERVE != 0,
            is_recycled: flags & FLAG_RECYCLED != 0,
            follows: Lsn(u64_at(copy, 40)),
            previous: distance.and_then(|distance| u32_at(copy, 16).checked_sub(distance)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: u64 = 0x0123_4567_89ab_cdef;

    #[test]
    fn either_copy_of_the_segment_header_suffices() {
        let header = SegmentHeader {
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
        assert_eq!(SegmentHeader::decode(&page), Err(HeaderError::Checksum));
        assert_eq!(SegmentHeader::decode(&[0; 4096]), Err(HeaderError::NoMagic));
        assert_eq!(SegmentHeader::decode(b"HAUL"), Err(HeaderError::NoMagic));
    }

    #[test]
    fn record_space_ends_before_the_end_page() {
        let header = SegmentHeader {
            segment: 7,
            salt: Salt::new(NONCE),
            bytes: 1 << 20,
            is_reserve: false,
            is_recycled: false,
            follows: Lsn(0),
            previous: None,
        };
        assert_eq!(header.limit(), (1 << 20) - 4096);
        assert_eq!(SegmentHeader { bytes: 0, ..header }.limit(), 0);
    }

    #[test]
    fn every_other_version_is_rejected() {
        let mut page = vec![0; HEADER_BYTES as usize];
        for version in [0_u32, 2, 3, u32::MAX] {
            let mut copy = [0; HEADER_COPY_BYTES];
            copy[0..8].copy_from_slice(&MAGIC);
            copy[8..12].copy_from_slice(&version.to_le_bytes());
            let checksum = haul_crc::crc32c(&copy);
            copy[12..16].copy_from_slice(&checksum.to_le_bytes());
            page[..HEADER_COPY_BYTES].copy_from_slice(&copy);
            assert_eq!(SegmentHeader::decode(&page), Err(HeaderError::Version(version)));
        }
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&page), Err(HeaderError::Checksum), "changed bytes");
    }

    #[test]
    fn previous_segment_is_unknown_if_it_is_too_far_away() {
        let segment = DISTANCE_MAX + 2;
        for (previous, expected) in [(2, Some(2)), (1, None), (segment + 1, None)] {
            let header = SegmentHeader {
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
}
