//! Draws the parts that all charts share: scales, axes, labels and the frame with its description.

use super::html::escaped;

/// The scale of an axis: converts a value to a position between two ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// The ends of the values, after the logarithm if the scale is logarithmic.
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    is_log: bool,
}

impl Scale {
    pub(super) fn linear(values: (f64, f64), ends: (f64, f64)) -> Self {
        let (from, to) = values;
        Self { from, to, start: ends.0, end: ends.1, is_log: false }
    }

    /// Returns a logarithmic scale; the values must be positive.
    pub(super) fn log(values: (f64, f64), ends: (f64, f64)) -> Self {
        let (from, to) = (values.0.ln(), values.1.ln());
        Self { from, to, start: ends.0, end: ends.1, is_log: true }
    }

    /// Returns the position of a value; values beyond the ends are at the ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.is_log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let span = self.to - self.from;
        let part = if span > 0.0 { ((value - self.from) / span).clamp(0.0, 1.0) } else { 0.5 };
        self.start + part * (self.end - self.start)
    }
}

/// Returns the round numbers (1, 2 and 5 times a power of ten) between two positive numbers; only
/// the powers of ten if there are more than `count_max` of them.
pub(super) fn ticks(least: f64, most: f64, count_max: usize) -> Vec<f64> {
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

/// The horizontal alignment of a label.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Returns a label with the class `class`.
pub(super) fn label(x: f64, y: f64, anchor: Anchor, class: &str, text: &str) -> String {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
        escaped(text)
    )
}

/// Returns a straight line with the class `class`.
pub(super) fn line(from: (f64, f64), to: (f64, f64), class: &str) -> String {
    format!(
        "<path class=\"{class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>\n",
        from.0, from.1, to.0, to.1
    )
}

/// Returns a line through all points with the class `class`.
pub(super) fn polyline(points: &[(f64, f64)], class: &str) -> String {
    let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    format!("<path class=\"{class}\" d=\"M{}\"/>\n", points.join("L"))
}

/// Returns a dot with the class `class`.
pub(super) fn dot(at: (f64, f64), radius: f64, class: &str) -> String {
    format!("<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"/>\n", at.0, at.1)
}

/// Returns a figure: a heading, the chart, and a caption. `description` says what the chart shows,
/// for readers who do not see it. `id` makes the names of the parts unique in the page.
pub(super) fn figure(
    id: &str,
    size: (f64, f64),
    title: &str,
    description: &str,
    marks: &str,
) -> String {
    let (title, description) = (escaped(title), escaped(description));
    format!(
        "<figure class=\"chart\" id=\"{id}\">\n<figcaption>{title}</figcaption>\n\
         <svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\n\
         <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n\
         {marks}</svg>\n<p class=\"hint\">{description}</p>\n</figure>\n",
        size.0, size.1
    )
}

#[cfg(test)]
mod tests {
    use super::super::html::tests::assert_well_formed;
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

    #[test]
    fn figures_are_described() {
        let marks = label(1.0, 2.0, Anchor::End, "tick", "a < b")
            + &line((0.0, 0.0), (1.0, 1.0), "rule")
            + &polyline(&[(0.0, 1.0), (2.0, 3.0)], "curve")
            + &dot((1.0, 1.0), 3.0, "dot");
        let figure = figure("id", (10.0, 20.0), "a & b", "It shows x.", &marks);
        assert_well_formed(&figure);
        assert!(figure.contains("a &lt; b") && figure.contains("<desc id=\"id-desc\">It shows x."));
    }
}
