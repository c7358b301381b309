//! Decides which unsynced sectors and names survive a power cut or a failed sync.

use haul_testing::Random;

/// The fate of an atom, which is a part of an unsynced step: lost, survived, or stale. A stale
/// length survives without its bytes, and the extended range has its blocks' previous content
/// instead of zeros.
pub(crate) type Fate = u8;
pub(crate) const LOST: Fate = 0;
pub(crate) const SURVIVES: Fate = 1;
pub(crate) const STALE: Fate = 2;

/// The rule by which each unsynced sector and each unsynced name survives or not. It is for tests
/// that do not depend on a device kind.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the field is the seed of the choice")]
pub enum Survival {
    /// No unsynced sector or name survives.
    Nothing,
    /// All unsynced sectors and names survive.
    Everything,
    /// Each unsynced sector and name survives with probability 1/2.
    Half { seed: u64 },
    /// Each unsynced sector and name survives with probability 15/16.
    Most { seed: u64 },
}

impl Survival {
    pub(crate) fn fates(self) -> impl FnMut() -> Fate {
        let (seed, sixteenths) = match self {
            Self::Nothing => (0, 0),
            Self::Everything => (0, 16),
            Self::Half { seed } => (seed, 8),
            Self::Most { seed } => (seed, 15),
        };
        let mut random = Random(seed);
        move || if random.below(16) < sixteenths { SURVIVES } else { LOST }
    }
}
