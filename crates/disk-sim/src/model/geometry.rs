//! Maps each sector on a drive to its cylinder, head and angle, and computes from these when a
//! sector passes the head.

use crate::model::parameters::{Nanos, Parameters, SECTOR_BYTES};

/// A zone: adjacent cylinders whose tracks have equally many sectors.
#[derive(Debug, Clone, Copy)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) cylinder: u64,
    pub(crate) head: u64,
    /// The sector's index in its track.
    pub(crate) sector: u64,
    pub(crate) sectors_per_track: u64,
}

/// A drive's track layout. Sectors are numbered along a track, then through a cylinder's heads,
/// then inwards through the cylinders. Each track starts at a later angle than the previous track
/// ends (skew), so that a sequential read does not miss a revolution while the drive switches
/// tracks.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    heads: u64,
    cylinders: u64,
    revolution_ns: Nanos,
    head_skew_ns: Nanos,
    cylinder_skew_ns: Nanos,
}

impl Geometry {
    /// Creates the geometry for a drive with at least `sectors` sectors. A simulated drive smaller
    /// than the real drive has fewer cylinders, but its arm has the same full-stroke seek time.
    pub(crate) fn new(parameters: &Parameters, sectors: u64) -> Self {
        let heads = u64::from(parameters.heads);
        let tracks: Vec<_> = zone_rates(parameters)
            .map(|bytes_per_s| sectors_per_track(parameters, bytes_per_s))
            .collect();
        let sectors_per_round = heads * tracks.iter().sum::<u64>();
        let cylinders_each = sectors.div_ceil(sectors_per_round).max(1);
        let mut zones = Vec::with_capacity(tracks.len());
        let (mut first_sector, mut first_cylinder) = (0, 0);
        for sectors_per_track in tracks {
            zones.push(Zone { first_sector, first_cylinder, sectors_per_track });
            first_sector += cylinders_each * heads * sectors_per_track;
            first_cylinder += cylinders_each;
        }
        Self {
            zones,
            heads,
            cylinders: first_cylinder,
            revolution_ns: parameters.revolution_ns,
            head_skew_ns: parameters.head_skew_ns,
            cylinder_skew_ns: parameters.cylinder_skew_ns,
        }
    }

    pub(crate) fn cylinders(&self) -> u64 {
        self.cylinders
    }

    pub(crate) fn locate(&self, sector: u64) -> Location {
        let zone = self.zones[self.zones.partition_point(|zone| zone.first_sector <= sector) - 1];
        let within = sector - zone.first_sector;
        let track = within / zone.sectors_per_track;
        Location {
            cylinder: zone.first_cylinder + track / self.heads,
            head: track % self.heads,
            sector: within % zone.sectors_per_track,
            sectors_per_track: zone.sectors_per_track,
        }
    }

    /// Returns the time from the start of a revolution until the sector's start passes the head.
    /// Revolutions start at multiples of `revolution_ns`.
    fn passes_at_ns(&self, location: &Location) -> Nanos {
        let per_cylinder = (self.heads - 1) * self.head_skew_ns + self.cylinder_skew_ns;
        let skew = location.cylinder * per_cylinder + location.head * self.head_skew_ns;
        (skew + self.along_ns(location, location.sector)) % self.revolution_ns
    }

    /// Returns the time from the start of `location`'s track to the start of the track's sector
    /// with the index `sector`.
    fn along_ns(&self, location: &Location, sector: u64) -> Nanos {
        self.revolution_ns * sector / location.sectors_per_track
    }

    /// Returns the rotational latency: the time from `now` until the start of the sector at
    /// `location` passes the head. The head must already be on this sector's track.
    pub(crate) fn rotation_ns(&self, now: Nanos, location: &Location) -> Nanos {
        let angle = now % self.revolution_ns;
        (self.passes_at_ns(location) + self.revolution_ns - angle) % self.revolution_ns
    }

    /// Returns the time in which a run of sectors passes the head, track switches included.
    pub(crate) fn transfer_ns(&self, sector: u64, sectors: u64) -> Nanos {
        let (mut at, mut left, mut time) = (sector, sectors, 0);
        while left > 0 {
            let location = self.locate(at);
            let here = left.min(location.sectors_per_track - location.sector);
            let end = location.sector + here;
            time += self.along_ns(&location, end) - self.along_ns(&location, location.sector);
            (at, left) = (at + here, left - here);
            if left > 0 {
                time += self.skew_after_ns(&location);
            }
        }
        time
    }

    /// Returns how many sectors from `sector` on pass the head completely within `time_ns`, at most
    /// `sectors_max`.
    pub(crate) fn sectors_within(&self, sector: u64, time_ns: Nanos, sectors_max: u64) -> u64 {
        let (mut at, mut left, mut time) = (sector, sectors_max, time_ns);
        while left > 0 {
            let location = self.locate(at);
            let here = left.min(location.sectors_per_track - location.sector);
            let began = self.along_ns(&location, location.sector);
            let whole = self.along_ns(&location, location.sector + here) - began;
            if time < whole {
                let passes = |n: u64| self.along_ns(&location, location.sector + n) - began <= time;
                let guess = time * location.sectors_per_track / self.revolution_ns;
                let most = (guess + 1).min(here);
                return at - sector + if passes(most) { most } else { most.saturating_sub(1) };
            }
            (at, left) = (at + here, left - here);
            time = time.saturating_sub(whole + self.skew_after_ns(&location));
        }
        at - sector
    }

    fn skew_after_ns(&self, location: &Location) -> Nanos {
        let is_last = location.head + 1 == self.heads;
        if is_last { self.cylinder_skew_ns } else { self.head_skew_ns }
    }
}

/// Returns the zones' transfer rates in bytes per second. The rates decrease in equal steps from
/// the outermost zone to the innermost.
fn zone_rates(parameters: &Parameters) -> impl Iterator<Item = u64> {
    let (outer, inner) = (parameters.outer_bytes_per_s, parameters.inner_bytes_per_s);
    let steps = u64::from(parameters.zones.max(2) - 1);
    (0..=steps).map(move |zone| outer - (outer - inner) * zone / steps)
}

/// Returns how many sectors a track must have for sequential reads to reach `bytes_per_s`, skews
/// included.
fn sectors_per_track(parameters: &Parameters, bytes_per_s: u64) -> u64 {
    let heads = u64::from(parameters.heads);
    let per_cylinder_ns = heads * parameters.revolution_ns
        + (heads - 1) * parameters.head_skew_ns
        + parameters.cylinder_skew_ns;
    let bytes = u128::from(bytes_per_s) * u128::from(per_cylinder_ns) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX) / heads / SECTOR_BYTES
}

#[cfg(test)]
mod tests {
    use haul_testing::Random;

    use super::*;
    use crate::model::parameters::MS;

    const GIB: u64 = (1 << 30) / SECTOR_BYTES;

    fn geometry() -> Geometry {
        Geometry::new(&Parameters::travelstar_7k320(), GIB)
    }

    #[test]
    fn sectors_are_numbered_along_tracks_heads_and_cylinders() {
        let geometry = geometry();
        let mut before = geometry.locate(0);
        assert_eq!((before.cylinder, before.head, before.sector), (0, 0, 0));
        for sector in 1..200_000 {
            let location = geometry.locate(sector);
            let is_next = if location.sector > 0 {
                (location.cylinder, location.head) == (before.cylinder, before.head)
                    && location.sector == before.sector + 1
            } else if location.head > 0 {
                location.cylinder == before.cylinder && location.head == before.head + 1
            } else {
                location.cylinder == before.cylinder + 1 && before.head == 3
            };
            assert!(is_next, "{before:?}, then {location:?}");
            before = location;
        }
        let last = geometry.locate(GIB - 1);
        assert!(last.cylinder < geometry.cylinders());
        let part = last.sectors_per_track as f64 / geometry.locate(0).sectors_per_track as f64;
        assert!((part - 0.5).abs() < 0.01, "half as many sectors on the innermost tracks: {part}");
    }

    #[test]
    fn each_zone_reads_at_its_rate() {
        for parameters in Parameters::all() {
            let geometry = Geometry::new(&parameters, 8 * GIB);
            let rates = zone_rates(&parameters);
            for (zone, rate) in geometry.zones.iter().zip(rates) {
                let sectors = 4 * 16 * zone.sectors_per_track; // 16 cylinders, whole
                let ns = geometry.transfer_ns(zone.first_sector, sectors);
                let measured = sectors * SECTOR_BYTES * 1000 / (ns / MS);
                let part = measured as f64 / rate as f64;
                assert!((0.99..1.01).contains(&part), "{measured} instead of {rate}");
            }
        }
    }

    #[test]
    fn missed_sector_returns_after_one_revolution() {
        let geometry = geometry();
        let mut random = Random(1);
        for _ in 0..1000 {
            let (location, now) = (geometry.locate(random.below(GIB)), random.below(1 << 40));
            let wait = geometry.rotation_ns(now, &location);
            assert!(wait < geometry.revolution_ns);
            assert_eq!(geometry.rotation_ns(now + wait, &location), 0, "on arrival");
            let again = geometry.rotation_ns(now + wait + 1, &location);
            assert_eq!(again, geometry.revolution_ns - 1, "just missed");
            assert_eq!(geometry.rotation_ns(now + geometry.revolution_ns, &location), wait);
        }
    }

    #[test]
    fn sequential_read_across_tracks_costs_only_the_skew() {
        let geometry = geometry();
        let per_track = geometry.locate(0).sectors_per_track;
        for (track, skew) in [(1, geometry.head_skew_ns), (4, geometry.cylinder_skew_ns)] {
            let (last, next) = (track * per_track - 1, track * per_track);
            let start = geometry.rotation_ns(0, &geometry.locate(last));
            let end = start + geometry.transfer_ns(last, 1);
            assert!(geometry.rotation_ns(end, &geometry.locate(next)).abs_diff(skew) <= 1);
            let through = geometry.transfer_ns(last, 2) - geometry.transfer_ns(next, 1);
            assert_eq!(through, geometry.transfer_ns(last, 1) + skew);
        }
    }

    #[test]
    fn sectors_within_a_time_is_the_inverse_of_transfer_time() {
        let geometry = geometry();
        let mut random = Random(2);
        for _ in 0..2000 {
            let (sector, time) = (random.below(GIB / 2), random.below(60 * MS));
            let within = geometry.sectors_within(sector, time, 20_000);
            assert!(geometry.transfer_ns(sector, within) <= time);
            assert!(within == 20_000 || geometry.transfer_ns(sector, within + 1) > time);
        }
    }
}
