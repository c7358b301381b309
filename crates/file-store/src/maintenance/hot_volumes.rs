//! Hot volumes, which still lose live bytes, so that it is better to compact them later. Pure.
//!
//! # Source
//! \[Rosenblum92\]: cleaning considers the age of a segment. Free space in a segment that no longer
//! changes is worth more than in a segment that empties itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::maintenance::plan::Candidate;

/// The time for which a volume is observed before it is compacted.
pub(crate) const OBSERVED_FOR: Duration = Duration::from_secs(2);

/// A volume is hot if it loses at least this fraction of its live bytes while it is observed. At
/// this rate it loses six sevenths of them within a minute.
const HOT_PART: u64 = 16;

/// The observed volumes that are worth compacting, with their live bytes at the start.
#[derive(Debug, Default)]
pub(crate) struct HotVolumes {
    observed: BTreeMap<u32, Observation>,
}

#[derive(Debug)]
struct Observation {
    since: Instant,
    move_bytes: u64,
}

impl HotVolumes {
    /// Removes from `candidates` all hot volumes, and all volumes that were not observed for long
    /// enough. A volume's observation starts with the first call in which it has at least this dead
    /// share. Volumes without live bytes stay candidates.
    pub(crate) fn remove_from(
        &mut self,
        candidates: &mut Vec<Candidate>,
        dead_share_min: u64,
        now: Instant,
    ) {
        candidates.retain(|volume| volume.move_bytes == 0 || volume.dead_share() >= dead_share_min);
        let to_move = candidates.iter().filter(|volume| volume.move_bytes > 0);
        let numbers: BTreeSet<u32> = to_move.map(|volume| volume.number).collect();
        self.observed.retain(|number, _| numbers.contains(number));
        candidates.retain(|volume| volume.move_bytes == 0 || self.is_cold(volume, now));
    }

    fn is_cold(&mut self, volume: &Candidate, now: Instant) -> bool {
        let begun = Observation { since: now, move_bytes: volume.move_bytes };
        let first = self.observed.entry(volume.number).or_insert(begun);
        if now.saturating_duration_since(first.since) < OBSERVED_FOR {
            return false;
        }
        let lost = first.move_bytes.saturating_sub(volume.move_bytes);
        let is_cold = lost < (first.move_bytes / HOT_PART).max(1);
        if !is_cold {
            *first = Observation { since: now, move_bytes: volume.move_bytes };
        }
        is_cold
    }

    /// Returns the time after which another call may find a volume that is no longer hot; `None` if
    /// no volume is observed.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        (!self.observed.is_empty()).then_some(OBSERVED_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_is_compacted_when_it_stops_losing_live_bytes() {
        let began = Instant::now();
        let mut volumes = HotVolumes::default();
        let mut left = |seconds: f64, move_bytes| {
            let bytes = 3200;
            let volume =
                |number, move_bytes| Candidate { number, bytes, dead_bytes: 1600, move_bytes };
            let dead = volume(1, 0);
            let full = Candidate { dead_bytes: 100, ..volume(2, 3100) };
            let mut candidates = vec![dead, full, volume(3, move_bytes)];
            volumes.remove_from(&mut candidates, 500, began + Duration::from_secs_f64(seconds));
            let numbers: Vec<u32> = candidates.iter().map(|volume| volume.number).collect();
            (numbers, volumes.next_look())
        };
        let waits = (vec![1], Some(OBSERVED_FOR));
        assert_eq!(left(0.0, 1600), waits);
        assert_eq!(left(1.9, 1600), waits, "not observed for long enough");
        assert_eq!(left(2.0, 1500), waits, "the volume lost a sixteenth");
        assert_eq!(left(3.9, 1500), waits);
        assert_eq!(left(4.1, 1410).0, [1, 3], "the volume lost less");
        assert_eq!(left(4.2, 1410).0, [1, 3], "the volume is still a candidate");
        assert_eq!(left(4.3, 0), (vec![1, 3], None));
    }
}
