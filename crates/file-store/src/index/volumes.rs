//! What is in each volume, by whether it still counts.

use std::collections::BTreeMap;

use haul_append_log::Position;

/// The log's header before each needle's record.
const RECORD_HEADER_BYTES: u64 = 32;

/// One volume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Volume {
    /// Needles that stand, and their bytes.
    pub(crate) live_needles: u64,
    pub(crate) live_bytes: u64,
    /// Bytes of needles whose place something newer took.
    pub(crate) dead_bytes: u64,
    /// Bytes of needles that only end something. They count as long as there is an older volume,
    /// which may hold what they end.
    pub(crate) ending_bytes: u64,
}

/// All volumes that hold needles.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    by_number: BTreeMap<u32, Volume>,
    /// A volume became half or wholly dead.
    worn: bool,
}

/// What a record takes in its volume.
fn footprint(payload_bytes: u64) -> u64 {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(8)
}

impl Volumes {
    pub(crate) fn get(&self, number: u32) -> Volume {
        self.by_number.get(&number).copied().unwrap_or_default()
    }

    /// The bytes of needles that stand, in all volumes.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.by_number.values().map(|volume| volume.live_bytes).sum()
    }

    /// A needle stands.
    pub(crate) fn bear(&mut self, at: Position) {
        let volume = self.by_number.entry(at.lsn.segment()).or_default();
        volume.live_bytes += footprint(at.payload_bytes.into());
        volume.live_needles += 1;
    }

    /// A needle that stood does so no more.
    pub(crate) fn bury(&mut self, at: Position) {
        let number = at.lsn.segment();
        let is_last = self.by_number.keys().next_back() == Some(&number);
        let Some(volume) = self.by_number.get_mut(&number) else { return };
        let was_worn = volume.dead_bytes > volume.live_bytes;
        let bytes = footprint(at.payload_bytes.into());
        volume.live_bytes -= bytes;
        volume.live_needles -= 1;
        volume.dead_bytes += bytes;
        let is_worn = volume.dead_bytes > volume.live_bytes;
        self.worn |= !is_last && (is_worn != was_worn || volume.live_needles == 0);
    }

    /// A needle of this many bytes ended something.
    pub(crate) fn end(&mut self, at: Position, needle_bytes: usize) {
        let volume = self.by_number.entry(at.lsn.segment()).or_default();
        volume.ending_bytes += footprint(needle_bytes as u64);
    }

    pub(crate) fn remove(&mut self, number: u32) {
        self.by_number.remove(&number);
    }

    /// Whether, since the last call, a volume became half or wholly dead.
    pub(crate) fn take_worn(&mut self) -> bool {
        std::mem::take(&mut self.worn)
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
    fn a_volume_is_worn_when_it_is_half_dead_and_when_it_is_dead() {
        let mut volumes = Volumes::default();
        (0..4).for_each(|_| volumes.bear(at(1)));
        volumes.bear(at(2));
        let mut worn_after = |n: u32| {
            volumes.bury(at(n));
            volumes.take_worn()
        };
        assert_eq!([1, 1, 1, 1].map(&mut worn_after), [false, false, true, true]);
        assert!(!worn_after(2), "it is still being written");
        let expected = Volume { dead_bytes: 4 * 136, ..Volume::default() };
        assert_eq!(volumes.get(1), expected);
    }

    #[test]
    fn what_ends_something_is_neither_live_nor_dead() {
        let mut volumes = Volumes::default();
        volumes.end(at(1), 81);
        assert_eq!(volumes.get(1), Volume { ending_bytes: 120, ..Volume::default() });
        assert_eq!(volumes.live_bytes(), 0);
    }
}
