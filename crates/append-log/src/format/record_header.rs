//! Encodes and decodes record headers.

use super::{RECORD_HEADER_BYTES, Salt, u32_at, u64_at};
use crate::lsn::Lsn;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A record with the caller's payload.
    Data,
    /// A segment's last record; bytes after it are ignored.
    Seal,
    /// A record written when the log was closed, after all records before it were synced.
    Close,
    /// A record written when the log was idle, after all records before it were synced.
    Watermark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) kind: Kind,
    pub(crate) payload_bytes: u32,
    /// The record's LSN. A record found at another position is invalid.
    pub(crate) lsn: Lsn,
    /// The LSN before which all records were durable when this record was written. Invalid bytes
    /// before that LSN are therefore damage, not the torn tail that an interrupted write leaves.
    pub(crate) synced: Lsn,
    pub(crate) payload_checksum: u32,
}

impl RecordHeader {
    /// Encodes the header.
    ///
    /// The payload has a separate checksum, so that it can be computed before the log is locked and
    /// the LSN is known. The header's checksum covers the payload's checksum.
    pub(crate) fn encode(&self, salt: Salt) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.synced.0.to_le_bytes());
        bytes[24] = match self.kind {
            Kind::Data => 1,
            Kind::Seal => 2,
            Kind::Close => 3,
            Kind::Watermark => 4,
        };
        bytes[25..28].copy_from_slice(&salt.tag);
        bytes[28..32].copy_from_slice(&self.payload_checksum.to_le_bytes());
        let checksum = header_checksum(salt.nonce, &bytes);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// `true` if the bytes contain `lsn` where a record header stores its LSN: a quick check before
    /// decoding.
    pub(crate) fn has_lsn(bytes: &[u8], lsn: Lsn) -> bool {
        u64_at(bytes, 8) == lsn.0
    }

    /// Decodes the record header at `lsn` in a segment with this salt. Returns `None` if it is
    /// invalid.
    pub(crate) fn decode(salt: Salt, bytes: &[u8], lsn: Lsn) -> Option<Self> {
        if bytes[25..28] != salt.tag {
            return None;
        }
        let kind = match bytes[24] {
            1 => Kind::Data,
            2 => Kind::Seal,
            3 => Kind::Close,
            4 => Kind::Watermark,
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

    /// `true` if the payload has the length and checksum in the header.
    pub(crate) fn matches(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_bytes as usize
            && haul_crc::crc32c(payload) == self.payload_checksum
    }
}

fn header_checksum(nonce: u64, header: &[u8]) -> u32 {
    haul_crc::crc32c_append(haul_crc::crc32c(&nonce.to_le_bytes()), &header[4..RECORD_HEADER_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record_bytes;

    const NONCE: u64 = 0x0123_4567_89ab_cdef;

    fn record(payload: &[u8]) -> Vec<u8> {
        let header = RecordHeader {
            kind: Kind::Data,
            payload_bytes: u32::try_from(payload.len()).unwrap(),
            lsn: Lsn::new(1, 4096),
            synced: Lsn::new(1, 4096),
            payload_checksum: haul_crc::crc32c(payload),
        };
        let mut record = header.encode(Salt::new(NONCE)).to_vec();
        record.extend_from_slice(payload);
        record.resize(record_bytes(payload.len()), 0);
        record
    }

    #[test]
    fn worked_example_in_format_md_is_correct() {
        let page = include_str!("../../FORMAT.md");
        let example = haul_testing::docs::hex_example(page);
        assert_eq!(example, record(b"hello, disk"));
    }

    #[test]
    fn each_kind_has_its_number_and_other_numbers_are_invalid() {
        let (salt, lsn) = (Salt::new(NONCE), Lsn::new(1, 8192));
        let header = |kind| RecordHeader {
            kind,
            payload_bytes: 0,
            lsn,
            synced: Lsn::new(1, 4096),
            payload_checksum: haul_crc::crc32c(b""),
        };
        for (kind, number) in
            [(Kind::Data, 1), (Kind::Seal, 2), (Kind::Close, 3), (Kind::Watermark, 4)]
        {
            let header = header(kind);
            let bytes = header.encode(salt);
            assert_eq!(bytes[24], number);
            assert_eq!(RecordHeader::decode(salt, &bytes, lsn), Some(header));
            assert!(RecordHeader::has_lsn(&bytes, lsn));
            assert!(!RecordHeader::has_lsn(&bytes, Lsn::new(1, 8200)));
        }
        for number in [0, 5, u8::MAX] {
            let mut bytes = header(Kind::Data).encode(salt);
            bytes[24] = number;
            let checksum = header_checksum(NONCE, &bytes);
            bytes[..4].copy_from_slice(&checksum.to_le_bytes());
            assert_eq!(RecordHeader::decode(salt, &bytes, lsn), None, "{number}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_detected() {
        let good = record(b"some payload");
        let read = |nonce: u64, bytes: &[u8], lsn: Lsn| {
            let header = RecordHeader::decode(Salt::new(nonce), bytes, lsn)?;
            header.matches(&bytes[RECORD_HEADER_BYTES..][..12]).then_some(header)
        };
        let lsn = Lsn::new(1, 4096);
        assert!(read(NONCE, &good, lsn).is_some());
        for bit in 0..(RECORD_HEADER_BYTES + 12) * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(NONCE, &bad, lsn), None, "bit {bit}");
        }
        assert_eq!(read(NONCE + 1, &good, lsn), None, "another use of the file");
        assert_eq!(read(NONCE, &good, Lsn::new(1, 4104)), None, "another position");
    }
}
