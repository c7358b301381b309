//! Where a sector is: zone, cylinder, head, and at which moment of a revolution it passes.

use crate::model::parameters::{Nanos, Parameters, SECTOR_BYTES};

/// Tracks of equal length, side by side.
#[derive(Debug, Clone, Copy)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
}

/// A place on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) cylinder: u64,
    pub(crate) head: u64,
    /// Counted from the beginning of the track.
    pub(crate) sector: u64,
    pub(crate) sectors_per_track: u64,
}

/// The tracks of a drive. Sectors are numbered along a track, then through the heads of a
/// cylinder, then inwards; each track begins a little later than the one before it, so that reading on needs no
/// whole revolution.
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
    /// A drive of `sectors` at least. One smaller than the real drive has fewer cylinders, and the
    /// arm still moves over all of its stroke.
    pub(crate) fn new(parameters: &Parameters, sectors: u64) -> Self {
        let heads = u64::from(parameters.heads);
        let tracks: Vec<_> = zone_rates(parameters)
            .map(|bytes_per_s| sectors_per_track(parameters, bytes_per_s))
            .collect();
        let of_one_cylinder_each = heads * tracks.iter().sum::<u64>();
        let cylinders_each = sectors.div_ceil(of_one_cylinder_each).max(1);
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

    /// How many places the arm has.
    pub(crate) fn cylinders(&self) -> u64 {
        self.cylinders
    }

    /// Where a sector is.
    pub(crate) fn place(&self, sector: u64) -> Place {
        let zone = self.zones[self.zones.partition_point(|zone| zone.first_sector <= sector) - 1];
        let within = sector - zone.first_sector;
        let track = within / zone.sectors_per_track;
        Place {
            cylinder: zone.first_cylinder + track / self.heads,
            head: track % self.heads,
            sector: within % zone.sectors_per_track,
            sectors_per_track: zone.sectors_per_track,
        }
    }

    /// How long after the platter's mark the sector begins to pass.
    fn passes_at_ns(&self, place: &Place) -> Nanos {
        let of_a_cylinder = (self.heads - 1) * self.head_skew_ns + self.cylinder_skew_ns;
        let skew = place.cylinder * of_a_cylinder + place.head * self.head_skew_ns;
        (skew + self.along_ns(place, place.sector)) % self.revolution_ns
    }

    /// From the beginning of the track to that of a sector.
    fn along_ns(&self, place: &Place, sector: u64) -> Nanos {
        self.revolution_ns * sector / place.sectors_per_track
    }

    /// How long a head that is on the track at `now` waits for the place to come around.
    pub(crate) fn rotation_ns(&self, now: Nanos, place: &Place) -> Nanos {
        let angle = now % self.revolution_ns;
        (self.passes_at_ns(place) + self.revolution_ns - angle) % self.revolution_ns
    }

    /// How long a run takes to pass, from the beginning of its first sector to the end of its last.
    pub(crate) fn transfer_ns(&self, sector: u64, sectors: u64) -> Nanos {
        let (mut at, mut left, mut time) = (sector, sectors, 0);
        while left > 0 {
            let place = self.place(at);
            let here = left.min(place.sectors_per_track - place.sector);
            let end = place.sector + here;
            time += self.along_ns(&place, end) - self.along_ns(&place, place.sector);
            (at, left) = (at + here, left - here);
            if left > 0 {
                time += self.skew_after_ns(&place);
            }
        }
        time
    }

    /// How many sectors of a run pass whole within `time_ns`, of `sectors_max`.
    pub(crate) fn sectors_within(&self, sector: u64, time_ns: Nanos, sectors_max: u64) -> u64 {
        let (mut at, mut left, mut time) = (sector, sectors_max, time_ns);
        while left > 0 {
            let place = self.place(at);
            let here = left.min(place.sectors_per_track - place.sector);
            let began = self.along_ns(&place, place.sector);
            let whole = self.along_ns(&place, place.sector + here) - began;
            if time < whole {
                let passes = |n: u64| self.along_ns(&place, place.sector + n) - began <= time;
                let guess = time * place.sectors_per_track / self.revolution_ns;
                let most = (guess + 1).min(here);
                return at - sector + if passes(most) { most } else { most.saturating_sub(1) };
            }
            (at, left) = (at + here, left - here);
            time = time.saturating_sub(whole + self.skew_after_ns(&place));
        }
        at - sector
    }

    fn skew_after_ns(&self, place: &Place) -> Nanos {
        let is_last = place.head + 1 == self.heads;
        if is_last { self.cylinder_skew_ns } else { self.head_skew_ns }
    }
}

/// The rates of the zones, from the outermost inwards, in even steps.
fn zone_rates(parameters: &Parameters) -> impl Iterator<Item = u64> {
    let (outer, inner) = (parameters.outer_bytes_per_s, parameters.inner_bytes_per_s);
    let steps = u64::from(parameters.zones.max(2) - 1);
    (0..=steps).map(move |zone| outer - (outer - inner) * zone / steps)
}

/// How many sectors a track must hold so that reading on, skews included, has the rate.
fn sectors_per_track(parameters: &Parameters, bytes_per_s: u64) -> u64 {
    let heads = u64::from(parameters.heads);
    let of_a_cylinder_ns = heads * parameters.revolution_ns
        + (heads - 1) * parameters.head_skew_ns
        + parameters.cylinder_skew_ns;
    let bytes = u128::from(bytes_per_s) * u128::from(of_a_cylinder_ns) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX) / heads / SECTOR_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::parameters::MS;
    use crate::random::Random;

    const GIB: u64 = (1 << 30) / SECTOR_BYTES;

    fn geometry() -> Geometry {
        Geometry::new(&Parameters::travelstar_7k320(), GIB)
    }

    #[test]
    fn sectors_follow_each_other_along_tracks_heads_and_cylinders() {
        let geometry = geometry();
        let mut before = geometry.place(0);
        assert_eq!((before.cylinder, before.head, before.sector), (0, 0, 0));
        for sector in 1..200_000 {
            let place = geometry.place(sector);
            let is_next = if place.sector > 0 {
                (place.cylinder, place.head) == (before.cylinder, before.head)
                    && place.sector == before.sector + 1
            } else if place.head > 0 {
                place.cylinder == before.cylinder && place.head == before.head + 1
            } else {
                place.cylinder == before.cylinder + 1 && before.head == 3
            };
            assert!(is_next, "{before:?}, then {place:?}");
            before = place;
        }
        let last = geometry.place(GIB - 1);
        assert!(last.cylinder < geometry.cylinders());
        let part = last.sectors_per_track as f64 / geometry.place(0).sectors_per_track as f64;
        assert!((part - 0.5).abs() < 0.01, "half as many sectors, inside: {part}");
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
    fn what_has_just_passed_comes_again_after_one_revolution() {
        let geometry = geometry();
        let mut random = Random(1);
        for _ in 0..1000 {
            let (place, now) = (geometry.place(random.below(GIB)), random.below(1 << 40));
            let wait = geometry.rotation_ns(now, &place);
            assert!(wait < geometry.revolution_ns);
            assert_eq!(geometry.rotation_ns(now + wait, &place), 0, "there it is");
            let again = geometry.rotation_ns(now + wait + 1, &place);
            assert_eq!(again, geometry.revolution_ns - 1, "just missed");
            assert_eq!(geometry.rotation_ns(now + geometry.revolution_ns, &place), wait);
        }
    }

    #[test]
    fn reading_on_over_the_end_of_a_track_waits_for_the_skew_alone() {
        let geometry = geometry();
        let per_track = geometry.place(0).sectors_per_track;
        for (track, skew) in [(1, geometry.head_skew_ns), (4, geometry.cylinder_skew_ns)] {
            let (last, next) = (track * per_track - 1, track * per_track);
            let start = geometry.rotation_ns(0, &geometry.place(last));
            let end = start + geometry.transfer_ns(last, 1);
            assert!(geometry.rotation_ns(end, &geometry.place(next)).abs_diff(skew) <= 1);
            let through = geometry.transfer_ns(last, 2) - geometry.transfer_ns(next, 1);
            assert_eq!(through, geometry.transfer_ns(last, 1) + skew);
        }
    }

    #[test]
    fn what_passes_within_a_time_is_what_takes_no_longer() {
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
