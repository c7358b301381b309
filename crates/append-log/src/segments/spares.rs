//! Keeps a log's spare files. Performs no I/O.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::segments::Segment;
use crate::segments::reserve::{SpacePriority, left_min};

/// A spare file: a removed segment to be recycled, or a reserved file.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) number: u32,
    pub(super) bytes: u32,
    /// The removed segment whose file this is; `None` if the file was found at recovery or created
    /// as a spare.
    pub(super) segment: Option<Arc<Segment>>,
}

impl Spare {
    /// `true` if no reader uses the file any more, so that it may be overwritten.
    fn is_free(&self) -> bool {
        self.segment.as_ref().is_none_or(|segment| Arc::strong_count(segment) == 1)
    }
}

/// A log's spare files. The length of a whole segment, which a file needs to be reserved or
/// recycled, increases while a log with few records grows.
#[derive(Debug, Default)]
pub(super) struct Spares {
    /// The spare files, some of them reserved for deletions and compaction. Files shorter than a
    /// whole segment are left from the time when the log's segments were shorter, and are removed
    /// when the reserve has whole files instead.
    pub(super) files: Vec<Spare>,
    /// The short reserved file, used for deletions on a full disk.
    pub(super) short: Option<Spare>,
}

impl Spares {
    /// Returns the number of files that have at least `whole_bytes` bytes.
    pub(super) fn whole(&self, whole_bytes: u32) -> usize {
        self.files.iter().filter(|spare| spare.bytes >= whole_bytes).count()
    }

    /// Takes a file for records with this [`SpacePriority`]. Returns `None` if the remaining files
    /// are reserved for other records or still in use by readers.
    ///
    /// Ordinary records get whole files only. Deletions get the shortest file of at least
    /// `bytes_min` bytes, and compaction the longest one.
    pub(super) fn take(
        &mut self,
        priority: SpacePriority,
        reserved: u32,
        whole_bytes: u32,
        bytes_min: u32,
    ) -> Option<Spare> {
        let counted_min = if priority == SpacePriority::Ordinary { whole_bytes } else { 0 };
        if self.whole(counted_min) <= left_min(priority, reserved) {
            return None;
        }
        let bytes_min = bytes_min.max(counted_min);
        let usable = self.files.iter().enumerate();
        let usable = usable.filter(|(_, spare)| spare.bytes >= bytes_min && spare.is_free());
        let (at, _) = match priority {
            SpacePriority::Ordinary | SpacePriority::Reserve => {
                usable.min_by_key(|(_, spare)| spare.bytes)?
            }
            SpacePriority::Compaction => usable.min_by_key(|(_, spare)| Reverse(spare.bytes))?,
        };
        let taken = self.files.swap_remove(at);
        debug_assert!(
            self.whole(counted_min) >= left_min(priority, reserved)
                || priority == SpacePriority::Compaction
        );
        debug_assert!(taken.is_free(), "a reader would see other bytes");
        Some(taken)
    }

    /// Removes a spare file that is shorter than a segment, provided that full-length spares fill the
    /// reserve.
    pub(super) fn take_undersized(&mut self, reserved: u32, whole_bytes: u32) -> Option<Spare> {
        if self.whole(whole_bytes) < reserved as usize {
            return None;
        }
        let at = self.files.iter().position(|spare| spare.bytes < whole_bytes)?;
        Some(self.files.swap_remove(at))
    }

    /// Takes the short reserved file if it has at least `bytes_min` bytes.
    pub(super) fn take_short(&mut self, bytes_min: u32) -> Option<Spare> {
        self.short.take_if(|spare| spare.is_free() && spare.bytes >= bytes_min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: u32 = 8 << 20;

    fn spares(lengths: &[u32]) -> Spares {
        let spare = |(number, bytes): (u32, &u32)| Spare { number, bytes: *bytes, segment: None };
        Spares { files: (1..).zip(lengths).map(spare).collect(), short: None }
    }

    #[test]
    fn ordinary_records_get_only_whole_files_beyond_the_reserve() {
        let taken = |lengths: &[u32], reserved| {
            spares(lengths)
                .take(SpacePriority::Ordinary, reserved, WHOLE, 0)
                .map(|spare| spare.bytes)
        };
        assert_eq!(taken(&[WHOLE, WHOLE], 2), None);
        assert_eq!(taken(&[WHOLE / 2, WHOLE, WHOLE], 2), None, "one is too short");
        assert_eq!(taken(&[2 * WHOLE, WHOLE, WHOLE], 2), Some(WHOLE));
        assert_eq!(taken(&[WHOLE / 2], 0), None);
    }

    #[test]
    fn deletions_leave_the_longest_reserved_file_to_compaction() {
        let lengths = [WHOLE / 2, WHOLE];
        let taken = |priority, lengths: &[u32]| {
            spares(lengths).take(priority, 2, WHOLE, 0).map(|spare| spare.bytes)
        };
        assert_eq!(taken(SpacePriority::Reserve, &lengths), Some(WHOLE / 2));
        assert_eq!(taken(SpacePriority::Reserve, &[WHOLE]), None);
        assert_eq!(taken(SpacePriority::Compaction, &lengths), Some(WHOLE));
        assert_eq!(taken(SpacePriority::Compaction, &[WHOLE / 2]), Some(WHOLE / 2));
    }

    #[test]
    fn long_records_get_only_files_of_their_length() {
        let taken = |priority, bytes_min| {
            let mut spares = spares(&[WHOLE, 2 * WHOLE, 3 * WHOLE]);
            spares.take(priority, 1, WHOLE, bytes_min).map(|spare| spare.bytes / WHOLE)
        };
        for priority in [SpacePriority::Ordinary, SpacePriority::Reserve] {
            assert_eq!(
                [0, 2, 3, 4].map(|n| taken(priority, n * WHOLE)),
                [Some(1), Some(2), Some(3), None]
            );
        }
        assert_eq!(
            [0, 3, 4].map(|n| taken(SpacePriority::Compaction, n * WHOLE)),
            [Some(3), Some(3), None]
        );
        let mut short = spares(&[]);
        short.short = Some(Spare { number: 0, bytes: WHOLE, segment: None });
        assert!(short.take_short(WHOLE + 1).is_none() && short.take_short(WHOLE).is_some());
    }

    #[test]
    fn outgrown_files_are_removed_when_whole_ones_replace_them() {
        let mut spares = spares(&[WHOLE / 2, WHOLE / 2, WHOLE]);
        assert!(spares.take_undersized(2, WHOLE).is_none());
        spares.files.push(Spare { number: 9, bytes: WHOLE, segment: None });
        let lengths = [0; 3].map(|_| spares.take_undersized(2, WHOLE).map(|spare| spare.bytes));
        assert_eq!(lengths, [Some(WHOLE / 2), Some(WHOLE / 2), None]);
        assert_eq!(spares.whole(WHOLE), 2);
    }
}
