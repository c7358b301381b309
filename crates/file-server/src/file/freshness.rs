//! Decides when a cached file must be checked against the disk.

use std::sync::atomic::{AtomicU64, Ordering};

/// The share of the time of validity for which a directory is not checked again. Files are checked
/// again after the rest, so that no part of a response is older than the time of validity.
const DIRECTORY_SHARE: u64 = 16;

/// Returns the times for which a file, and what is known about its directory, are not checked again.
pub(crate) fn check_intervals_ms(valid_ms: u64) -> (u64, u64) {
    let directory_ms = valid_ms / DIRECTORY_SHARE;
    (valid_ms - directory_ms, directory_ms)
}

/// The time of the last check that a cached file is the one on the disk, in milliseconds of the
/// server.
#[derive(Debug)]
pub(crate) struct LastCheck {
    at: AtomicU64,
    /// The time of the check before: the last one may still be under way.
    before: AtomicU64,
}

impl LastCheck {
    pub(crate) fn at(now_ms: u64) -> Self {
        Self { at: AtomicU64::new(now_ms), before: AtomicU64::new(now_ms) }
    }

    /// Returns `true` if that is less than `valid_ms` ago. Otherwise returns `false` once: that
    /// caller must check, while other callers use the cached file.
    pub(crate) fn is_fresh(&self, now_ms: u64, valid_ms: u64) -> bool {
        if valid_ms == 0 {
            return false;
        }
        let at = self.at.load(Ordering::Relaxed);
        if now_ms < at.saturating_add(valid_ms) {
            return true;
        }
        let claimed = self.at.compare_exchange(at, now_ms, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_ok() {
            self.before.store(at, Ordering::Relaxed);
        }
        claimed.is_err()
    }

    /// Returns the time of the last check.
    pub(crate) fn at_ms(&self) -> u64 {
        self.at.load(Ordering::Relaxed)
    }

    /// Returns `true` if it was fresh until `valid_ms` ago, for the caller that must check.
    pub(crate) fn was_fresh(&self, now_ms: u64, valid_ms: u64) -> bool {
        let before = self.before.load(Ordering::Relaxed);
        now_ms < before.saturating_add(valid_ms.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_checks_when_the_time_is_over_and_all_if_there_is_none() {
        let check = LastCheck::at(0);
        assert_eq!([9, 10, 10, 19].map(|now| check.is_fresh(now, 10)), [true, false, true, true]);
        assert!(check.was_fresh(19, 10) && !check.was_fresh(20, 10));
        // With many callers at once: if one of them checked for the others, they would use an older
        // state.
        let check = LastCheck::at(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!((0..100_000).all(|now| !check.is_fresh(now, 0))));
            }
        });
    }
}
