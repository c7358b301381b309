//! Defines the modes: a mode combines a preparation of the file with a method of syncing records.
//! Performs no I/O.

use std::fmt;
use std::str::FromStr;

use crate::named::named;

named! {
    /// The preparation of a file before records are written to it.
    pub enum Preparation {
        /// No preparation: every record extends the file.
        Append = "append",
        /// The blocks are allocated with `fallocate`.
        Fallocate = "fallocate",
        /// The file is written once, then cleared with `FALLOC_FL_ZERO_RANGE`, as a log may clear
        /// an old segment.
        ZeroRange = "zero-range",
        /// The device zeroes the blocks (`FALLOC_FL_WRITE_ZEROES`).
        WriteZeroes = "write-zeroes",
        /// The file is written full of zeros.
        Filled = "filled",
        /// An old file, which was written whole and evicted from the page cache, is renamed and
        /// reused.
        Recycled = "recycled",
    }
}

named! {
    /// The method by which a record is written and synced.
    pub enum Sync {
        /// `pwrite` without a sync.
        Nothing = "none",
        /// `pwrite`, then `fdatasync`.
        Fdatasync = "fdatasync",
        /// `pwrite`, then `fsync`.
        Fsync = "fsync",
        /// One `pwrite` to a file opened with `O_DSYNC`.
        OpenDatasync = "open-datasync",
        /// One `pwrite` to a file opened with `O_SYNC`.
        OpenSync = "open-sync",
        /// One `pwrite` of whole pages to a file opened with `O_DIRECT | O_DSYNC`.
        DirectDsync = "direct-dsync",
        /// A copy into a mapping, then `msync(MS_SYNC)`.
        Msync = "msync",
    }
}

/// A selection of modes by preparation, by sync or by both: `recycled`, `fdatasync`, or
/// `recycled+fdatasync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    preparation: Option<Preparation>,
    sync: Option<Sync>,
}

impl Modes {
    fn includes(self, preparation: Preparation, sync: Sync) -> bool {
        self.preparation.is_none_or(|selected| selected == preparation)
            && self.sync.is_none_or(|selected| selected == sync)
    }
}

impl FromStr for Modes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (left, right) = text.split_once('+').unwrap_or((text, text));
        let (preparation, sync) = (left.parse().ok(), right.parse().ok());
        let is_valid = match text.contains('+') {
            true => preparation.is_some() && sync.is_some(),
            false => preparation.is_some() || sync.is_some(),
        };
        is_valid.then_some(Self { preparation, sync }).ok_or_else(|| {
            format!(
                "expected a preparation ({}), a sync ({}), or both, such as recycled+fdatasync",
                Preparation::ALL.map(Preparation::name).join(", "),
                Sync::ALL.map(Sync::name).join(", ")
            )
        })
    }
}

/// A mode with a record length; the order of the fields is the sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) sync: Sync,
    pub(crate) record_bytes: u64,
    pub(crate) preparation: Preparation,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} B", self.preparation, self.sync, self.record_bytes)
    }
}

/// The unit in bytes of direct writes and of `msync`.
const PAGE_BYTES: u64 = 4096;

impl Cell {
    /// Returns the distance in bytes between the starts of two consecutive records; direct writes
    /// are padded to whole pages.
    pub(crate) fn step_bytes(&self) -> u64 {
        match self.sync {
            Sync::DirectDsync => self.record_bytes.next_multiple_of(PAGE_BYTES),
            _ => self.record_bytes,
        }
    }

    /// Returns the length in bytes of a file for `records` records, rounded up to whole pages.
    pub(crate) fn file_bytes(&self, records: u64) -> u64 {
        self.step_bytes().saturating_mul(records).next_multiple_of(PAGE_BYTES)
    }
}

/// Returns the selected cells, sorted and without duplicates; all cells if `modes` is empty.
pub(crate) fn cells(modes: &[Modes], record_bytes: &[u64]) -> Vec<Cell> {
    let is_selected = |preparation, sync| {
        modes.is_empty() || modes.iter().any(|modes| modes.includes(preparation, sync))
    };
    let mut cells = Vec::new();
    for sync in Sync::ALL {
        for preparation in Preparation::ALL.into_iter().filter(|it| is_selected(*it, sync)) {
            let cell = |&record_bytes| Cell { sync, record_bytes, preparation };
            cells.extend(record_bytes.iter().map(cell));
        }
    }
    cells.sort_unstable();
    cells.dedup();
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_preparations_syncs_or_both() {
        for (text, count) in [("recycled", 7), ("fdatasync", 6), ("recycled+fdatasync", 1)] {
            let cells = cells(&[text.parse().unwrap()], &[4096]);
            assert_eq!(cells.len(), count, "{text}");
        }
        for wrong in
            ["", "+", "recycled+", "+fsync", "fsync+recycled", "recycled+append", "RECYCLED"]
        {
            let why = wrong.parse::<Modes>().unwrap_err();
            assert!(why.contains("recycled+fdatasync"), "{wrong}: {why}");
        }
    }

    #[test]
    fn direct_records_are_padded_and_files_are_whole_pages() {
        for (sync, record_bytes, step, file) in [
            (Sync::Fdatasync, 512, 512, 4096),
            (Sync::Fdatasync, 4096, 4096, 12288),
            (Sync::DirectDsync, 512, 4096, 12288),
            (Sync::DirectDsync, 65536, 65536, 196_608),
            (Sync::Msync, 512, 512, 4096),
        ] {
            let cell = Cell { sync, record_bytes, preparation: Preparation::Filled };
            assert_eq!((cell.step_bytes(), cell.file_bytes(3)), (step, file), "{cell}");
        }
    }
}
