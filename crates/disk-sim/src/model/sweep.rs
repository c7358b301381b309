//! Computes a lower bound for the time in which one sweep of the arm, in ascending sector order,
//! accesses several runs of sectors.

use super::geometry::{Geometry, Location};
use super::parameters::Nanos;
use super::seek::SeekCurve;

/// A sweep's accesses on one track: the location of their first sector, the index in the track at
/// which they end, and the longest gap between two of them, in sectors.
#[derive(Debug, Clone, Copy)]
struct Track {
    location: Location,
    end: u64,
    gap_max: u64,
}

impl Track {
    fn contains(&self, location: &Location) -> bool {
        (self.location.cylinder, self.location.head) == (location.cylinder, location.head)
    }

    /// Returns the shortest time in which all accesses on the track can pass the head: a revolution
    /// minus the longest gap.
    fn rotation_ns(&self, revolution_ns: Nanos) -> Nanos {
        let around = self.location.sectors_per_track - self.end + self.location.sector;
        let passed = self.location.sectors_per_track - self.gap_max.max(around);
        revolution_ns * passed / self.location.sectors_per_track
    }
}

/// Returns a lower bound for the time in which the arm accesses all runs (sector, sectors) in one
/// sweep; see [`super::Drive::sweep_ns`].
pub(super) fn sweep_ns(
    geometry: &Geometry,
    seek: &SeekCurve,
    revolution_ns: Nanos,
    head_switch_ns: Nanos,
    runs: impl IntoIterator<Item = (u64, u64)>,
) -> Nanos {
    let mut time_ns = 0;
    let mut track: Option<Track> = None;
    for (mut sector, mut left) in runs {
        while left > 0 {
            let location = geometry.locate(sector);
            let here = left.min(location.sectors_per_track - location.sector);
            let end = location.sector + here;
            match &mut track {
                Some(same) if same.contains(&location) => {
                    same.gap_max = same.gap_max.max(location.sector.saturating_sub(same.end));
                    same.end = same.end.max(end);
                }
                other => {
                    if let Some(before) = other {
                        time_ns += before.rotation_ns(revolution_ns);
                        time_ns += match before.location.cylinder.abs_diff(location.cylinder) {
                            0 => head_switch_ns,
                            cylinders => seek.time_ns(cylinders),
                        };
                    }
                    *other = Some(Track { location, end, gap_max: 0 });
                }
            }
            (sector, left) = (sector + here, left - here);
        }
    }
    time_ns + track.map_or(0, |last| last.rotation_ns(revolution_ns))
}
