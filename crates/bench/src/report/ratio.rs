//! Computes a ratio of two methods from their rounds, with an interval, and judges whether it is
//! more than noise. Performs no I/O.

use std::collections::BTreeMap;
use std::fmt;

use haul_measure::Spread;
use serde_json::{Value as Json, json};

use crate::named::named;

/// The smallest probability with which the interval of a median covers the true median. With fewer
/// than five rounds, even the interval from the smallest to the largest value covers it less often.
const COVERAGE_MIN: f64 = 0.9;

/// The figures of one method, by the number of the round.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// The name of the method.
    pub name: String,
    /// The figure of each round.
    pub rounds: BTreeMap<usize, f64>,
}

impl Samples {
    /// Returns the figures of a method; the first one belongs to round 0.
    #[must_use]
    pub fn new(name: impl Into<String>, rounds: impl IntoIterator<Item = f64>) -> Self {
        Self { name: name.into(), rounds: rounds.into_iter().enumerate().collect() }
    }

    /// Returns the median factor, at least 1, between two consecutive rounds: the method compared
    /// with itself. `None` with fewer than two positive rounds.
    fn self_factor(&self) -> Option<f64> {
        let rounds: Vec<_> = self.rounds.values().copied().filter(|it| *it > 0.0).collect();
        let factors: Vec<_> = rounds.windows(2).map(|pair| factor(pair[1] / pair[0])).collect();
        Spread::of(&factors).map(|spread| spread.median)
    }

    fn json(&self) -> Json {
        json!({ "name": self.name, "rounds": self.rounds.values().collect::<Vec<_>>() })
    }
}

named! {
    /// The judgement on a ratio.
    pub enum Verdict {
        /// The two methods differ by more than noise.
        Different = "different",
        /// The interval contains 1, or the ratio is not farther from 1 than the rounds of one method
        /// are from each other.
        Noise = "noise",
        /// There are fewer than five rounds, too few for an interval.
        TooFewRounds = "too few rounds",
        /// The number is no ratio of two methods, such as a number of writes per record: its
        /// distance from 1 has no meaning.
        Amount = "amount",
    }
}

/// A ratio of the figures of two methods, or an amount.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// The median of the ratios of the rounds, or of the amounts.
    pub value: f64,
    /// The smallest and the largest value that the median may have; `None` if there are too few
    /// rounds.
    pub interval: Option<(f64, f64)>,
    /// The factor, at least 1, by which the rounds of the same method differ: the larger one of
    /// the two methods. `None` for an amount, and for a single round.
    pub self_factor: Option<f64>,
    /// The judgement on the ratio.
    pub verdict: Verdict,
    /// The figures from which the ratio was computed: the dividend, then the divisor if any.
    pub samples: Vec<Samples>,
}

impl Ratio {
    /// Returns the ratio of `a` to `b`: the median of the ratios of those rounds that both have.
    /// Pairing the figures of a round cancels the drift of the machine between rounds. Returns
    /// `None` if there is no such round, or a ratio is not finite.
    #[must_use]
    pub fn of(mut a: Samples, mut b: Samples) -> Option<Self> {
        a.rounds.retain(|number, _| b.rounds.contains_key(number));
        b.rounds.retain(|number, _| a.rounds.contains_key(number));
        let ratios: Vec<_> = a.rounds.values().zip(b.rounds.values()).map(|(a, b)| a / b).collect();
        let value = median(&ratios)?;
        let interval = median_interval(&ratios);
        let self_factor = a.self_factor().into_iter().chain(b.self_factor()).reduce(f64::max);
        let verdict = match interval {
            None => Verdict::TooFewRounds,
            Some((low, high)) if low <= 1.0 && 1.0 <= high => Verdict::Noise,
            Some(_) if self_factor.is_some_and(|it| factor(value) <= it) => Verdict::Noise,
            Some(_) => Verdict::Different,
        };
        Some(Self { value, interval, self_factor, verdict, samples: vec![a, b] })
    }

    /// Returns the median of the rounds of `samples` as an amount; `None` without rounds.
    #[must_use]
    pub fn amount(samples: Samples) -> Option<Self> {
        let numbers: Vec<_> = samples.rounds.values().copied().collect();
        let (value, interval) = (median(&numbers)?, median_interval(&numbers));
        let verdict = Verdict::Amount;
        Some(Self { value, interval, self_factor: None, verdict, samples: vec![samples] })
    }

    /// Returns the number of rounds.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.samples.first().map_or(0, |samples| samples.rounds.len())
    }

    /// Returns the JSON object with the value, the interval (`low` and `high`), the verdict, and
    /// the figures of each round.
    pub(crate) fn json(&self) -> Json {
        let (low, high) = self.interval.unzip();
        json!({
            "value": self.value, "low": low, "high": high, "self_factor": self.self_factor,
            "verdict": self.verdict.name(),
            "samples": self.samples.iter().map(Samples::json).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Ratio {
    /// Writes the value and the interval, such as "3.10 (2.91 to 3.35)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_interval(self.value, self.interval))
    }
}

/// Formats a value with its interval, such as "3.10 (2.91 to 3.35)".
pub(crate) fn with_interval(value: f64, interval: Option<(f64, f64)>) -> String {
    let value = significant(value);
    match interval {
        Some((low, high)) => format!("{value} ({} to {})", significant(low), significant(high)),
        None => value,
    }
}

/// Formats a number with three significant digits, and at most two after the point if it is 1 or
/// more.
pub(crate) fn significant(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return format!("{number:.2}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most 309")]
    let magnitude = number.abs().log10().floor() as i32;
    format!("{number:.*}", usize::try_from(2 - magnitude.min(2)).unwrap_or(0))
}

/// Returns the distance of a ratio from 1 as a factor of at least 1.
fn factor(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio)
}

fn median(numbers: &[f64]) -> Option<f64> {
    let is_finite = numbers.iter().all(|number| number.is_finite());
    Spread::of(numbers).filter(|_| is_finite).map(|spread| spread.median)
}

/// Returns the order statistics \[David03\] between which the median of the distribution of `numbers` lies with
/// a probability of at least [`COVERAGE_MIN`], for any distribution; `None` if there are too few
/// numbers.
fn median_interval(numbers: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let dropped = dropped(sorted.len())?;
    Some((sorted[dropped], sorted[sorted.len() - 1 - dropped]))
}

/// Returns how many of `count` sorted numbers may be dropped at each end. The median is outside of
/// the rest if at most that many numbers are on one side of it, which has a binomial probability.
fn dropped(count: usize) -> Option<usize> {
    let (mut probability, mut outside, mut dropped) = (0.5_f64.powf(count as f64), 0.0, None);
    for at_most in 0..count / 2 {
        outside += 2.0 * probability;
        if 1.0 - outside < COVERAGE_MIN {
            break;
        }
        dropped = Some(at_most);
        probability *= (count - at_most) as f64 / (at_most + 1) as f64;
    }
    dropped
}

#[cfg(test)]
mod tests {
    use haul_testing::Random;

    use super::*;

    fn ratio(a: &[f64], b: &[f64]) -> Ratio {
        let samples = |name, rounds: &[f64]| Samples::new(name, rounds.iter().copied());
        Ratio::of(samples("a", a), samples("b", b)).unwrap()
    }

    #[test]
    fn interval_covers_the_median_with_nine_tenths() {
        for (count, expected) in
            [(0, None), (4, None), (5, Some(0)), (7, Some(0)), (8, Some(1)), (11, Some(2))]
        {
            assert_eq!(dropped(count), expected, "{count}");
        }
        assert_eq!(dropped(1000), Some(473));
    }

    #[test]
    fn drift_of_the_machine_cancels_out() {
        let found = ratio(&[2.0, 4.0, 8.0, 16.0, 32.0], &[1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!((found.value, found.interval), (2.0, Some((2.0, 2.0))));
    }

    #[test]
    fn equal_methods_on_a_busy_machine_are_noise() {
        // Two equal methods whose records waited for another program in some rounds.
        let found =
            ratio(&[9150.0, 200.0, 9300.0, 9152.0, 9200.0], &[200.0, 210.0, 200.0, 200.0, 9000.0]);
        assert_eq!((found.value, found.verdict), (45.75, Verdict::Noise), "1 is in the interval");
        let found =
            ratio(&[100.0, 1000.0, 100.0, 1100.0, 150.0], &[50.0, 150.0, 90.0, 100.0, 20.0]);
        assert!(found.interval.unwrap().0 > 1.0 && found.self_factor.unwrap() > found.value);
        assert_eq!(found.verdict, Verdict::Noise, "the rounds of a method differ more");
        let found = ratio(&[3.0, 3.1, 3.2, 3.0, 3.1], &[1.0, 1.0, 1.1, 1.0, 1.0]);
        assert_eq!(found.verdict, Verdict::Different);
        assert_eq!(ratio(&[3.0; 4], &[1.0; 4]).verdict, Verdict::TooFewRounds);
        assert_eq!(ratio(&[3.0; 5], &[1.0; 5]).verdict, Verdict::Different, "deterministic");
        assert_eq!(ratio(&[3.0; 5], &[3.0; 5]).verdict, Verdict::Noise);
    }

    #[test]
    fn few_ratios_of_equal_methods_count_as_different() {
        let mut random = Random(7);
        let mut uniform = move || random.below(1 << 30) as f64 / f64::from(1 << 30);
        // Times with a spread of a tenth; one in five waited up to ten times as long.
        let mut time = || {
            let wait = if uniform() < 0.2 { 9.0 * uniform() } else { 0.0 };
            1.0 + 0.1 * uniform() + wait
        };
        let mut rounds = || (0..5).map(|_| time()).collect::<Vec<_>>();
        let verdicts = (0..2000).map(|_| ratio(&rounds(), &rounds()).verdict);
        let different = verdicts.filter(|verdict| *verdict == Verdict::Different).count();
        assert!((1..100).contains(&different), "{different} of 2000");
    }

    #[test]
    fn only_rounds_of_both_methods_count() {
        let mut a = Samples::new("a", [1.0, 2.0, 3.0]);
        a.rounds.remove(&1);
        let found = Ratio::of(a, Samples::new("b", [1.0, 100.0, 1.0])).unwrap();
        assert_eq!((found.value, found.rounds()), (2.0, 2));
        assert_eq!(Ratio::of(Samples::new("a", [1.0]), Samples::new("b", [])), None);
        assert_eq!(Ratio::of(Samples::new("a", [1.0]), Samples::new("b", [0.0])), None);
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        let numbers = [45.76, 1.0, 0.000_596, 1234.5, 0.0].map(significant);
        assert_eq!(numbers, ["45.8", "1.00", "0.000596", "1234", "0.00"]);
        let found = ratio(&[2.0, 2.0, 2.0, 2.0, 4.0], &[1.0; 5]);
        assert_eq!(found.to_string(), "2.00 (2.00 to 4.00)");
    }
}
