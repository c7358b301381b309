//! Remembers windows of files that were lately in the page cache.

use std::sync::atomic::{AtomicU64, Ordering};

use super::tier::WINDOW_BYTES;

/// Milliseconds for which a window that was in the page cache is assumed to stay there. If it is
/// evicted meanwhile, `sendfile` waits for the disk.
const RESIDENT_MS: u64 = 50;

/// The low bits of an entry of [`ResidentWindows`], which are the time: enough for 30 years.
const TIME_BITS: u32 = 40;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// The windows of one file that were lately in the page cache, for all responses that send the file.
/// Remembers a few windows; each entry is the number of the window plus one, and the time in
/// milliseconds when it was checked.
#[derive(Debug, Default)]
pub(crate) struct ResidentWindows([AtomicU64; 4]);

impl ResidentWindows {
    /// Records that all bytes of the window at `offset` are in the page cache at `now_ms`.
    pub(crate) fn insert(&self, offset: u64, now_ms: u64) {
        let (slot, entry) = self.entry(offset, now_ms);
        slot.store(entry, Ordering::Relaxed);
    }

    /// Returns `true` if the window at `offset` was in the page cache less than 50 ms ago.
    pub(crate) fn contains(&self, offset: u64, now_ms: u64) -> bool {
        let (slot, entry) = self.entry(offset, now_ms);
        let found = slot.load(Ordering::Relaxed);
        let checked_ms = found & TIME_MASK;
        found != 0 && (found ^ entry) & !TIME_MASK == 0 && now_ms < checked_ms + RESIDENT_MS
    }

    /// Returns the slot of a window, and the value for a check at `now_ms`.
    fn entry(&self, offset: u64, now_ms: u64) -> (&AtomicU64, u64) {
        let window = offset / WINDOW_BYTES;
        let slot = usize::try_from(window % self.0.len() as u64).unwrap_or(0);
        (&self.0[slot], (window + 1) << TIME_BITS | now_ms & TIME_MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_windows_expire_and_displace_each_other() {
        let windows = ResidentWindows::default();
        assert!(!windows.contains(0, 0));
        windows.insert(5, 1000);
        for (offset, now_ms, expected) in [
            (0, 1000, true),
            (WINDOW_BYTES - 1, 1049, true),
            (0, 999, true),
            (0, 1050, false),
            (WINDOW_BYTES, 1000, false),
            (4 * WINDOW_BYTES, 1000, false),
        ] {
            assert_eq!(windows.contains(offset, now_ms), expected, "{offset} at {now_ms}");
        }
        windows.insert(4 * WINDOW_BYTES, 1010);
        assert!(windows.contains(4 * WINDOW_BYTES, 1010) && !windows.contains(0, 1010));
    }
}
