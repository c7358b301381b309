//! The merge plan: size-tiered, only runs adjacent in age.
//!
//! Runs belong to tiers by their size; each tier is four times as large as the tier below. Four
//! adjacent runs of a tier are merged into a run of the next tier, so that there are at most three
//! runs per tier, and an entry is rewritten about once per tier.
//!
//! # Source
//! \[RocksDBUniversal\]: universal compaction, a size-tiered merge of runs ordered by age.

use std::ops::Range;

/// The number of runs in a tier that are merged, and the size ratio of two tiers.
pub(crate) const FAN_IN: usize = 4;

/// The maximum number of runs in one merge, which bounds its memory.
pub(crate) const MERGED_MAX: usize = 32;

/// The share of useless entries at which all runs are merged, as a reciprocal.
const USELESS_SHARE: u64 = 2;

/// The share of tombstones at which all runs are merged, as a reciprocal.
const DELETIONS_SHARE: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunSize {
    /// The number of entries, including tombstones.
    pub(crate) entries: u64,
    /// The number of tombstones.
    pub(crate) deletions: u64,
    /// The length of the file.
    pub(crate) bytes: u64,
}

/// Returns the runs to merge next; `None` if no merge is needed. `runs` are ordered from newest to
/// oldest. `live_entries` is the number of existing keys, if known.
///
/// - All runs, if half of their entries are replaced or deleted, or a quarter of them are
///   tombstones. A merge with the oldest run must drop the tombstones, or the same merge is chosen
///   again.
/// - Otherwise, four or more runs in a tier. A run that is smaller than a newer run belongs to the
///   newer run's tier, because the two must be merged before larger runs. If the result fills the
///   next tier, the next tier's runs are merged at the same time.
pub(crate) fn choose(runs: &[RunSize], live_entries: Option<u64>) -> Option<Range<usize>> {
    if runs.len() <= MERGED_MAX && are_mostly_useless(runs, live_entries) {
        return Some(0..runs.len());
    }
    let tiers = tiers(runs);
    let group_end = |start: usize| {
        let same = tiers[start..].iter().take_while(|tier| **tier == tiers[start]);
        start + same.count()
    };
    let mut start = 0;
    while start < runs.len() {
        let mut end = group_end(start);
        if end - start < FAN_IN {
            start = end;
            continue;
        }
        while end < runs.len() {
            let next_end = group_end(end);
            let bytes = runs[start..end].iter().map(|run| run.bytes).sum();
            if tier(bytes) < tiers[end] || next_end - end + 1 < FAN_IN {
                break;
            }
            end = next_end;
        }
        return Some(start.max(end.saturating_sub(MERGED_MAX))..end);
    }
    None
}

/// Returns the tier for a run with this length.
fn tier(bytes: u64) -> u32 {
    bytes.max(1).ilog2() / FAN_IN.ilog2()
}

/// Returns each run's tier. No tier is less than a newer run's tier.
fn tiers(runs: &[RunSize]) -> Vec<u32> {
    let mut least = 0;
    let run_size = |run: &RunSize| {
        least = least.max(tier(run.bytes));
        least
    };
    runs.iter().map(run_size).collect()
}

/// Returns `true` if merging all runs would remove enough entries.
fn are_mostly_useless(runs: &[RunSize], live_entries: Option<u64>) -> bool {
    let sum = |count: fn(&RunSize) -> u64| -> u64 { runs.iter().map(count).sum() };
    let entries = sum(|run| run.entries);
    let deletions = sum(|run| run.deletions);
    if deletions > 0 && deletions >= entries / DELETIONS_SHARE {
        return true;
    }
    let (Some(live), Some(oldest)) = (live_entries, runs.last()) else { return false };
    // A newer entry makes at most itself and one older entry useless. The number of live entries
    // includes changes that no run contains, so on its own it could cause merges without effect.
    let newer = entries - oldest.entries;
    let useless = entries.saturating_sub(live).min(2 * newer);
    useless > 0 && useless >= entries / USELESS_SHARE
}
