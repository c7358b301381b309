//! The least time one sweep of the arm can take. Pure.

use super::geometry::{Geometry, Place};
use super::parameters::Nanos;
use super::seek::SeekCurve;

/// What a sweep passes on one track: from its first sector to its last, and the longest stretch
/// between that need not be passed.
#[derive(Debug, Clone, Copy)]
struct Track {
    place: Place,
    end: u64,
    gap_max: u64,
}

impl Track {
    fn is_that_of(&self, place: &Place) -> bool {
        (self.place.cylinder, self.place.head) == (place.cylinder, place.head)
    }

    /// The turn of the platter that has all of it under the head, wherever it begins: a whole one
    /// without the longest stretch nobody asked for.
    fn turn_ns(&self, revolution_ns: Nanos) -> Nanos {
        let around = self.place.sectors_per_track - self.end + self.place.sector;
        let turned = self.place.sectors_per_track - self.gap_max.max(around);
        revolution_ns * turned / self.place.sectors_per_track
    }
}

/// The least time in which the arm can go over all of the runs (sector, sectors), given in ascending
/// order, once: it comes to each track that holds some of them by the shortest way from the one
/// before, finds the best place just under the head, and stays for as much of a turn as has all of
/// them. No arm is that lucky; none that goes from one end to the other is faster.
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
            let place = geometry.place(sector);
            let here = left.min(place.sectors_per_track - place.sector);
            let end = place.sector + here;
            match &mut track {
                Some(same) if same.is_that_of(&place) => {
                    same.gap_max = same.gap_max.max(place.sector.saturating_sub(same.end));
                    same.end = same.end.max(end);
                }
                other => {
                    if let Some(before) = other {
                        time_ns += before.turn_ns(revolution_ns);
                        time_ns += match before.place.cylinder.abs_diff(place.cylinder) {
                            0 => head_switch_ns,
                            cylinders => seek.time_ns(cylinders),
                        };
                    }
                    *other = Some(Track { place, end, gap_max: 0 });
                }
            }
            (sector, left) = (sector + here, left - here);
        }
    }
    time_ns + track.map_or(0, |last| last.turn_ns(revolution_ns))
}
