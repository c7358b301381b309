//! Checks whether measured write rates are reliable enough to derive the limits of dirty memory
//! from them.

use crate::case::Target;
use crate::rate::RateSource;

/// The number of measurements of a disk that are required before settings are changed.
pub const MEASUREMENTS: usize = 3;

/// The maximum difference between the measured rates of a disk, as a percentage of their median.
const SPREAD_PERCENT_MAX: u64 = 25;

/// The load average and the number of cores of the machine before a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// The load average of the last minute.
    pub average: f64,
    /// The number of CPU cores.
    pub cores: usize,
}

impl Load {
    /// Parses `/proc/loadavg`; its first field is the average of the last minute.
    pub fn parse(loadavg: &str, cores: usize) -> Option<Self> {
        let average = loadavg.split_whitespace().next()?.parse().ok()?;
        Some(Self { average, cores })
    }

    /// Returns the reason not to rely on measurements under this load: the load average exceeds the
    /// number of cores. `None` if measurements are reliable.
    pub fn objection(self) -> Option<String> {
        let Self { average, cores } = self;
        (average > cores as f64).then(|| {
            format!(
                "the load average was {average} before the measurement, more than the {cores} \
                 cores: other work may have slowed the disk down"
            )
        })
    }
}

/// The measured rates of one disk in bytes per second, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates(Vec<u64>);

impl Rates {
    /// Creates the list from at least one measured rate, in bytes per second.
    pub fn new(first: u64, others: impl IntoIterator<Item = u64>) -> Self {
        let mut rates: Vec<_> = others.into_iter().chain([first]).collect();
        rates.sort_unstable();
        Self(rates)
    }

    /// Returns the median rate; with an even number of rates, the higher of the two middle rates.
    pub fn median(&self) -> u64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(0)
    }

    /// Returns the reason not to rely on these rates of the disk `name`; `None` if they are
    /// reliable.
    pub fn objection(&self, name: &str) -> Option<String> {
        let (least, most) = (self.0.first()?, self.0.last()?);
        let spread_percent = (most - least).saturating_mul(100) / self.median().max(1);
        (spread_percent > SPREAD_PERCENT_MAX).then(|| {
            format!(
                "{} measurements of {name} differ by {spread_percent} %, more than \
                 {SPREAD_PERCENT_MAX} %: from {} to {} MiB/s",
                self.0.len(),
                least >> 20,
                most >> 20
            )
        })
    }
}

/// Returns the reason not to rely on the measured rates of `targets`: none of them is the rate of a
/// disk. `None` if one is, or if none was measured.
pub fn objection_to_targets(targets: &[Target]) -> Option<String> {
    let is_measured = |target: &&Target| target.rate.known == RateSource::Measured;
    let measured: Vec<_> = targets.iter().filter(is_measured).collect();
    let is_no_disk = !measured.is_empty() && !measured.iter().any(|target| target.decides());
    is_no_disk.then(|| {
        let points: Vec<_> = measured.iter().map(|target| target.point()).collect();
        format!(
            "the rate of {} is that of a loop device or of a user-space file system, not of a disk",
            points.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{MIB, mount, place};
    use crate::rate::Rate;
    use haul_disk::DiskKind;

    #[test]
    fn rate_of_a_loop_device_is_no_rate_of_a_disk() {
        let target = |point: &str, kind, known| {
            let mut target = place(mount(point));
            target.facts.disks[0].kind = kind;
            target.rate = Rate::exactly(100 * MIB, known);
            target
        };
        let image = target("/image", DiskKind::Loop, RateSource::Measured);
        let reason = objection_to_targets(std::slice::from_ref(&image)).unwrap();
        assert!(reason.contains("/image") && reason.contains("loop device"), "{reason}");
        let disk = target("/", DiskKind::Scsi, RateSource::Measured);
        assert_eq!(objection_to_targets(&[image, disk]), None, "the disk decides");
        let given = target("/image", DiskKind::Loop, RateSource::Given);
        assert_eq!(objection_to_targets(&[given]), None, "it was not measured");
    }

    #[test]
    fn load_above_the_number_of_cores_is_unreliable() {
        let objection = |text: &str| Load::parse(text, 2).and_then(Load::objection);
        assert_eq!(objection("0.10 0.2 0.3 1/100 7\n"), None);
        assert_eq!(objection("2.00 0.2 0.3 1/100 7\n"), None);
        let reason = objection("21.50 0.2 0.3 1/100 7\n").unwrap();
        assert!(reason.contains("21.5") && reason.contains("2 cores"), "{reason}");
        assert_eq!(Load::parse("", 2), None);
    }

    #[test]
    fn rates_with_a_large_spread_are_unreliable() {
        let objection = |rates: &[u64]| {
            Rates::new(rates[0] << 20, rates[1..].iter().map(|rate| rate << 20)).objection("sda")
        };
        assert_eq!(objection(&[400]), None);
        assert_eq!(objection(&[400, 380, 420]), None);
        assert_eq!(objection(&[100, 88, 113]), None, "25 %");
        let reason = objection(&[147, 240, 1900]).unwrap();
        assert!(reason.contains("sda") && reason.contains("147 to 1900 MiB/s"), "{reason}");
        assert_eq!(Rates::new(9, [1, 5]).median(), 5);
    }
}
