//! The checksum field in a header of version 2 of the PROXY protocol.

use std::ops::Range;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const FIXED_BYTES: usize = 16;
const CHECKSUM_FIELD: u8 = 3;

/// Returns the length that a header of version 2 declares; `None` if it is another header, or
/// incomplete.
fn declared_bytes(header: &[u8]) -> Option<usize> {
    let length = header.strip_prefix(SIGNATURE)?.get(2..4)?;
    let bytes = FIXED_BYTES + usize::from(u16::from_be_bytes([length[0], length[1]]));
    (bytes <= header.len()).then_some(bytes)
}

/// Returns the places of the checksums in a header of version 2.
fn checksums(header: &[u8]) -> Vec<Range<usize>> {
    let Some(end) = declared_bytes(header) else { return Vec::new() };
    let mut at = FIXED_BYTES
        + match header[13] {
            0x11 => 12,
            0x21 => 36,
            0x31 => 216,
            _ => return Vec::new(),
        };
    let mut found = Vec::new();
    while at + 3 <= end {
        let value_bytes = usize::from(u16::from_be_bytes([header[at + 1], header[at + 2]]));
        let value = at + 3..at + 3 + value_bytes;
        if header[at] == CHECKSUM_FIELD && value_bytes == 4 && value.end <= end {
            found.push(value.clone());
        }
        at = value.end;
    }
    found
}

fn computed(header: &[u8], place: &Range<usize>) -> Option<[u8; 4]> {
    let mut bytes = header[..declared_bytes(header)?].to_vec();
    bytes[place.clone()].fill(0);
    Some(haul_crc::crc32c(&bytes).to_be_bytes())
}

/// Sets the last checksum of a header. Of several, only one can be right.
pub(crate) fn set_checksum(header: &mut [u8]) {
    if let Some(place) = checksums(header).pop()
        && let Some(checksum) = computed(header, &place)
    {
        header[place].copy_from_slice(&checksum);
    }
}

/// `true` if all checksums of a header are right.
#[must_use]
pub(crate) fn has_right_checksums(header: &[u8]) -> bool {
    let is_right = |place: &Range<usize>| {
        computed(header, place).is_some_and(|checksum| header[place.clone()] == checksum)
    };
    checksums(header).iter().all(is_right)
}
