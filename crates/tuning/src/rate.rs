//! Estimates the time to write data to a disk from its write rate: measured, given by the user, or
//! typical of its kind.

use std::fmt;
use std::time::Duration;

use haul_disk::{DiskFacts, DiskKind, MountFacts};
use haul_measure::Rotation;
use haul_units::Bytes;

const MIB: u64 = 1 << 20;

/// The origin of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateSource {
    /// The rate was measured in this run.
    Measured,
    /// The user gave the rate.
    Given,
    /// The rate is typical of a kind of disk, whose name is the string.
    ByKind(&'static str),
}

/// Bounds of the sequential write rate of a disk, in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The lower bound, in bytes per second.
    pub low: u64,
    /// The upper bound, in bytes per second.
    pub high: u64,
    /// The origin of the bounds.
    pub known: RateSource,
}

impl Rate {
    /// Returns a rate whose bounds are both `bytes_per_s`, at least 1 B/s.
    pub fn exactly(bytes_per_s: u64, known: RateSource) -> Self {
        let rate = bytes_per_s.max(1);
        Self { low: rate, high: rate, known }
    }

    /// Returns the typical rate of the disks below a file system. With several disks, the lower
    /// bound is that of the slowest disk, which may receive all data. The upper bound is the sum of
    /// the upper bounds of all disks, since the data may be spread over all of them.
    pub fn by_kind(facts: &MountFacts) -> Self {
        let each: Vec<_> =
            facts.disks.iter().map(|disk| default_rate(disk, Rotation::Unknown)).collect();
        match each.as_slice() {
            [] => unknown("an unknown device"),
            [one] => *one,
            several => Self {
                low: several.iter().map(|rate| rate.low).min().unwrap_or(1),
                high: several.iter().map(|rate| rate.high).fold(0, u64::saturating_add),
                known: RateSource::ByKind("several disks"),
            },
        }
    }

    /// Returns the minimum and the maximum time to write `bytes` bytes.
    pub fn times(&self, bytes: u64) -> (Duration, Duration) {
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
            RateSource::Measured => write!(f, "{}/s (measured)", Bytes(self.high)),
            RateSource::Given => write!(f, "{}/s (given)", Bytes(self.high)),
            RateSource::ByKind(kind) => {
                write!(f, "{} to {}/s (typical of {kind})", Bytes(self.low), Bytes(self.high))
            }
        }
    }
}

/// Returns the typical write rate of disks of the same kind as `disk`.
fn default_rate(disk: &DiskFacts, measured: Rotation) -> Rate {
    match (disk.kind, is_rotational(disk, measured)) {
        (_, Some(true)) => between(80, 250, "a rotational disk"),
        (DiskKind::Nvme, _) => between(400, 6000, "NVMe"),
        (DiskKind::Scsi, Some(false)) => between(150, 550, "a SATA or SAS SSD"),
        (DiskKind::Scsi, None) => between(80, 550, "a SATA, SAS or USB disk"),
        (DiskKind::Card, _) => between(10, 90, "a memory card"),
        (DiskKind::Virtual, _) => unknown("a virtual disk"),
        (DiskKind::Loop, _) => unknown("a loop device"),
        (DiskKind::Other, _) => unknown("an unknown kind of disk"),
    }
}

fn unknown(kind: &'static str) -> Rate {
    between(50, 2000, kind)
}

fn between(low_mib: u64, high_mib: u64, kind: &'static str) -> Rate {
    Rate { low: low_mib * MIB, high: high_mib * MIB, known: RateSource::ByKind(kind) }
}

/// Returns `Some(true)` if a disk is rotational, `None` if unknown. A measurement can only disprove
/// the report of the disk: slow reads do not prove rotation, since load also slows reads down.
pub(crate) fn is_rotational(disk: &DiskFacts, measured: Rotation) -> Option<bool> {
    match (disk.queue.rotational?, measured) {
        (true, Rotation::Denied) => Some(false),
        // A virtual device often reports itself as rotational without being so.
        (true, _) if matches!(disk.kind, DiskKind::Virtual | DiskKind::Loop | DiskKind::Other) => {
            None
        }
        (claim, _) => Some(claim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{disk, mount};

    #[test]
    fn disk_is_rotational_if_reported_and_not_contradicted() {
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
            assert_eq!(
                is_rotational(&facts, measured),
                expected,
                "{kind:?} {claim:?} {measured:?}"
            );
        }
    }

    #[test]
    fn rate_depends_on_kind_and_number_of_disks() {
        let of = |disks| Rate::by_kind(&MountFacts { disks, ..mount("/") });
        let spinning = of(vec![disk("sda", DiskKind::Scsi)]);
        assert_eq!(spinning.to_string(), "80 MiB to 250 MiB/s (typical of a rotational disk)");
        let two = of(vec![disk("sda", DiskKind::Scsi), disk("sdb", DiskKind::Scsi)]);
        assert_eq!((two.low, two.high), (80 * MIB, 500 * MIB));
        assert_eq!(of(vec![]).known, RateSource::ByKind("an unknown device"));
        let nvme = of(vec![disk("nvme0n1", DiskKind::Nvme)]);
        assert_eq!(nvme.known, RateSource::ByKind("NVMe"));
    }

    #[test]
    fn rate_converts_bytes_to_time() {
        let rate = Rate { low: 10, high: 40, known: RateSource::Given };
        assert_eq!(rate.times(80), (Duration::from_secs(2), Duration::from_secs(8)));
        assert_eq!(Rate::exactly(0, RateSource::Given).times(3).0, Duration::from_secs(3));
        let measured = Rate::exactly(410 * MIB, RateSource::Measured);
        assert_eq!(measured.to_string(), "410 MiB/s (measured)");
    }
}
