//! What is measured: ways, sizes, windows and the kernel's own readahead. Pure.

use std::fmt;
use std::str::FromStr;

/// A way to read a file from its beginning to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `pread`, through the page cache.
    Read,
    /// Copied out of a mapping.
    Mmap,
    /// The same, with `MADV_SEQUENTIAL`, and `MADV_WILLNEED` for a window ahead.
    MmapAdvised,
    /// `pread`, with `POSIX_FADV_WILLNEED` for a window ahead.
    ReadAhead,
    /// `pread` past the page cache (`O_DIRECT`).
    Direct,
    /// `preadv2` with `RWF_DONTCACHE`.
    Uncached,
}

/// What the kernel is told of how a descriptor is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    Normal,
    /// `POSIX_FADV_SEQUENTIAL`: twice the readahead.
    Sequential,
    /// `POSIX_FADV_RANDOM`: none.
    Random,
}

impl Advice {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Normal, Self::Sequential, Self::Random];

    fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }
}

impl FromStr for Advice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|advice| advice.name() == name);
        found.ok_or_else(|| "there are normal, sequential, random".to_owned())
    }
}

/// The kernel's own readahead, as it is set before a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    Advice(Advice),
    /// The device's `read_ahead_kb`.
    Kib(u64),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advice(advice) => f.write_str(advice.name()),
            Self::Kib(kib) => write!(f, "{kib} KiB"),
        }
    }
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) setting: Setting,
    pub(super) way: Way,
    pub(super) request_bytes: u64,
    /// How far ahead of the reader the kernel is told to fetch.
    pub(super) window_bytes: Option<u64>,
}

impl Way {
    pub(super) const ALL: [Self; 6] =
        [Self::Read, Self::Mmap, Self::MmapAdvised, Self::ReadAhead, Self::Direct, Self::Uncached];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Mmap => "mmap",
            Self::MmapAdvised => "mmap + madvise",
            Self::ReadAhead => "read + fadvise ahead",
            Self::Direct => "direct",
            Self::Uncached => "uncached",
        }
    }

    pub(super) fn has_window(self) -> bool {
        matches!(self, Self::MmapAdvised | Self::ReadAhead)
    }

    /// Whether the kernel's own readahead has nothing to do with it.
    fn is_direct(self) -> bool {
        self == Self::Direct
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} KiB, {}", self.way.name(), self.request_bytes >> 10, self.setting)
    }
}

/// All rows: settings in turn, and of each setting all ways.
pub(super) fn cells(settings: &[Setting], requests: &[u64], windows: &[u64]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (number, setting) in settings.iter().enumerate() {
        for way in Way::ALL.into_iter().filter(|way| number == 0 || !way.is_direct()) {
            let windows: Vec<_> = match way.has_window() {
                true => windows.iter().copied().map(Some).collect(),
                false => vec![None],
            };
            for request_bytes in requests {
                cells.extend(windows.iter().map(|window_bytes| Cell {
                    setting: *setting,
                    way,
                    request_bytes: *request_bytes,
                    window_bytes: *window_bytes,
                }));
            }
        }
    }
    cells
}

/// What to fetch next when `read` bytes were read and everything before `fetched` was asked for:
/// half a window at a time, so that there is always as much under way.
pub(super) fn fetch_next(
    read: u64,
    fetched: u64,
    window_bytes: u64,
    file_bytes: u64,
) -> Option<(u64, u64)> {
    let end = (read + window_bytes).min(file_bytes);
    let is_due = end == file_bytes || end.saturating_sub(fetched) >= window_bytes / 2;
    (is_due && end > fetched).then(|| (fetched, end - fetched))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_belong_to_ways_that_have_one_and_direct_is_measured_once() {
        let settings = [Setting::Advice(Advice::Normal), Setting::Kib(0)];
        let cells = cells(&settings, &[64 << 10, 1 << 20], &[1 << 20, 8 << 20]);
        assert_eq!(cells.len(), 2 * (8 + 8) - 2);
        assert!(cells.iter().all(|cell| cell.way.has_window() == cell.window_bytes.is_some()));
        assert_eq!(cells.iter().filter(|cell| cell.way == Way::Direct).count(), 2);
    }

    #[test]
    fn there_is_half_a_window_under_way_at_least_and_all_of_the_file_in_the_end() {
        for (read, fetched, expected) in [
            (0, 0, Some((0, 8))),
            (1, 8, None),
            (3, 8, None),
            (4, 8, Some((8, 4))),
            (13, 20, Some((20, 1))),
            (20, 21, None),
            (21, 21, None),
        ] {
            assert_eq!(fetch_next(read, fetched, 8, 21), expected, "{read} of {fetched}");
        }
        let (mut fetched, mut steps) = (0, 0);
        for read in 0..=1000 {
            if let Some((from, bytes)) = fetch_next(read, fetched, 16, 1000) {
                assert_eq!(from, fetched);
                (fetched, steps) = (from + bytes, steps + 1);
            }
            assert!(fetched >= (read + 8).min(1000) && fetched <= read + 16);
        }
        assert!((fetched, steps) == (1000, 125) || steps < 150, "{steps}");
    }
}
