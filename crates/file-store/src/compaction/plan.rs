//! When a volume is compacted, which one, and how fast writers may store meanwhile: pure.
//!
//! The less space is free, the less dead bytes make a volume worth compacting: moving a volume of
//! which a share `d` is dead costs `(1 - d) / d` bytes for each one it frees, so it pays to wait,
//! as long as there is space to wait in. Writers are delayed only when compaction is behind.
//!
//! # Source
//! \[Rosenblum92\], cleaning of a log-structured file system: the volume with the greatest dead
//! share first. \[RocksDBStall\], the delay of writers between two marks.

/// The share of a volume that must be dead, in thousandths, when space is plenty: moving half of
/// it to free the other half costs as much as it gains.
pub(crate) const DEAD_SHARE_RELAXED: u64 = 500;

/// The least share, when space is short: moving more than 63 bytes to free one gains nothing that
/// a client would still wait for.
pub(crate) const DEAD_SHARE_MIN: u64 = 16;

/// Free space below which writers are delayed, in volumes.
const SLOW_VOLUMES: u64 = 2;

/// On a small disk the mark is this part of its space, if that is less.
const SLOW_PART_OF_CAPACITY: u64 = 16;

/// Where as much is stored as is freed, as a part of the mark.
const BALANCE_OF_SLOW: f64 = 0.6;

/// What writers may store for each byte freed: these at least and at most.
const SHARE_MIN: f64 = 1.0 / 16.0;
const SHARE_MAX: f64 = 2.0;

/// The two marks of free space, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    /// From here on only volumes that are mostly dead are compacted.
    pub(crate) relaxed: u64,
    /// Below this any volume that frees enough is compacted, and writers are delayed.
    pub(crate) slow: u64,
}

/// A volume that may be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) number: u32,
    /// The length of its file.
    pub(crate) bytes: u64,
    /// Bytes that are gone when it is removed.
    pub(crate) dead_bytes: u64,
    /// Bytes that must be moved first.
    pub(crate) move_bytes: u64,
}

impl Candidate {
    /// The bytes that are earned when `moved_bytes` of it have been moved, of those that removing
    /// it frees.
    pub(crate) fn earned(&self, of_bytes: u64, moved_bytes: u64) -> u64 {
        let earned = u128::from(of_bytes) * u128::from(moved_bytes.min(self.move_bytes));
        u64::try_from(earned / u128::from(self.move_bytes.max(1))).unwrap_or(of_bytes)
    }

    /// The share of it that is dead, in thousandths.
    pub(crate) fn dead_share(&self) -> u64 {
        self.dead_bytes * 1000 / self.bytes.max(1)
    }
}

impl Marks {
    /// The marks of a store with volumes of this length, in this space.
    pub(crate) fn new(volume_bytes: u64, capacity_bytes: u64) -> Self {
        let slow = (SLOW_VOLUMES * volume_bytes).min(capacity_bytes / SLOW_PART_OF_CAPACITY);
        Self { relaxed: slow + slow / 2, slow }
    }

    /// The share of a volume that must be dead to be compacted with so many bytes free, in
    /// thousandths.
    pub(crate) fn line(self, free_bytes: u64) -> u64 {
        if free_bytes >= self.relaxed {
            return DEAD_SHARE_RELAXED;
        }
        let above = free_bytes.saturating_sub(self.slow);
        let range = (self.relaxed - self.slow).max(1);
        DEAD_SHARE_MIN + (DEAD_SHARE_RELAXED - DEAD_SHARE_MIN) * above / range
    }

    /// The bytes writers may store for each byte that compaction frees: one at six tenths of the
    /// mark, less below and more above. Never none, or nothing new would become dead.
    pub(crate) fn share(self, free_bytes: u64) -> f64 {
        let balance = self.slow.max(1) as f64 * BALANCE_OF_SLOW;
        (free_bytes as f64 / balance).powi(2).clamp(SHARE_MIN, SHARE_MAX)
    }
}

/// Returns the bytes of a sealed volume that no needle ever took, if they are worth compacting for.
///
/// A full volume ends where the next record did not fit, so less than one record is unused, and
/// would be again wherever its needles are moved. More is unused in a volume that was sealed
/// early: after a failed sync, or because it was drawn for compaction and other writers went on in
/// the next one.
pub(crate) fn unused_bytes(bytes: u64, used: u64, longest_record: u64) -> u64 {
    let unused = bytes.saturating_sub(used);
    if unused > longest_record { unused } else { 0 }
}

/// The space for compacting volumes shorter than a whole one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortSpace {
    /// The length of the volumes of the reserve.
    pub(crate) whole_bytes: u64,
    /// The number of volumes that the reserve lacks; `None` if the store has no reserve.
    pub(crate) missing_volumes: Option<u64>,
    /// The free bytes of the volume being written.
    pub(crate) tail_bytes: u64,
    /// The free bytes of the file system.
    pub(crate) free_bytes: u64,
}

impl ShortSpace {
    /// Removes the short volumes whose compaction would leave the reserve incomplete: they would
    /// take a volume from the reserve, and all short volumes together would not free the space for
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

/// The volume to compact next: the one with the greatest dead share, if that reaches the line. A
/// volume from which nothing is moved is always worth it.
///
/// A volume shorter than `whole_bytes`, the length of the volumes kept for compaction, gives no whole
/// one back for the one that is drawn for what lives in it, so it comes after all others. It must come, though: on a full disk dead bytes in
/// short volumes may be all there is to free.
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
    fn the_line_falls_with_the_free_space() {
        let marks = Marks::new(VOLUME, 100 * VOLUME);
        assert_eq!(marks, Marks { relaxed: 3 * VOLUME, slow: 2 * VOLUME });
        for (free, line) in [(0, 16), (2 * VOLUME, 16), (5 * VOLUME / 2, 258), (3 * VOLUME, 500)] {
            assert_eq!(marks.line(free), line, "{free}");
        }
        let lines: Vec<u64> = (0..400).map(|n| marks.line(n * VOLUME / 100)).collect();
        assert!(lines.is_sorted(), "more free space never asks for less dead bytes");
        let small = Marks::new(VOLUME, 8 * VOLUME);
        assert_eq!(small, Marks { relaxed: VOLUME * 3 / 4, slow: VOLUME / 2 });
        assert_eq!(Marks::new(VOLUME, 0).line(0), DEAD_SHARE_RELAXED, "without a limit");
    }

    #[test]
    fn the_greatest_dead_share_goes_first_if_it_reaches_the_line() {
        let chosen = |percents: &[u64], line| {
            let candidates = percents.iter().zip(1..).map(|(dead, number)| volume(number, *dead));
            choose(candidates, VOLUME, line).map(|volume| volume.number)
        };
        assert_eq!(chosen(&[10, 40, 30], 300), Some(2));
        assert_eq!(chosen(&[10, 40, 30], 500), None);
        assert_eq!(chosen(&[40, 40], 300), Some(1), "the older of equals");
        assert_eq!(chosen(&[0, 0], 0), None, "nothing is dead");
        let dead = Candidate { dead_bytes: 1, move_bytes: 0, ..volume(7, 0) };
        let chosen = choose([volume(1, 90), dead].into_iter(), VOLUME, 500);
        assert_eq!(chosen, Some(dead), "it costs nothing");
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
        assert_eq!(chosen(&[volume(1, 0)], 16), Some(3), "nothing else is dead");
        let dead = Candidate { dead_bytes: VOLUME / 4, move_bytes: 0, ..short };
        let first = choose([volume(1, 90), dead].into_iter(), VOLUME, 16);
        assert_eq!(first, Some(dead), "nothing has to be drawn for it");
    }

    #[test]
    fn short_volumes_are_compacted_if_the_reserve_can_be_refilled() {
        let short = Candidate { bytes: VOLUME / 4, ..volume(3, 1) };
        let short = Candidate { move_bytes: VOLUME / 8, ..short };
        let kept = |missing_volumes, tail_bytes, free_bytes| {
            let space = ShortSpace { whole_bytes: VOLUME, missing_volumes, tail_bytes, free_bytes };
            let mut candidates = vec![volume(1, 0), short];
            space.retain(&mut candidates);
            assert_eq!(candidates[0], volume(1, 0), "whole ones stay");
            candidates.len() == 2
        };
        assert!(kept(None, 0, 0), "there is no reserve");
        assert!(!kept(Some(0), 0, VOLUME / 2));
        assert!(kept(Some(0), 0, VOLUME * 3 / 4));
        assert!(!kept(Some(1), 0, VOLUME * 3 / 4));
        assert!(kept(Some(1), VOLUME / 8, 0), "nothing is taken from the reserve");
    }

    #[test]
    fn only_volumes_sealed_early_have_unused_bytes_to_free() {
        assert_eq!(unused_bytes(VOLUME, VOLUME - 5000, 8000), 0, "the next record did not fit");
        assert_eq!(unused_bytes(VOLUME, VOLUME / 4, 8000), VOLUME - VOLUME / 4);
        assert_eq!(unused_bytes(VOLUME, VOLUME + 1, 8000), 0);
    }

    #[test]
    fn writers_get_what_compaction_frees_and_less_where_little_is_free() {
        let marks = Marks::new(VOLUME, 100 * VOLUME);
        let shares = [0, 6, 12, 20, 99].map(|tenths| marks.share(tenths * VOLUME / 10));
        for (share, expected) in shares.iter().zip([SHARE_MIN, 0.25, 1.0, SHARE_MAX, SHARE_MAX]) {
            assert!((share - expected).abs() < 0.01, "{shares:?}");
        }
    }

    #[test]
    fn a_volume_is_earned_as_it_is_moved() {
        let half = volume(1, 50);
        let earned = [0, VOLUME / 4, VOLUME / 2, VOLUME].map(|moved| half.earned(1000, moved));
        assert_eq!(earned, [0, 500, 1000, 1000]);
        assert_eq!(volume(1, 100).earned(1000, 0), 0, "there is nothing to move");
    }
}
