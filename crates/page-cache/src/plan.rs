//! Selects the files to load into the page cache, and sorts their reads by position on disk.

/// A file that may be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The index of the file in the order in which files were found.
    pub(crate) index: usize,
    pub(crate) place: DiskPosition,
    pub(crate) bytes: u64,
    /// The number of bytes that are not known to be cached, in whole pages.
    pub(crate) missing_bytes: u64,
}

/// The sort key of a read: first the device, then the physical offset, then the inode number. Files
/// of unknown offset come before the other files of their device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DiskPosition {
    pub(crate) device: u64,
    /// The offset in bytes of the first byte of the file on the device; `None` if unknown or if the
    /// device does not rotate.
    pub(crate) physical: Option<u64>,
    pub(crate) inode: u64,
}

/// A planned read of one file from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedRead {
    pub(crate) index: usize,
    pub(crate) place: DiskPosition,
    /// The length of the read in bytes.
    pub(crate) bytes: u64,
}

/// Plans reads until `bytes_max` missing bytes are covered. Selects files in the order in which
/// they were found: the first file that does not fit is read in part, and all later files are
/// skipped. Fully cached files are skipped. Returns the reads sorted by position.
pub(crate) fn plan_reads(candidates: &[Candidate], bytes_max: u64) -> Vec<PlannedRead> {
    let mut room = bytes_max;
    let mut reads = Vec::new();
    for candidate in candidates.iter().filter(|candidate| candidate.missing_bytes > 0) {
        let Candidate { index, place, bytes, missing_bytes } = *candidate;
        let fits = missing_bytes <= room;
        // It is not known which pages of the file are missing, so a partial read is limited as if
        // all pages were missing.
        let bytes = if fits { bytes } else { room.min(bytes) };
        if bytes > 0 {
            reads.push(PlannedRead { index, place, bytes });
        }
        if !fits {
            break;
        }
        room -= missing_bytes;
    }
    reads.sort_unstable_by_key(|read| (read.place, read.index));
    reads
}

/// Returns the number of reading threads per device. A rotating disk gets one thread, so that its
/// heads do not seek between files. Other devices get four threads per core, 4 to 32, since the
/// threads mostly wait for the device.
pub(crate) fn threads(rotates: bool, cores: usize) -> usize {
    if rotates { 1 } else { (cores * 4).clamp(4, 32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(index: usize, place: (u64, Option<u64>, u64), missing_bytes: u64) -> Candidate {
        let (device, physical, inode) = place;
        Candidate {
            index,
            place: DiskPosition { device, physical, inode },
            bytes: 100,
            missing_bytes,
        }
    }

    #[test]
    fn files_are_chosen_as_found_and_read_by_position() {
        let all = [
            candidate(0, (1, None, 9), 100),
            candidate(1, (1, Some(70), 1), 50),
            candidate(2, (1, Some(30), 2), 0),
            candidate(3, (0, None, 5), 100),
            candidate(4, (1, Some(20), 3), 100),
        ];
        for (bytes_max, expected) in [
            (u64::MAX, &[(3, 100), (0, 100), (4, 100), (1, 100)][..]),
            (350, &[(3, 100), (0, 100), (4, 100), (1, 100)]),
            (349, &[(3, 100), (0, 100), (4, 99), (1, 100)]),
            (250, &[(3, 100), (0, 100), (1, 100)]),
            (149, &[(0, 100), (1, 49)]),
            (100, &[(0, 100)]),
            (1, &[(0, 1)]),
            (0, &[]),
        ] {
            let reads: Vec<_> =
                plan_reads(&all, bytes_max).iter().map(|read| (read.index, read.bytes)).collect();
            assert_eq!(reads, expected, "{bytes_max}");
        }
    }

    #[test]
    fn rotational_disks_have_one_reader() {
        assert_eq!((threads(true, 64), threads(false, 1)), (1, 4));
        assert_eq!((threads(false, 4), threads(false, 128)), (16, 32));
    }
}
