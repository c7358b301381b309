//! Chooses the objects to overwrite. Performs no I/O.

use haul_testing::Random;

use crate::named::named;
use crate::small_files::objects::mix;

named! {
    /// The distribution of the overwrites over the objects.
    pub enum Pattern {
        /// All objects equally often.
        Uniform = "uniform",
        /// Some objects far more often than others: a Zipf distribution with exponent 0.99.
        Zipf = "zipf",
    }
}

/// A choice of objects by a pattern.
pub(super) enum Choice {
    Uniform(u64),
    Zipf(Zipf),
}

impl Choice {
    /// Returns a choice among `objects` objects, at least one.
    pub(super) fn new(pattern: Pattern, objects: u64) -> Self {
        match pattern {
            Pattern::Uniform => Self::Uniform(objects),
            Pattern::Zipf => Self::Zipf(Zipf::new(objects)),
        }
    }

    /// Draws an object.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform(objects) => random.below(*objects),
            // Objects that were stored one after the other are not equally popular.
            Self::Zipf(zipf) => mix(zipf.draw(random)) % zipf.objects,
        }
    }
}

/// Draws ranks by a Zipf distribution.
///
/// # Source
/// \[Gray94\]: the generator of skewed numbers, as YCSB uses it.
pub(super) struct Zipf {
    objects: u64,
    zeta: f64,
    eta: f64,
}

/// The exponent of the distribution.
const THETA: f64 = 0.99;

impl Zipf {
    fn new(objects: u64) -> Self {
        let zeta_of = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let zeta = zeta_of(objects);
        let two_of_all = 2.0 / objects as f64;
        let eta = (1.0 - two_of_all.powf(1.0 - THETA)) / (1.0 - zeta_of(2) / zeta);
        Self { objects, zeta, eta }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
    fn draw(&self, random: &mut Random) -> u64 {
        let unit = (random.number() >> 11) as f64 / (1_u64 << 53) as f64;
        let weight = unit * self.zeta;
        if weight < 1.0 {
            return 0;
        }
        if weight < 1.0 + 0.5_f64.powf(THETA) {
            return 1.min(self.objects - 1);
        }
        let part = (self.eta * unit - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        ((self.objects as f64 * part) as u64).min(self.objects - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_prefers_few_ranks_and_reaches_the_others() {
        let (zipf, mut random) = (Zipf::new(1000), Random(1));
        let mut counts = vec![0_u32; 1000];
        for _ in 0..100_000 {
            counts[usize::try_from(zipf.draw(&mut random)).unwrap()] += 1;
        }
        // The weight of rank 0 is 1/zeta(1000), about 0.13, and that of rank 1 half of it.
        assert!((12_000..15_000).contains(&counts[0]), "{}", counts[0]);
        assert!((5_500..8_500).contains(&counts[1]), "{}", counts[1]);
        assert!(counts.iter().filter(|count| **count > 0).count() > 900);
    }

    #[test]
    fn both_patterns_draw_existing_objects() {
        for pattern in Pattern::ALL {
            for objects in [1, 2, 3, 1000] {
                let (choice, mut random) = (Choice::new(pattern, objects), Random(1));
                assert!((0..1000).all(|_| choice.draw(&mut random) < objects), "{pattern}");
            }
        }
    }
}
