//! Draws ratios with their intervals on a logarithmic axis.

use super::super::claim::Judgement;
use super::svg::{Anchor, Scale, dot, figure, label, line, ticks};
use crate::report::{Ratio, Verdict, significant};

const WIDTH: f64 = 800.0;
const ROW: f64 = 24.0;
const TOP: f64 = 34.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 690.0;

/// The common axis of all ratios of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    least: f64,
    most: f64,
}

impl Axis {
    /// Returns an axis for the ratios of all judgements, with room for 1.
    pub(super) fn of(judgements: &[Judgement]) -> Self {
        let ratios = judgements.iter().filter_map(ratio_of);
        let intervals = ratios.map(|it| it.interval.unwrap_or((it.value, it.value)));
        let texts = judgements.iter().filter(|it| ratio_of(it).is_some());
        let texts = texts.filter_map(|it| it.claim.figure_value).map(|it| (it, it));
        let all: Vec<_> = intervals.chain(texts).collect();
        let least = all.iter().map(|it| it.0).filter(|it| *it > 0.0).fold(0.5, f64::min);
        let most = all.iter().map(|it| it.1).filter(|it| it.is_finite()).fold(2.0, f64::max);
        Self { least: least.max(0.001) / 1.1, most: most.min(100_000.0) * 1.1 }
    }

    fn scale(self, ends: (f64, f64)) -> Scale {
        Scale::log((self.least, self.most), ends)
    }
}

/// Returns the ratio of a judgement; `None` for an amount, which has no place on the axis.
fn ratio_of(judgement: &Judgement) -> Option<&Ratio> {
    judgement.ratio.as_ref().filter(|it| it.verdict != Verdict::Amount && it.value > 0.0)
}

/// Draws the interval and the median of a ratio, and the figure of the text if there is one.
fn interval(judgement: &Judgement, scale: &Scale, y: f64) -> String {
    let Some(ratio) = ratio_of(judgement) else { return String::new() };
    let class = match ratio.verdict {
        Verdict::Different => judgement.answer.class(),
        _ => "faint",
    };
    let (low, high) = ratio.interval.unwrap_or((ratio.value, ratio.value));
    let mut marks = line((scale.at(low), y), (scale.at(high), y), &format!("span {class}"));
    if let Some(text) = judgement.claim.figure_value {
        let x = scale.at(text);
        marks += &line((x, y - 7.0), (x, y + 7.0), "text-mark");
    }
    marks + &dot((scale.at(ratio.value), y), 4.5, &format!("median {class}"))
}

/// Returns the chart of all ratios, one row for each.
pub(super) fn ratio_chart(judgements: &[Judgement], axis: Axis) -> String {
    let rows: Vec<_> = judgements.iter().filter(|it| ratio_of(it).is_some()).collect();
    if rows.is_empty() {
        return String::new();
    }
    let height = TOP + ROW * rows.len() as f64 + 26.0;
    let scale = axis.scale((LEFT, RIGHT));
    let mut marks = String::new();
    for tick in ticks(axis.least, axis.most, 10) {
        let (x, bottom) = (scale.at(tick), height - 22.0);
        let is_one = (tick - 1.0).abs() < 1e-9;
        marks += &line((x, TOP - 12.0), (x, bottom), if is_one { "rule one" } else { "rule" });
        marks += &label(x, height - 6.0, Anchor::Middle, "tick", &short(tick));
    }
    marks += &label(scale.at(1.0) + 6.0, 12.0, Anchor::Start, "tick", "faster →");
    marks += &label(scale.at(1.0) - 6.0, 12.0, Anchor::End, "tick", "← slower, less");
    for (number, judgement) in rows.into_iter().enumerate() {
        let y = TOP + ROW * (number as f64 + 0.5);
        marks += &label(LEFT - 14.0, y + 4.0, Anchor::End, "name", judgement.claim.label);
        marks += &interval(judgement, &scale, y);
        if let Some(ratio) = ratio_of(judgement) {
            let noise = if ratio.verdict == Verdict::Noise { " noise" } else { "" };
            let text = format!("{}{noise}", significant(ratio.value));
            marks += &label(RIGHT + 8.0, y + 4.0, Anchor::Start, "value", &text);
        }
    }
    figure(
        "ratios",
        (WIDTH, height),
        "All ratios with their intervals",
        "A dot is the median of the ratios of the rounds, a bar its interval of at least 90 %, on a \
         logarithmic axis; 1 is no difference. Hollow marks are noise. A thin stroke is the figure \
         of the text.",
        &marks,
    )
}

/// Returns the interval of one ratio on the common axis, for a card; empty for an amount.
pub(super) fn strip(judgement: &Judgement, axis: Axis) -> String {
    let Some(ratio) = ratio_of(judgement) else { return String::new() };
    let scale = axis.scale((6.0, 314.0));
    let one = scale.at(1.0);
    let marks = line((6.0, 12.0), (314.0, 12.0), "rule")
        + &line((one, 4.0), (one, 20.0), "rule one")
        + &label(one, 33.0, Anchor::Middle, "tick", "1")
        + &interval(judgement, &scale, 12.0);
    format!(
        "<svg class=\"strip\" viewBox=\"0 0 320 36\" role=\"img\">\n<title>{ratio}, on a logarithmic \
         axis from {} to {}</title>\n<desc>The stroke in the middle is 1: no difference.</desc>\n\
         {marks}</svg>\n",
        significant(axis.least),
        significant(axis.most),
    )
}

/// Formats a tick without needless zeros.
fn short(tick: f64) -> String {
    let text = format!("{tick:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use haul_testing::assert_well_formed;

    use super::super::tests::judgements;
    use super::*;

    #[test]
    fn chart_has_a_row_for_each_ratio_and_none_for_amounts() {
        let judgements = judgements();
        let axis = Axis::of(&judgements);
        assert!(axis.least < 0.5 && axis.most > 4.2, "{axis:?}");
        let chart = ratio_chart(&judgements, axis);
        assert_well_formed(&chart);
        let ratios = judgements.iter().filter(|it| ratio_of(it).is_some()).count();
        assert_eq!(chart.matches("class=\"median").count(), ratios);
        let strips: String = judgements.iter().map(|it| strip(it, axis)).collect();
        assert_well_formed(&strips);
        assert_eq!(strips.matches("<svg").count(), ratios);
        assert_eq!(ratio_chart(&[], axis), "");
    }

    #[test]
    fn ticks_have_no_needless_zeros() {
        assert_eq!([0.5, 1.0, 10.0, 0.05].map(short), ["0.5", "1", "10", "0.05"]);
    }
}
