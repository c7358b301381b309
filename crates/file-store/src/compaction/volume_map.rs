//! Each volume's live and dead ranges, for display.

use haul_append_log::Position;

use crate::index::volumes::stored_bytes;

/// A volume's needles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeMap {
    /// The volume's number, which is part of its file's name.
    pub number: u32,
    /// The file's length, in bytes.
    pub bytes: u64,
    /// The file's ranges that contain needles, in ascending order. Adjacent ones differ in
    /// `is_live`, unless there is padding between them.
    pub extents: Vec<VolumeExtent>,
}

/// A range of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeExtent {
    /// The offset in the file.
    pub offset: u64,
    /// The length, in bytes.
    pub bytes: u64,
    /// `true` if the needles have their keys' newest state. Other needles were replaced or deleted,
    /// or are tombstones.
    pub is_live: bool,
}

impl VolumeMap {
    /// Returns the number of bytes in live needles, or in dead ones.
    #[must_use]
    pub fn needle_bytes(&self, is_live: bool) -> u64 {
        let extents = self.extents.iter().filter(|extent| extent.is_live == is_live);
        extents.map(|extent| extent.bytes).sum()
    }
}

/// Adds a needle. A record with several needles is live if any needle is.
pub(super) fn add(extents: &mut Vec<VolumeExtent>, at: Position, is_live: bool) {
    let offset = u64::from(at.lsn.offset());
    let bytes = stored_bytes(at.payload_bytes.into());
    match extents.last_mut() {
        Some(last) if last.offset == offset => last.is_live |= is_live,
        _ => extents.push(VolumeExtent { offset, bytes, is_live }),
    }
}

/// Merges adjacent extents of the same state.
pub(super) fn merged(records: Vec<VolumeExtent>) -> Vec<VolumeExtent> {
    let mut extents: Vec<VolumeExtent> = Vec::new();
    for record in records {
        match extents.last_mut() {
            Some(last)
                if last.is_live == record.is_live && last.offset + last.bytes == record.offset =>
            {
                last.bytes += record.bytes;
            }
            _ => extents.push(record),
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use haul_append_log::Lsn;

    use super::*;

    #[test]
    fn adjacent_records_of_the_same_state_are_one_extent() {
        let mut extents = Vec::new();
        for (offset, payload_bytes, is_live) in [
            (4096, 8, false),
            (4136, 3, true),
            (4136, 3, false),
            (4176, 8, true),
            (8192, 8, true),
            (8232, 8, false),
        ] {
            let at = Position { lsn: Lsn::new(1, offset), payload_bytes };
            add(&mut extents, at, is_live);
        }
        let expected = [(4096, 40, false), (4136, 80, true), (8192, 40, true), (8232, 40, false)];
        let expected =
            expected.map(|(offset, bytes, is_live)| VolumeExtent { offset, bytes, is_live });
        let extents = merged(extents);
        assert_eq!(extents, expected);
        let map = VolumeMap { number: 1, bytes: 10_000, extents };
        assert_eq!((map.needle_bytes(true), map.needle_bytes(false)), (120, 80));
    }
}
