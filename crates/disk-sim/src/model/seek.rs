//! How long the arm needs.

use crate::model::parameters::{Nanos, Parameters};

/// Time against distance: `a + b √x` with `x` the part of the stroke beyond the next track, but
/// never more than the full stroke takes; nothing where the arm need not move.
///
/// `a` is the published time to the next track, however few tracks there are. Over two places
/// chosen evenly the mean of `√x` is 8/15, so `b` follows from the published average.
///
/// # Source
/// \[Ruemmler94\] has the root for short distances and a straight line for long ones; a root alone,
/// cut at the full stroke, is within a tenth of the sheets here, and needs no number they lack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeekCurve {
    track_ns: f64,
    root_ns: f64,
    full_ns: f64,
    stroke: f64,
}

impl SeekCurve {
    /// The curve of a drive whose arm has `cylinders` places.
    pub(crate) fn new(parameters: &Parameters, cylinders: u64) -> Self {
        let ns = |time: Nanos| time as f64;
        let track_ns = ns(parameters.seek_track_ns);
        Self {
            track_ns,
            root_ns: (ns(parameters.seek_average_ns) - track_ns) * 15.0 / 8.0,
            full_ns: ns(parameters.seek_full_ns),
            stroke: (cylinders.max(3) - 2) as f64,
        }
    }

    /// The time to move by so many cylinders.
    #[expect(clippy::cast_possible_truncation, reason = "a seek takes milliseconds")]
    pub(crate) fn time_ns(&self, cylinders: u64) -> Nanos {
        if cylinders == 0 {
            return 0;
        }
        let part = (cylinders - 1) as f64 / self.stroke;
        (self.track_ns + self.root_ns * part.sqrt()).min(self.full_ns).round() as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_farther_seek_is_never_faster_and_none_is_slower_than_the_full_stroke() {
        for parameters in Parameters::all() {
            let curve = SeekCurve::new(&parameters, 100_000);
            assert_eq!(curve.time_ns(0), 0);
            let times: Vec<_> = (1..100_000).map(|distance| curve.time_ns(distance)).collect();
            assert!(times.is_sorted());
            assert_eq!(times[0], parameters.seek_track_ns);
            assert!(times.iter().all(|time| *time <= parameters.seek_full_ns));
        }
    }

    #[test]
    fn the_mean_over_all_pairs_is_the_published_average() {
        for parameters in Parameters::all() {
            let curve = SeekCurve::new(&parameters, 1000);
            // Of two places chosen evenly, a distance d is as frequent as there are such pairs.
            let pairs = |distance: u64| 2 * (1000 - distance);
            let sum: u64 = (1..1000).map(|d| pairs(d) * curve.time_ns(d)).sum();
            let mean = sum / (1000 * 999);
            let part = mean as f64 / parameters.seek_average_ns as f64;
            assert!((0.98..1.01).contains(&part), "{}: {mean} ns", parameters.name);
        }
    }
}
