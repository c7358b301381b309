//! Which files are warmed, and in which order. Pure.

/// A file that could be warmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Its number among all, in the order they were found.
    pub(super) index: usize,
    pub(super) place: Place,
    pub(super) bytes: u64,
    /// What of it is not in memory.
    pub(super) missing_bytes: u64,
}

/// Where a file is, as far as that tells in which order to read: device by device; within one,
/// what has no known place first, by inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) device: u64,
    /// Its first byte on a disk that rotates.
    pub(super) physical: Option<u64>,
    pub(super) inode: u64,
}

/// One file, to be read from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Take {
    pub(super) index: usize,
    pub(super) place: Place,
    /// How far it is read.
    pub(super) bytes: u64,
}

/// The files that fit into `bytes_max`, in the order they were found; the first that does not
/// fit is read as far as there is room, and none after it. They come sorted by their place.
/// Files of which nothing is missing cost nothing and are not among them.
pub(super) fn choose(candidates: &[Candidate], bytes_max: u64) -> Vec<Take> {
    let mut room = bytes_max;
    let mut takes = Vec::new();
    for candidate in candidates.iter().filter(|candidate| candidate.missing_bytes > 0) {
        let Candidate { index, place, bytes, missing_bytes } = *candidate;
        let fits = missing_bytes <= room;
        // Where pages are missing is not known: what is taken is counted as if all were.
        let bytes = if fits { bytes } else { room.min(bytes) };
        if bytes > 0 {
            takes.push(Take { index, place, bytes });
        }
        if !fits {
            break;
        }
        room -= missing_bytes;
    }
    takes.sort_unstable_by_key(|take| (take.place, take.index));
    takes
}

/// How many threads read from a device: heads can be at one place at a time, and what has none
/// wants more work than cores, since readers mostly wait.
pub(super) fn threads(rotates: bool, cores: usize) -> usize {
    if rotates { 1 } else { (cores * 4).clamp(4, 32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(index: usize, place: (u64, Option<u64>, u64), missing_bytes: u64) -> Candidate {
        let (device, physical, inode) = place;
        Candidate { index, place: Place { device, physical, inode }, bytes: 100, missing_bytes }
    }

    #[test]
    fn files_are_chosen_as_they_were_found_and_read_as_they_lie() {
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
            let takes: Vec<_> =
                choose(&all, bytes_max).iter().map(|take| (take.index, take.bytes)).collect();
            assert_eq!(takes, expected, "{bytes_max}");
        }
    }

    #[test]
    fn heads_are_asked_by_one_reader() {
        assert_eq!((threads(true, 64), threads(false, 1)), (1, 4));
        assert_eq!((threads(false, 4), threads(false, 128)), (16, 32));
    }
}
