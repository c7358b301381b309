//! Computes a seek's time from the number of cylinders that the arm crosses.

use crate::model::parameters::{Nanos, Parameters};

/// The seek time as a function of the distance: `a + b √x`, at most the full-stroke time. `x` is
/// the distance beyond the next track, as a fraction of the stroke.
///
/// `a` is the track-to-track time, published or assumed, which does not depend on the number of
/// tracks. The mean of `√x` over pairs of uniformly random locations is 8/15, so `b` follows from
/// the published average.
///
/// # Source
/// \[Ruemmler94\] uses a square root for short distances and a line for long ones. A square root
/// with the full-stroke time as its maximum differs by at most a tenth from the data sheets used,
/// and needs no unpublished figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeekCurve {
    track_ns: f64,
    root_ns: f64,
    full_ns: f64,
    stroke: f64,
}

impl SeekCurve {
    /// Creates the curve for a drive with `cylinders` cylinders.
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

    /// Returns the time for a seek over `cylinders` cylinders.
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
    fn seek_time_grows_with_distance_up_to_the_full_stroke() {
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
    fn mean_seek_time_is_the_published_average() {
        for parameters in Parameters::all() {
            let curve = SeekCurve::new(&parameters, 1000);
            // A distance's frequency is the number of location pairs at this distance.
            let pairs = |distance: u64| 2 * (1000 - distance);
            let sum: u64 = (1..1000).map(|d| pairs(d) * curve.time_ns(d)).sum();
            let mean = sum / (1000 * 999);
            let part = mean as f64 / parameters.seek_average_ns as f64;
            assert!((0.98..1.01).contains(&part), "{}: {mean} ns", parameters.name);
        }
    }
}
