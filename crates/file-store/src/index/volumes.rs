//! Each volume's live and dead bytes. Pure.

use std::collections::BTreeMap;

use haul_append_log::Position;

/// The length of the log's header before each record.
const RECORD_HEADER_BYTES: u64 = 32;

/// A volume's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Volume {
    /// The number of live needles, each of which is the newest of its key.
    pub(crate) live_needles: u64,
    pub(crate) live_bytes: u64,
    /// The bytes of needles that newer ones replaced.
    pub(crate) dead_bytes: u64,
    /// The bytes of tombstones. They count as long as there is an older volume, which may contain
    /// the needles that they end.
    pub(crate) tombstone_bytes: u64,
}

/// The volumes that contain needles.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    by_number: BTreeMap<u32, Volume>,
    /// `true` if a volume became half dead, or has no more live needles.
    compaction_hint: bool,
}

/// Subtracts from a counter. An accounting error fails every test that meets it; a release build
/// continues with 0 instead of a number near 2^64.
pub(crate) fn subtract(counter: &mut u64, count: u64, what: &str) {
    debug_assert!(*counter >= count, "{what}: {counter} less {count}");
    *counter = counter.checked_sub(count).unwrap_or(0);
}

/// Returns the bytes that a record occupies in its volume.
pub(crate) fn stored_bytes(payload_bytes: u64) -> u64 {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(8)
}

impl Volumes {
    pub(crate) fn get(&self, number: u32) -> Volume {
        self.by_number.get(&number).copied().unwrap_or_default()
    }

    /// Returns the bytes of live needles in all volumes.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.by_number.values().map(|volume| volume.live_bytes).sum()
    }

    /// Returns the bytes of replaced or deleted needles in all volumes.
    pub(crate) fn dead_bytes(&self) -> u64 {
        self.by_number.values().map(|volume| volume.dead_bytes).sum()
    }

    /// Counts a needle that is the newest of its key.
    pub(crate) fn add_live(&mut self, at: Position) {
        let volume = self.by_number.entry(at.lsn.segment()).or_default();
        volume.live_bytes += stored_bytes(at.payload_bytes.into());
        volume.live_needles += 1;
        debug_assert!(volume.live_bytes >= volume.live_needles * RECORD_HEADER_BYTES);
    }

    /// Counts a live needle as dead.
    pub(crate) fn retire(&mut self, at: Position) {
        let number = at.lsn.segment();
        let is_last = self.by_number.keys().next_back() == Some(&number);
        let Some(volume) = self.by_number.get_mut(&number) else { return };
        let was_mostly_dead = volume.dead_bytes > volume.live_bytes;
        let bytes = stored_bytes(at.payload_bytes.into());
        subtract(&mut volume.live_bytes, bytes, "live bytes of a volume");
        subtract(&mut volume.live_needles, 1, "live needles of a volume");
        debug_assert!(volume.live_needles > 0 || volume.live_bytes == 0, "{volume:?}");
        volume.dead_bytes += bytes;
        let is_mostly_dead = volume.dead_bytes > volume.live_bytes;
        self.compaction_hint |=
            !is_last && (is_mostly_dead != was_mostly_dead || volume.live_needles == 0);
    }

    /// Counts a queued event, whose bytes also count as those of the needle before it: compaction
    /// may have to move both.
    pub(crate) fn add_event(&mut self, at: Position) {
        let volume = self.by_number.entry(at.lsn.segment()).or_default();
        volume.live_bytes += stored_bytes(at.payload_bytes.into());
        volume.live_needles += 1;
    }

    /// Counts an event as removed.
    pub(crate) fn retire_event(&mut self, at: Position) {
        let number = at.lsn.segment();
        let is_last = self.by_number.keys().next_back() == Some(&number);
        let Some(volume) = self.by_number.get_mut(&number) else { return };
        let bytes = stored_bytes(at.payload_bytes.into());
        subtract(&mut volume.live_bytes, bytes, "live bytes of a volume");
        subtract(&mut volume.live_needles, 1, "live needles of a volume");
        self.compaction_hint |= !is_last && volume.live_needles == 0;
    }

    pub(crate) fn add_tombstone(&mut self, at: Position, needle_bytes: usize) {
        let volume = self.by_number.entry(at.lsn.segment()).or_default();
        volume.tombstone_bytes += stored_bytes(needle_bytes as u64);
    }

    /// Returns the volumes in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Volume)> {
        self.by_number.iter().map(|(number, volume)| (*number, *volume))
    }

    /// Restores a volume from a checkpoint.
    pub(crate) fn restore(&mut self, number: u32, volume: Volume) {
        let before = self.by_number.insert(number, volume);
        debug_assert!(before.is_none(), "a checkpoint has a volume once");
    }

    pub(crate) fn remove(&mut self, number: u32) {
        let removed = self.by_number.remove(&number);
        debug_assert!(removed.is_none_or(|volume| volume.live_needles == 0), "{removed:?}");
    }

    /// Returns `true` if, since the last call, a volume became half dead or lost its last live
    /// needle.
    pub(crate) fn take_compaction_hint(&mut self) -> bool {
        std::mem::take(&mut self.compaction_hint)
    }
}

#[cfg(test)]
mod tests {
    use haul_append_log::Lsn;

    use super::*;

    fn at(volume: u32) -> Position {
        Position { lsn: Lsn::new(volume, 4096), payload_bytes: 100 }
    }

    #[test]
    fn volume_is_worn_when_half_dead_and_when_completely_dead() {
        let mut volumes = Volumes::default();
        (0..4).for_each(|_| volumes.add_live(at(1)));
        volumes.add_live(at(2));
        let mut hint_after = |n: u32| {
            volumes.retire(at(n));
            volumes.take_compaction_hint()
        };
        assert_eq!([1, 1, 1, 1].map(&mut hint_after), [false, false, true, true]);
        assert!(!hint_after(2), "the volume is not sealed");
        let expected = Volume { dead_bytes: 4 * 136, ..Volume::default() };
        assert_eq!(volumes.get(1), expected);
        assert_eq!((volumes.live_bytes(), volumes.dead_bytes()), (0, 5 * 136), "of both volumes");
        volumes.remove(1);
        assert_eq!(volumes.dead_bytes(), 136);
    }

    #[test]
    fn needle_that_ends_something_is_neither_live_nor_dead() {
        let mut volumes = Volumes::default();
        volumes.add_tombstone(at(1), 81);
        assert_eq!(volumes.get(1), Volume { tombstone_bytes: 120, ..Volume::default() });
        assert_eq!((volumes.live_bytes(), volumes.dead_bytes()), (0, 0));
    }
}
