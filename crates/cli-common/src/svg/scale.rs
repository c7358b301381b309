//! Scales of axes, and the round numbers on them.

/// The scale of an axis: converts a value to a position between two ends.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// The ends of the values, after the logarithm if the scale is logarithmic.
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    is_log: bool,
}

impl Scale {
    /// Returns a linear scale from `values` to the positions `ends`.
    #[must_use]
    pub fn linear(values: (f64, f64), ends: (f64, f64)) -> Self {
        let (from, to) = values;
        Self { from, to, start: ends.0, end: ends.1, is_log: false }
    }

    /// Returns a logarithmic scale from `values` to the positions `ends`; the values must be positive.
    #[must_use]
    pub fn log(values: (f64, f64), ends: (f64, f64)) -> Self {
        let (from, to) = (values.0.ln(), values.1.ln());
        Self { from, to, start: ends.0, end: ends.1, is_log: true }
    }

    /// Returns the position of a value; values beyond the ends are at the ends.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.is_log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let span = self.to - self.from;
        let part = if span > 0.0 { ((value - self.from) / span).clamp(0.0, 1.0) } else { 0.5 };
        self.start + part * (self.end - self.start)
    }
}

/// Returns the round numbers (1, 2 and 5 times a power of ten) between two positive numbers; only
/// the powers of ten if there are more than `count_max` of them.
#[must_use]
pub fn ticks(least: f64, most: f64, count_max: usize) -> Vec<f64> {
    #[expect(clippy::cast_possible_truncation, reason = "logarithms are short")]
    let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let all = |steps: &[f64]| -> Vec<f64> {
        let powers = (first..=last).map(|power| 10_f64.powi(power));
        let numbers = powers.flat_map(|power| steps.iter().map(move |step| step * power));
        numbers.filter(|it| (least * 0.999..=most * 1.001).contains(it)).collect()
    };
    let fine = all(&[1.0, 2.0, 5.0]);
    if fine.len() > count_max { all(&[1.0]) } else { fine }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_keep_values_between_their_ends() {
        let linear = Scale::linear((0.0, 10.0), (100.0, 0.0));
        assert_eq!([0.0, 5.0, 10.0, 20.0].map(|it| linear.at(it)), [100.0, 50.0, 0.0, 0.0]);
        let log = Scale::log((0.1, 10.0), (0.0, 100.0));
        for (value, expected) in [(0.1, 0.0), (1.0, 50.0), (10.0, 100.0), (0.0, 0.0)] {
            assert!((log.at(value) - expected).abs() < 1e-9, "{value}");
        }
        assert!((Scale::log((1.0, 1.0), (0.0, 100.0)).at(1.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(ticks(0.5, 20.0, 6), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(ticks(0.5, 20.0, 5), [1.0, 10.0]);
        assert_eq!(ticks(0.001, 1000.0, 6).len(), 7);
    }
}
