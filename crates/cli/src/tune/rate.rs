//! How fast a disk takes what is written: measured, told, or what its kind lets expect. Pure.

use std::fmt;
use std::time::Duration;

use haul_bench::storage::Rotation;
use haul_disk::{DiskFacts, DiskKind, MountFacts};

use crate::units::Bytes;

const MIB: u64 = 1 << 20;

/// Where a rate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It was measured just now.
    Measured,
    /// Whoever asks says so.
    Given,
    /// Only the kind of disk is known, which this names.
    ByKind(&'static str),
}

/// Between which rates a disk takes what is written in sequence, in bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) known: Known,
}

impl Rate {
    pub(super) fn exactly(bytes_per_s: u64, known: Known) -> Self {
        let rate = bytes_per_s.max(1);
        Self { low: rate, high: rate, known }
    }

    /// What the kind of the disks below lets expect. Of several, as many may take a share each,
    /// or one of them may have to take it all.
    pub(super) fn by_kind(facts: &MountFacts) -> Self {
        let each: Vec<_> =
            facts.disks.iter().map(|disk| of_kind(disk, Rotation::Unknown)).collect();
        match each.as_slice() {
            [] => between(UNKNOWN, "whatever is below"),
            [one] => *one,
            several => Self {
                low: several.iter().map(|rate| rate.low).min().unwrap_or(1),
                high: several.iter().map(|rate| rate.high).fold(0, u64::saturating_add),
                known: Known::ByKind("several disks"),
            },
        }
    }

    /// The least and the most time that `bytes` take.
    pub(super) fn times(&self, bytes: u64) -> (Duration, Duration) {
        let time = |rate: u64| {
            let micros = u128::from(bytes) * 1_000_000 / u128::from(rate.max(1));
            Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
        };
        (time(self.high), time(self.low))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known {
            Known::Measured => write!(f, "{}/s (measured)", Bytes(self.high)),
            Known::Given => write!(f, "{}/s (as you say)", Bytes(self.high)),
            Known::ByKind(kind) => {
                write!(f, "{} to {}/s (expected of {kind})", Bytes(self.low), Bytes(self.high))
            }
        }
    }
}

/// In MiB a second.
const UNKNOWN: (u64, u64) = (50, 2000);

/// What a disk lets expect. Whether it spins is what was measured; a virtual one's word for it is
/// not taken.
fn of_kind(disk: &DiskFacts, measured: Rotation) -> Rate {
    match (disk.kind, spins(disk, measured)) {
        (_, Some(true)) => between((80, 250), "a spinning disk"),
        (DiskKind::Nvme, _) => between((400, 6000), "NVMe"),
        (DiskKind::Scsi, Some(false)) => between((150, 550), "a solid disk at SATA or SAS"),
        (DiskKind::Scsi, None) => between((80, 550), "a disk at SATA, SAS or USB"),
        (DiskKind::Card, _) => between((10, 90), "a memory card"),
        (DiskKind::Virtual, _) => between(UNKNOWN, "a virtual disk"),
        (DiskKind::Loop, _) => between(UNKNOWN, "a file on another file system"),
        (DiskKind::Other, _) => between(UNKNOWN, "a disk of an unknown kind"),
    }
}

fn between((low, high): (u64, u64), kind: &'static str) -> Rate {
    Rate { low: low * MIB, high: high * MIB, known: Known::ByKind(kind) }
}

/// Whether a disk spins, as far as it is known. Reads that do not deny it are no proof: they are
/// slow on a busy machine, too.
pub(super) fn spins(disk: &DiskFacts, measured: Rotation) -> Option<bool> {
    match (disk.queue.rotational?, measured) {
        (true, Rotation::Denied) => Some(false),
        // Made up disks make up this, too.
        (true, _) if matches!(disk.kind, DiskKind::Virtual | DiskKind::Loop | DiskKind::Other) => {
            None
        }
        (claim, _) => Some(claim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::case::tests::{disk, mount};

    #[test]
    fn a_disk_spins_when_it_says_so_and_nothing_speaks_against_it() {
        use Rotation::{Believable, Denied, Unknown};
        for (kind, claim, measured, expected) in [
            (DiskKind::Scsi, Some(true), Unknown, Some(true)),
            (DiskKind::Scsi, Some(true), Denied, Some(false)),
            (DiskKind::Scsi, Some(false), Unknown, Some(false)),
            (DiskKind::Scsi, None, Unknown, None),
            (DiskKind::Virtual, Some(true), Unknown, None),
            (DiskKind::Virtual, Some(true), Believable, None),
            (DiskKind::Scsi, Some(true), Believable, Some(true)),
            (DiskKind::Virtual, Some(true), Denied, Some(false)),
            (DiskKind::Virtual, Some(false), Unknown, Some(false)),
            (DiskKind::Loop, Some(true), Unknown, None),
        ] {
            let mut facts = disk("sda", kind);
            facts.queue.rotational = claim;
            assert_eq!(spins(&facts, measured), expected, "{kind:?} {claim:?} {measured:?}");
        }
    }

    #[test]
    fn a_kind_lets_expect_a_rate_and_several_disks_a_wider_one() {
        let of = |disks| Rate::by_kind(&MountFacts { disks, ..mount("/") });
        let spinning = of(vec![disk("sda", DiskKind::Scsi)]);
        assert_eq!(spinning.to_string(), "80 MiB to 250 MiB/s (expected of a spinning disk)");
        let two = of(vec![disk("sda", DiskKind::Scsi), disk("sdb", DiskKind::Scsi)]);
        assert_eq!((two.low, two.high), (80 * MIB, 500 * MIB));
        assert_eq!(of(vec![]).known, Known::ByKind("whatever is below"));
        let nvme = of(vec![disk("nvme0n1", DiskKind::Nvme)]);
        assert_eq!(nvme.known, Known::ByKind("NVMe"));
    }

    #[test]
    fn a_rate_tells_the_time_of_an_amount() {
        let rate = Rate { low: 10, high: 40, known: Known::Given };
        assert_eq!(rate.times(80), (Duration::from_secs(2), Duration::from_secs(8)));
        assert_eq!(Rate::exactly(0, Known::Given).times(3).0, Duration::from_secs(3));
        let measured = Rate::exactly(410 * MIB, Known::Measured);
        assert_eq!(measured.to_string(), "410 MiB/s (measured)");
    }
}
