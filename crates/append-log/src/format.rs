//! The bytes of a segment: the only file that knows them. See `FORMAT.md` for pictures.
//!
//! All numbers are little-endian. Checksums are CRC-32C (Castagnoli).

use crate::lsn::Lsn;

/// What a segment begins with.
const MAGIC: [u8; 8] = *b"HAUL-LOG";

/// The version of this format that is written.
const VERSION: u32 = 2;

/// An older one that is read and gone on with: without tag, flags and `follows`.
const VERSION_WITHOUT_TAG: u32 = 1;

/// Records begin here; the page before it holds the header, twice.
pub(crate) const HEADER_BYTES: u32 = 4096;

/// The second copy of the header, in another sector than the first.
const HEADER_COPY_AT: usize = 2048;

/// The bytes of one copy of the header, which version 1 used 40 of.
const HEADER_COPY_BYTES: usize = 48;
const HEADER_COPY_BYTES_V1: usize = 40;

const FLAG_RESERVE: u32 = 1;
const FLAG_RECYCLED: u32 = 2;

/// What stands before each payload.
pub(crate) const RECORD_HEADER_BYTES: usize = 32;

/// Records begin at multiples of this.
pub(crate) const RECORD_ALIGN: usize = 8;

/// What tells the records of one use of a file from all others that may be in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Salt {
    /// Random, new at each use of the file, and part of every checksum: what an earlier use left
    /// behind cannot pass for a record.
    pub(crate) nonce: u64,
    /// Its low three bytes, in plain in every record. Whoever can choose payloads could guess a
    /// checksum of 32 bits among the millions of places a file has; 56 bits are out of reach.
    tag: [u8; 3],
}

impl Salt {
    /// That of a segment of the version written now.
    pub(crate) fn new(nonce: u64) -> Self {
        let [a, b, c, ..] = nonce.to_le_bytes();
        Self { nonce, tag: [a, b, c] }
    }

    fn of_version(version: u32, nonce: u64) -> Self {
        match version {
            VERSION_WITHOUT_TAG => Self { nonce, tag: [0; 3] },
            _ => Self::new(nonce),
        }
    }
}

/// What a segment says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Its number, also the upper half of the LSN of each of its records.
    pub(crate) segment: u32,
    pub(crate) salt: Salt,
    /// The length of the file.
    pub(crate) bytes: u64,
    /// It takes only records that help a full disk.
    pub(crate) is_reserve: bool,
    /// The file was used before: what is behind the records is anything, not zeros.
    pub(crate) is_recycled: bool,
    /// Where the log before this segment ends, whatever is there behind it; 0 where the segment
    /// before it ends with its own seal.
    pub(crate) follows: Lsn,
}

/// What the kinds of records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A payload of the caller.
    Data,
    /// The segment ends here, whatever follows.
    Seal,
    /// The log was closed here, with everything before it on the medium.
    Close,
}

/// What stands before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) kind: Kind,
    pub(crate) payload_bytes: u32,
    /// Where the record begins: a record elsewhere than its LSN says is none.
    pub(crate) lsn: Lsn,
    /// Everything before this was on the medium when the record was written: bytes before it
    /// that do not check out are damage, not a torn tail.
    pub(crate) synced: Lsn,
    pub(crate) payload_checksum: u32,
}

/// Why some bytes are not a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAHeader {
    /// They never were one.
    NoMagic,
    /// They are one of a version we do not know.
    Version(u32),
    /// They were one once.
    Checksum,
}

/// The bytes a record of `payload_bytes` takes in a segment, padding included.
pub(crate) const fn record_bytes(payload_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(RECORD_ALIGN)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

impl SegmentHeader {
    /// Writes both copies into the first page of a segment.
    pub(crate) fn encode(&self, page: &mut [u8]) {
        let mut copy = [0; HEADER_COPY_BYTES];
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(self.is_reserve, FLAG_RESERVE) | flag(self.is_recycled, FLAG_RECYCLED);
        copy[0..8].copy_from_slice(&MAGIC);
        copy[8..12].copy_from_slice(&VERSION.to_le_bytes());
        copy[16..20].copy_from_slice(&self.segment.to_le_bytes());
        copy[20..24].copy_from_slice(&flags.to_le_bytes());
        copy[24..32].copy_from_slice(&self.salt.nonce.to_le_bytes());
        copy[32..40].copy_from_slice(&self.bytes.to_le_bytes());
        copy[40..48].copy_from_slice(&self.follows.0.to_le_bytes());
        let checksum = crc32c::crc32c(&copy);
        copy[12..16].copy_from_slice(&checksum.to_le_bytes());
        page[..HEADER_COPY_BYTES].copy_from_slice(&copy);
        page[HEADER_COPY_AT..HEADER_COPY_AT + HEADER_COPY_BYTES].copy_from_slice(&copy);
    }

    /// Reads the first copy that checks out of the first page of a segment. A copy that does, and
    /// is of a version we do not know, tells more than one that does not.
    pub(crate) fn decode(page: &[u8]) -> Result<Self, NotAHeader> {
        let copy = |at: usize| {
            let bytes = page.get(at..at + HEADER_COPY_BYTES).ok_or(NotAHeader::NoMagic)?;
            Self::decode_copy(bytes)
        };
        match (copy(0), copy(HEADER_COPY_AT)) {
            (Ok(header), _) | (_, Ok(header)) => Ok(header),
            (_, Err(version @ NotAHeader::Version(_))) => Err(version),
            (Err(why), _) => Err(why),
        }
    }

    fn decode_copy(copy: &[u8]) -> Result<Self, NotAHeader> {
        if copy[..8] != MAGIC {
            return Err(NotAHeader::NoMagic);
        }
        let version = u32_at(copy, 8);
        let mut unsummed = [0; HEADER_COPY_BYTES];
        unsummed.copy_from_slice(copy);
        unsummed[12..16].fill(0);
        // Of a version we do not know, only the length of the sum is a guess.
        let lengths = match version {
            VERSION_WITHOUT_TAG => &[HEADER_COPY_BYTES_V1][..],
            VERSION => &[HEADER_COPY_BYTES],
            _ => &[HEADER_COPY_BYTES_V1, HEADER_COPY_BYTES],
        };
        if !lengths.iter().any(|bytes| crc32c::crc32c(&unsummed[..*bytes]) == u32_at(copy, 12)) {
            return Err(NotAHeader::Checksum);
        }
        let (flags, follows) = match version {
            VERSION_WITHOUT_TAG => (0, Lsn(0)),
            VERSION => (u32_at(copy, 20), Lsn(u64_at(copy, 40))),
            other => return Err(NotAHeader::Version(other)),
        };
        Ok(Self {
            segment: u32_at(copy, 16),
            salt: Salt::of_version(version, u64_at(copy, 24)),
            bytes: u64_at(copy, 32),
            is_reserve: flags & FLAG_RESERVE != 0,
            is_recycled: flags & FLAG_RECYCLED != 0,
            follows,
        })
    }
}

impl RecordHeader {
    /// The bytes of the header.
    ///
    /// The payload is summed apart, so that the long part of the work needs neither the LSN nor
    /// a lock; the header's own checksum then covers the payload's.
    pub(crate) fn encode(&self, salt: Salt) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.synced.0.to_le_bytes());
        bytes[24] = match self.kind {
            Kind::Data => 1,
            Kind::Seal => 2,
            Kind::Close => 3,
        };
        bytes[25..28].copy_from_slice(&salt.tag);
        bytes[28..32].copy_from_slice(&self.payload_checksum.to_le_bytes());
        let checksum = header_checksum(salt.nonce, &bytes);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Whether the bytes claim to be the header of a record at `lsn`: a quick look.
    pub(crate) fn claims(bytes: &[u8], lsn: Lsn) -> bool {
        u64_at(bytes, 8) == lsn.0
    }

    /// What the bytes say, if they are the header of a record at `lsn`, written in the use of
    /// the file that has this nonce.
    pub(crate) fn decode(salt: Salt, bytes: &[u8], lsn: Lsn) -> Option<Self> {
        if bytes[25..28] != salt.tag {
            return None;
        }
        let kind = match bytes[24] {
            1 => Kind::Data,
            2 => Kind::Seal,
            3 => Kind::Close,
            _ => return None,
        };
        let header = Self {
            kind,
            payload_bytes: u32_at(bytes, 4),
            lsn: Lsn(u64_at(bytes, 8)),
            synced: Lsn(u64_at(bytes, 16)),
            payload_checksum: u32_at(bytes, 28),
        };
        let in_place = header.lsn == lsn && header.synced <= lsn;
        (in_place && header_checksum(salt.nonce, bytes) == u32_at(bytes, 0)).then_some(header)
    }

    /// Whether this is the payload the header was written for.
    pub(crate) fn is_of(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_bytes as usize
            && crc32c::crc32c(payload) == self.payload_checksum
    }
}

fn header_checksum(nonce: u64, header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&nonce.to_le_bytes()), &header[4..RECORD_HEADER_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: u64 = 0x0123_4567_89ab_cdef;

    fn record(payload: &[u8]) -> Vec<u8> {
        let header = RecordHeader {
            kind: Kind::Data,
            payload_bytes: u32::try_from(payload.len()).unwrap(),
            lsn: Lsn::new(1, 4096),
            synced: Lsn::new(1, 4096),
            payload_checksum: crc32c::crc32c(payload),
        };
        let mut record = header.encode(Salt::new(NONCE)).to_vec();
        record.extend_from_slice(payload);
        record.resize(record_bytes(payload.len()), 0);
        record
    }

    #[test]
    fn the_worked_example_of_the_format_page_is_true() {
        let page = include_str!("../FORMAT.md");
        let example: Vec<u8> = page
            .lines()
            .skip_while(|line| *line != "```hex")
            .skip(1)
            .take_while(|line| *line != "```")
            .flat_map(|line| line.split('|').next().unwrap_or("").split_whitespace())
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect();
        assert_eq!(example, record(b"hello, disk"));
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_noticed() {
        let good = record(b"some payload");
        let read = |nonce: u64, bytes: &[u8], lsn: Lsn| {
            let header = RecordHeader::decode(Salt::new(nonce), bytes, lsn)?;
            header.is_of(&bytes[RECORD_HEADER_BYTES..][..12]).then_some(header)
        };
        let lsn = Lsn::new(1, 4096);
        assert!(read(NONCE, &good, lsn).is_some());
        for bit in 0..(RECORD_HEADER_BYTES + 12) * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(NONCE, &bad, lsn), None, "bit {bit}");
        }
        assert_eq!(read(NONCE + 1, &good, lsn), None, "another use of the file");
        assert_eq!(read(NONCE, &good, Lsn::new(1, 4104)), None, "another place");
    }

    #[test]
    fn either_copy_of_the_segment_header_is_enough() {
        let header = SegmentHeader {
            segment: 7,
            salt: Salt::new(NONCE),
            bytes: 1 << 20,
            is_reserve: false,
            is_recycled: true,
            follows: Lsn::new(5, 4104),
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
    fn a_header_of_version_1_is_read() {
        let mut copy = [0; 40];
        copy[0..8].copy_from_slice(&MAGIC);
        copy[8] = 1;
        copy[16] = 7;
        copy[24..32].copy_from_slice(&NONCE.to_le_bytes());
        copy[32..40].copy_from_slice(&(1_u64 << 20).to_le_bytes());
        let checksum = crc32c::crc32c(&copy);
        copy[12..16].copy_from_slice(&checksum.to_le_bytes());
        let mut page = vec![0; HEADER_BYTES as usize];
        page[..40].copy_from_slice(&copy);
        let header = SegmentHeader::decode(&page).unwrap();
        assert_eq!((header.segment, header.bytes, header.follows), (7, 1 << 20, Lsn(0)));
        assert_eq!((header.is_reserve, header.is_recycled), (false, false));
        assert_eq!(header.salt, Salt { nonce: NONCE, tag: [0; 3] });
        page[8] = 3;
        assert_eq!(SegmentHeader::decode(&page), Err(NotAHeader::Checksum));
    }
}
