//! Computes how many whole segments to reserve for a full disk, and decides which records may use
//! them. Performs no I/O.
//!
//! The reserve consists of spare files of full length. Records that free space, such as deletions,
//! may use all of these files but one. Copies made by compaction may use all of them. Each segment
//! that compaction removes becomes a spare file, so the reserve is complete again before an
//! ordinary record gets a new segment.

/// The priority with which a record may use the last free space of a nearly full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpacePriority {
    /// All space except for the reserve: for ordinary records.
    Ordinary,
    /// All space including the reserve, but without the last segment of full length: for records
    /// that help to free space, such as deletions.
    Reserve,
    /// All space, including the whole reserve: for copies of records whose segment the caller
    /// removes afterwards.
    Compaction,
}

/// The log's space, divided by this number, is the reserve's maximum size.
const PART_OF_CAPACITY: u64 = 3;

/// Returns how many whole segments to reserve, at most `max`.
///
/// There are no more reserved segments than sealed segments (those no longer being written),
/// because only sealed segments can be compacted. They take at most a third of `capacity_bytes`,
/// the log's space including the disk's free space (`None` if unlimited).
pub(crate) fn reserved_count(
    max: u32,
    sealed: usize,
    capacity_bytes: Option<u64>,
    segment_bytes: u32,
) -> u32 {
    let sealed = u32::try_from(sealed).unwrap_or(u32::MAX);
    let by_capacity = capacity_bytes
        .map_or(u64::MAX, |bytes| bytes / (PART_OF_CAPACITY * u64::from(segment_bytes).max(1)));
    max.min(sealed).min(u32::try_from(by_capacity).unwrap_or(u32::MAX))
}

/// Returns how many spare segments must remain when one is taken for a record with this
/// [`SpacePriority`]. As many must exist when such a record is appended to a reserve segment.
pub(crate) fn left_min(priority: SpacePriority, reserved: u32) -> usize {
    let left = match priority {
        SpacePriority::Ordinary => reserved,
        SpacePriority::Reserve => reserved.min(1),
        SpacePriority::Compaction => 0,
    };
    left as usize
}

/// Returns how many of the disk's `free` bytes a new file for records with this [`SpacePriority`]
/// may use: all of them, less the space for missing reserved segments and, for ordinary records,
/// less `free_bytes_min`.
pub(crate) fn creatable_bytes(
    priority: SpacePriority,
    free: u64,
    (reserved, spares): (u32, usize),
    segment_bytes: u32,
    free_bytes_min: u64,
) -> u64 {
    let missing =
        left_min(priority, reserved).saturating_sub(spares) as u64 * u64::from(segment_bytes);
    let margin = if priority == SpacePriority::Ordinary { free_bytes_min } else { 0 };
    free.saturating_sub(missing).saturating_sub(margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u32 = 1 << 20;

    #[test]
    fn reserve_grows_with_the_sealed_segments_and_the_disk() {
        for (max, sealed, capacity, reserved) in [
            (0, 9, None, 0),
            (2, 0, None, 0),
            (2, 1, None, 1),
            (2, 9, None, 2),
            (2, 9, Some(2), 0),
            (2, 9, Some(3), 1),
            (2, 9, Some(5), 1),
            (2, 9, Some(6), 2),
            (2, 9, Some(1000), 2),
        ] {
            let capacity = capacity.map(|segments: u64| segments << 20);
            assert_eq!(
                reserved_count(max, sealed, capacity, SEGMENT),
                reserved,
                "{max} {sealed} {capacity:?}"
            );
        }
    }

    #[test]
    fn last_reserved_segment_is_for_compaction_only() {
        for reserved in 0..4 {
            assert_eq!(left_min(SpacePriority::Ordinary, reserved), reserved as usize);
            assert_eq!(left_min(SpacePriority::Compaction, reserved), 0);
        }
        assert_eq!([0, 1, 2].map(|reserved| left_min(SpacePriority::Reserve, reserved)), [0, 1, 1]);
    }

    #[test]
    fn new_files_leave_space_for_the_missing_reserve() {
        let segments = |n: u64| n << 20;
        let creatable = |priority, free, spares| {
            creatable_bytes(priority, segments(free), (2, spares), SEGMENT, segments(1)) >> 20
        };
        assert_eq!(
            [0, 1, 2, 3].map(|spares| creatable(SpacePriority::Ordinary, 8, spares)),
            [5, 6, 7, 7]
        );
        assert_eq!([0, 1, 2].map(|spares| creatable(SpacePriority::Reserve, 8, spares)), [7, 8, 8]);
        assert_eq!(creatable(SpacePriority::Compaction, 8, 0), 8);
        assert_eq!(creatable(SpacePriority::Ordinary, 2, 0), 0);
    }
}
