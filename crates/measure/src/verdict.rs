//! Derives from measured reads the best queue depth, and whether a disk rotates.

/// The fraction of the best rate at which the rate of a queue depth counts as close to the best.
const NEAR_BEST: f64 = 0.9;
/// The minimum median latency of single random reads on a rotating disk, in microseconds.
const HEADS_US_MIN: f64 = 1000.0;
/// The maximum factor by which a deep queue raises the read rate of a rotating disk.
const HEADS_GAIN_MAX: f64 = 4.0;

/// Returns the smallest queue depth whose rate is at least 90 % of the best, given pairs of depth
/// and rate; a greater depth mainly adds latency. Returns `None` if there are no pairs.
#[must_use]
pub fn knee(rates: &[(usize, f64)]) -> Option<usize> {
    let best = rates.iter().map(|(_, rate)| *rate).max_by(f64::total_cmp)?;
    let good = rates.iter().filter(|(_, rate)| *rate >= best * NEAR_BEST);
    good.map(|(depth, _)| *depth).min()
}

/// The verdict on a device's report that it rotates (or does not).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// There is no verdict: the device reports nothing, or no reads were measured.
    Unknown,
    /// The measured reads do not contradict the report.
    Believable,
    /// The device reports itself as rotational, but is not: single reads are fast, and a deep queue
    /// is far faster.
    Denied,
}

/// Judges a device's report `claim`, which is `true` if the device reports itself as rotational.
/// `known` is the median latency of single random reads in microseconds, and the factor by which a
/// deep queue raises their rate. Either is `None` if unknown.
#[must_use]
pub fn rotation(claim: Option<bool>, known: Option<(f64, f64)>) -> Rotation {
    match (claim, known) {
        (Some(true), Some((median_us, gain)))
            if median_us < HEADS_US_MIN && gain > HEADS_GAIN_MAX =>
        {
            Rotation::Denied
        }
        (Some(_), Some(_)) => Rotation::Believable,
        _ => Rotation::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knee_is_the_smallest_depth_close_to_the_best() {
        for (rates, expected) in [
            (&[][..], None),
            (&[(1, 100.0)], Some(1)),
            (&[(1, 100.0), (2, 109.0), (4, 111.0)], Some(1)),
            (&[(1, 100.0), (2, 190.0), (4, 350.0), (8, 390.0), (16, 400.0)], Some(8)),
            (&[(1, 100.0), (8, 400.0), (16, 300.0), (32, 200.0)], Some(8)),
            (&[(32, 400.0), (8, 399.0)], Some(8)),
            (&[(1, 89.0), (2, 100.0)], Some(2)),
            (&[(1, 90.0), (2, 100.0)], Some(1)),
        ] {
            assert_eq!(knee(rates), expected, "{rates:?}");
        }
    }

    #[test]
    fn only_fast_parallel_reads_contradict_rotation() {
        use Rotation::{Believable, Denied, Unknown};
        for (claim, known, expected) in [
            (Some(true), Some((200.0, 6.0)), Denied),
            (Some(true), Some((999.0, 4.1)), Denied),
            (Some(true), Some((200.0, 4.0)), Believable),
            (Some(true), Some((8000.0, 2.0)), Believable),
            (Some(true), Some((1000.0, 9.0)), Believable),
            (Some(false), Some((200.0, 6.0)), Believable),
            (Some(true), None, Unknown),
            (None, Some((200.0, 6.0)), Unknown),
        ] {
            assert_eq!(rotation(claim, known), expected, "{claim:?} {known:?}");
        }
    }
}
