//! Where bytes of a file come from. Pure.
//!
//! The choice is made anew for each window of a file, by what is in memory of just that window and
//! by how often just that window was asked for: a file too big for memory may have parts that
//! everybody wants.

/// The bytes a choice is made for, and the most that is read at once.
pub(crate) const WINDOW_BYTES: u64 = 2 << 20;

/// How bytes reached the socket. Told in the access log and in the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Tier {
    /// From the application's own cache.
    Memory,
    /// From the page cache, by `sendfile`.
    Resident,
    /// Read by another thread by way of the page cache, where it stays.
    Read,
    /// Read by another thread past the page cache.
    Direct,
    /// Read by another thread into a buffer, and dropped from the page cache: where the file
    /// system has no direct reads.
    Uncached,
    /// None of the file: an answer without a body, or a page the server made.
    None,
}

impl Tier {
    /// All that send bytes of files.
    pub const ALL: [Self; 5] =
        [Self::Memory, Self::Resident, Self::Read, Self::Direct, Self::Uncached];

    /// As it is written in log and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Resident => "resident",
            Self::Read => "read",
            Self::Direct => "direct",
            Self::Uncached => "uncached",
            Self::None => "-",
        }
    }
}

/// From where a window is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// At once, from the page cache: all of it is there, so nobody waits for a disk.
    PageCache,
    /// By a thread that may wait, by way of the page cache.
    Read,
    /// By a thread that may wait, past the page cache.
    Direct,
}

/// What the choice is made by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Of the whole file.
    pub(crate) file_bytes: u64,
    /// Of the pages the window lies in.
    pub(crate) window_bytes: u64,
    /// How much of them is in the page cache.
    pub(crate) resident_bytes: u64,
    /// How often it was asked for lately while it was not there, this time included.
    pub(crate) asked: u32,
}

/// What is configured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Shorter files are always read by way of the page cache.
    pub(crate) direct_bytes_min: u64,
    /// What is asked for this often is let into the page cache.
    pub(crate) promote_asked: u32,
    /// Files longer than this never are.
    pub(crate) promote_bytes_max: u64,
}

/// Chooses.
pub(crate) fn choose(window: Window, rules: Rules) -> Source {
    if window.resident_bytes >= window.window_bytes {
        return Source::PageCache;
    }
    let is_small = window.file_bytes < rules.direct_bytes_min;
    let is_wanted =
        window.asked >= rules.promote_asked && window.file_bytes <= rules.promote_bytes_max;
    // Of what is there by half only the rest is read.
    let is_half_there = window.resident_bytes.saturating_mul(2) >= window.window_bytes;
    if is_small || is_wanted || is_half_there { Source::Read } else { Source::Direct }
}

/// What a window at `offset` is: up to `end`, and not over the next whole window of the file, so
/// that the same windows are counted whichever range is asked for.
pub(crate) fn window_end(offset: u64, end: u64) -> u64 {
    let next = (offset / WINDOW_BYTES).saturating_add(1).saturating_mul(WINDOW_BYTES);
    next.min(end)
}

/// A direct read of `offset..end`: where it begins, how many bytes it asks for, and how many of
/// those at its front are not wanted.
pub(crate) fn aligned(offset: u64, end: u64, block_bytes: u64) -> (u64, u64, u64) {
    let start = offset / block_bytes * block_bytes;
    (start, (end - start).next_multiple_of(block_bytes), offset - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const RULES: Rules =
        Rules { direct_bytes_min: MIB, promote_asked: 3, promote_bytes_max: 100 * MIB };

    #[test]
    fn the_source_follows_from_size_residency_and_recent_use() {
        use Source::{Direct, PageCache, Read};
        for (file_bytes, resident_bytes, asked, expected) in [
            (10 * MIB, MIB, 1, PageCache),
            (10 * MIB, MIB - 4096, 1, Read),
            (10 * MIB, MIB / 2, 1, Read),
            (10 * MIB, MIB / 2 - 4096, 1, Direct),
            (10 * MIB, 0, 1, Direct),
            (10 * MIB, 0, 2, Direct),
            (10 * MIB, 0, 3, Read),
            (100 * MIB, 0, 3, Read),
            (100 * MIB + 1, 0, 99, Direct),
            (100 * MIB + 1, MIB, 1, PageCache),
            (MIB, 0, 1, Direct),
            (MIB - 1, 0, 1, Read),
        ] {
            let window = Window { file_bytes, window_bytes: MIB, resident_bytes, asked };
            assert_eq!(choose(window, RULES), expected, "{window:?}");
        }
    }

    #[test]
    fn windows_lie_on_whole_windows_of_the_file() {
        for (offset, end, expected) in [
            (0, 10, 10),
            (0, 5 * WINDOW_BYTES, WINDOW_BYTES),
            (WINDOW_BYTES - 1, 5 * WINDOW_BYTES, WINDOW_BYTES),
            (WINDOW_BYTES, 5 * WINDOW_BYTES, 2 * WINDOW_BYTES),
            (4 * WINDOW_BYTES + 7, 5 * WINDOW_BYTES - 1, 5 * WINDOW_BYTES - 1),
            (u64::MAX - 5, u64::MAX, u64::MAX),
        ] {
            assert_eq!(window_end(offset, end), expected, "{offset}..{end}");
        }
    }

    #[test]
    fn direct_reads_are_whole_blocks() {
        for (offset, end, expected) in [
            (0, 4096, (0, 4096, 0)),
            (0, 1, (0, 4096, 0)),
            (100, 5000, (0, 8192, 100)),
            (4096, 8192, (4096, 4096, 0)),
            (8191, 8193, (4096, 8192, 4095)),
        ] {
            assert_eq!(aligned(offset, end, 4096), expected, "{offset}..{end}");
        }
    }
}
