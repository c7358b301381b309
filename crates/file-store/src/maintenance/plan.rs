//! The compaction plan: when a volume is compacted, which one, and how fast writers are admitted
//! meanwhile. Pure.
//!
//! Moving a volume with a dead share `d` costs `(1 - d) / d` bytes per freed byte. As long as there
//! is free space, it is therefore cheaper to wait until more is dead. Therefore the required dead
//! share decreases with the free space. Writers are delayed only when compaction falls behind.
//!
//! # Source
//! \[Rosenblum92\], cleaning of a log-structured file system: the volume with the greatest dead
//! share first. \[RocksDBStall\], the delay of writers between two limits.

/// The dead share that a volume needs, in thousandths, with plenty of free space: moving half of a
/// volume to free the other half.
pub(crate) const DEAD_SHARE_RELAXED: u64 = 500;

/// The required dead share when space is short. Moving more than 63 bytes per freed byte would take
/// so long that clients time out.
pub(crate) const DEAD_SHARE_MIN: u64 = 16;

/// The free space below which writers are delayed, in volumes.
const SLOW_VOLUMES: u64 = 2;

/// On a small disk, the threshold `slow` is the capacity divided by this number, if that is less.
const SLOW_PART_OF_CAPACITY: u64 = 16;

/// The free space at which writers may store as much as compaction frees, as a fraction of the
/// threshold `slow`.
const BALANCE_OF_SLOW: f64 = 0.6;

/// The minimum and the maximum number of bytes that writers may store per freed byte.
const SHARE_MIN: f64 = 1.0 / 16.0;
const SHARE_MAX: f64 = 2.0;

/// Two thresholds of the free space, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpaceThresholds {
    /// At or above this many free bytes, only mostly dead volumes are compacted.
    pub(crate) relaxed: u64,
    /// Below this many free bytes, any volume that frees enough is compacted, and writers are
    /// delayed.
    pub(crate) slow: u64,
}

/// A volume that can be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) number: u32,
    /// The file's length.
    pub(crate) bytes: u64,
    /// The bytes that its removal discards.
    pub(crate) dead_bytes: u64,
    /// The bytes that must be moved before its removal.
    pub(crate) move_bytes: u64,
}

impl Candidate {
    /// Returns the part of `move_bytes_paid` that is earned when `moved_bytes` of the volume have
    /// been moved.
    pub(crate) fn earned(&self, move_bytes_paid: u64, moved_bytes: u64) -> u64 {
        let earned = u128::from(move_bytes_paid) * u128::from(moved_bytes.min(self.move_bytes));
        u64::try_from(earned / u128::from(self.move_bytes.max(1))).unwrap_or(move_bytes_paid)
    }

    /// Returns the dead share of the volume, in thousandths.
    pub(crate) fn dead_share(&self) -> u64 {
        self.dead_bytes * 1000 / self.bytes.max(1)
    }
}

impl SpaceThresholds {
    /// Returns the thresholds for a store with this volume length on a disk with this capacity.
    pub(crate) fn new(volume_bytes: u64, capacity_bytes: u64) -> Self {
        debug_assert!(volume_bytes > 0);
        let slow = (SLOW_VOLUMES * volume_bytes).min(capacity_bytes / SLOW_PART_OF_CAPACITY);
        Self { relaxed: slow + slow / 2, slow }
    }

    /// Returns the minimum dead share, in thousandths, of a volume to be compacted with this free
    /// space.
    pub(crate) fn dead_share_min(self, free_bytes: u64) -> u64 {
        if free_bytes >= self.relaxed {
            return DEAD_SHARE_RELAXED;
        }
        let above = free_bytes.saturating_sub(self.slow);
        debug_assert!(self.relaxed >= self.slow);
        let range = (self.relaxed - self.slow).max(1);
        DEAD_SHARE_MIN + (DEAD_SHARE_RELAXED - DEAD_SHARE_MIN) * above / range
    }

    /// Returns the number of bytes that writers may store per freed byte: one at six tenths of the
    /// threshold `slow`, less below, more above. Never zero, because then no more bytes would
    /// become dead.
    pub(crate) fn writes_per_freed_byte(self, free_bytes: u64) -> f64 {
        let balance = self.slow.max(1) as f64 * BALANCE_OF_SLOW;
        (free_bytes as f64 / balance).powi(2).clamp(SHARE_MIN, SHARE_MAX)
    }
}

/// Returns the number of bytes in a sealed volume that no needle occupies, if compaction can
/// reclaim them.
///
/// A full volume ends where the next record did not fit, so less than one record is unused, and
/// moving its needles would waste the same. More is unused in a volume that was sealed early: after
/// a failed sync, or because compaction opened it and other writers continued in the next one.
pub(crate) fn unused_bytes(bytes: u64, used: u64, longest_record: u64) -> u64 {
    let unused = bytes.saturating_sub(used);
    if unused > longest_record { unused } else { 0 }
}

/// The space for compacting volumes that are shorter than the reserve's volumes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortSpace {
    /// The length of the reserve's volumes.
    pub(crate) whole_bytes: u64,
    /// The number of volumes that the reserve lacks; `None` if the store has no reserve.
    pub(crate) missing_volumes: Option<u64>,
    /// Free bytes in the newest volume.
    pub(crate) tail_bytes: u64,
    /// Free bytes in the file system.
    pub(crate) free_bytes: u64,
}

impl ShortSpace {
    /// Removes the short volumes whose compaction would leave the reserve incomplete: it takes a
    /// volume from the reserve, and all short volumes together would not free enough space for
    /// another one.
    pub(crate) fn retain(self, candidates: &mut Vec<Candidate>) {
        let Some(missing) = self.missing_volumes else { return };
        let is_short = |volume: &Candidate| volume.bytes < self.whole_bytes;
        let is_dead = |volume: &&Candidate| is_short(volume) && volume.dead_bytes > 0;
        let gained: u64 = candidates.iter().filter(is_dead).map(|volume| volume.bytes).sum();
        let refills = self.free_bytes.saturating_add(gained)
            >= (missing + 1).saturating_mul(self.whole_bytes);
        candidates
            .retain(|volume| !is_short(volume) || refills || volume.move_bytes <= self.tail_bytes);
    }
}

/// Returns the volume to compact next: the one with the greatest dead share, if this is large
/// enough. A volume without live bytes always qualifies.
///
/// `whole_bytes` is the length of the reserve's volumes. A shorter volume does not refill the
/// reserve if its live bytes need a volume from it, so short volumes come after all others. They
/// cannot be ignored, because they may be all that can be reclaimed.
pub(crate) fn choose(
    candidates: impl Iterator<Item = Candidate>,
    whole_bytes: u64,
    dead_share_min: u64,
) -> Option<Candidate> {
    let is_worth = |volume: &Candidate| {
        volume.dead_bytes > 0
            && (volume.move_bytes == 0
                || volume.dead_bytes.saturating_mul(1000) >= volume.bytes * dead_share_min)
    };
    let key = |volume: &Candidate| {
        let is_whole = volume.bytes >= whole_bytes;
        (volume.move_bytes == 0, is_whole, volume.dead_share(), std::cmp::Reverse(volume.number))
    };
    candidates.filter(is_worth).max_by_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: u64 = 16 << 20;

    fn volume(number: u32, dead_percent: u64) -> Candidate {
        let dead_bytes = VOLUME * dead_percent / 100;
        Candidate { number, bytes: VOLUME, dead_bytes, move_bytes: VOLUME - dead_bytes }
    }

    #[test]
    fn required_dead_share_falls_with_the_free_space() {
        let thresholds = SpaceThresholds::new(VOLUME, 100 * VOLUME);
        assert_eq!(thresholds, SpaceThresholds { relaxed: 3 * VOLUME, slow: 2 * VOLUME });
        for (free, line) in [(0, 16), (2 * VOLUME, 16), (5 * VOLUME / 2, 258), (3 * VOLUME, 500)] {
            assert_eq!(thresholds.dead_share_min(free), line, "{free}");
        }
        let lines: Vec<u64> =
            (0..400).map(|n| thresholds.dead_share_min(n * VOLUME / 100)).collect();
        assert!(lines.is_sorted(), "more free space never requires less dead bytes");
        let small = SpaceThresholds::new(VOLUME, 8 * VOLUME);
        assert_eq!(small, SpaceThresholds { relaxed: VOLUME * 3 / 4, slow: VOLUME / 2 });
        assert_eq!(
            SpaceThresholds::new(VOLUME, 0).dead_share_min(0),
            DEAD_SHARE_RELAXED,
            "without a limit"
        );
    }

    #[test]
    fn greatest_dead_share_is_chosen_if_it_reaches_the_line() {
        let chosen = |percents: &[u64], line| {
            let candidates = percents.iter().zip(1..).map(|(dead, number)| volume(number, *dead));
            choose(candidates, VOLUME, line).map(|volume| volume.number)
        };
        assert_eq!(chosen(&[10, 40, 30], 300), Some(2));
        assert_eq!(chosen(&[10, 40, 30], 500), None);
        assert_eq!(chosen(&[40, 40], 300), Some(1), "the older of two equal volumes");
        assert_eq!(chosen(&[0, 0], 0), None, "nothing is dead");
        let dead = Candidate { dead_bytes: 1, move_bytes: 0, ..volume(7, 0) };
        let chosen = choose([volume(1, 90), dead].into_iter(), VOLUME, 500);
        assert_eq!(chosen, Some(dead), "nothing has to be moved");
    }

    #[test]
    fn short_volumes_are_compacted_after_all_others() {
        let short = Candidate {
            number: 3,
            bytes: VOLUME / 4,
            dead_bytes: VOLUME / 8,
            move_bytes: VOLUME / 8,
        };
        let chosen = |others: &[Candidate], line| {
            choose(others.iter().copied().chain([short]), VOLUME, line).map(|chosen| chosen.number)
        };
        assert_eq!(chosen(&[volume(1, 20), volume(2, 30)], 16), Some(2));
        assert_eq!(chosen(&[volume(1, 20), volume(2, 30)], 400), Some(3));
        assert_eq!(chosen(&[volume(1, 0)], 16), Some(3), "no other volume has dead bytes");
        let dead = Candidate { dead_bytes: VOLUME / 4, move_bytes: 0, ..short };
        let first = choose([volume(1, 90), dead].into_iter(), VOLUME, 16);
        assert_eq!(first, Some(dead), "its compaction needs no volume of the reserve");
    }

    #[test]
    fn short_volumes_are_compacted_if_the_reserve_can_be_refilled() {
        let short = Candidate { bytes: VOLUME / 4, ..volume(3, 1) };
        let short = Candidate { move_bytes: VOLUME / 8, ..short };
        let kept = |missing_volumes, tail_bytes, free_bytes| {
            let space = ShortSpace { whole_bytes: VOLUME, missing_volumes, tail_bytes, free_bytes };
            let mut candidates = vec![volume(1, 0), short];
            space.retain(&mut candidates);
            assert_eq!(candidates[0], volume(1, 0), "whole volumes stay");
            candidates.len() == 2
        };
        assert!(kept(None, 0, 0), "there is no reserve");
        assert!(!kept(Some(0), 0, VOLUME / 2));
        assert!(kept(Some(0), 0, VOLUME * 3 / 4));
        assert!(!kept(Some(1), 0, VOLUME * 3 / 4));
        assert!(kept(Some(1), VOLUME / 8, 0), "nothing is taken from the reserve");
    }

    #[test]
    fn only_volumes_sealed_early_have_reclaimable_unused_bytes() {
        assert_eq!(unused_bytes(VOLUME, VOLUME - 5000, 8000), 0, "the next record did not fit");
        assert_eq!(unused_bytes(VOLUME, VOLUME / 4, 8000), VOLUME - VOLUME / 4);
        assert_eq!(unused_bytes(VOLUME, VOLUME + 1, 8000), 0);
    }

    #[test]
    fn share_of_writers_falls_with_the_free_space() {
        let thresholds = SpaceThresholds::new(VOLUME, 100 * VOLUME);
        let shares =
            [0, 6, 12, 20, 99].map(|tenths| thresholds.writes_per_freed_byte(tenths * VOLUME / 10));
        for (share, expected) in shares.iter().zip([SHARE_MIN, 0.25, 1.0, SHARE_MAX, SHARE_MAX]) {
            assert!((share - expected).abs() < 0.01, "{shares:?}");
        }
    }

    #[test]
    fn volume_is_earned_as_it_is_moved() {
        let half = volume(1, 50);
        let earned = [0, VOLUME / 4, VOLUME / 2, VOLUME].map(|moved| half.earned(1000, moved));
        assert_eq!(earned, [0, 500, 1000, 1000]);
        assert_eq!(volume(1, 100).earned(1000, 0), 0, "there is nothing to move");
    }
}
