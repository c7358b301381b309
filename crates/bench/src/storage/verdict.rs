//! What figures say about a disk. Pure.

/// A depth is good when its rate is within this part of the best.
const NEAR_BEST: f64 = 0.9;
/// Heads answer a random read in milliseconds, ...
const HEADS_US_MIN: f64 = 1000.0;
/// ... and sorting many requests wins them no more than this.
const HEADS_GAIN_MAX: f64 = 4.0;

/// The smallest depth whose rate is nearly the best of these (depth, rate): more only makes each
/// request wait longer. `None` of none.
#[must_use]
pub fn knee(rates: &[(usize, f64)]) -> Option<usize> {
    let best = rates.iter().map(|(_, rate)| *rate).max_by(f64::total_cmp)?;
    let good = rates.iter().filter(|(_, rate)| *rate >= best * NEAR_BEST);
    good.map(|(depth, _)| *depth).min()
}

/// What reads say of the claim that a disk rotates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// Nothing: there is no claim, or no reads.
    Unknown,
    /// That it may be true.
    Believable,
    /// That it claims to rotate and does not: single reads are fast, and many at a time far
    /// faster.
    Denied,
}

/// Judges the claim by the median time of a random read alone, in microseconds, and by how many
/// times more reads are done when many are under way.
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
    fn the_knee_is_the_smallest_depth_that_is_nearly_the_best() {
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
    fn only_fast_and_parallel_reads_deny_that_a_disk_rotates() {
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
