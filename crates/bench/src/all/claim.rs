//! Judges the claims of five published texts on disks by the ratios of a run. Performs no I/O.

use super::part::Part;
use crate::report::{Ratio, Report, Verdict, significant};

/// The subject of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    Writing,
    Tracing,
    PageCache,
    RandomAccess,
    SmallFiles,
}

impl Text {
    pub(crate) const ALL: [Self; 5] =
        [Self::Writing, Self::Tracing, Self::PageCache, Self::RandomAccess, Self::SmallFiles];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Writing => "Fast durable writes",
            Self::Tracing => "Durable writes in the block trace",
            Self::PageCache => "Page cache and direct I/O",
            Self::RandomAccess => "Random access",
            Self::SmallFiles => "Many small files",
        }
    }
}

/// A claim of a text that a ratio of a benchmark can show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) text: Text,
    /// The claim in one sentence.
    pub(crate) sentence: &'static str,
    /// The name of the ratio in a chart.
    pub(crate) label: &'static str,
    /// The figure of the text, with its unit.
    pub(crate) figure: &'static str,
    /// The figure of the text as a ratio, if it has one.
    pub(crate) figure_value: Option<f64>,
    /// The part and the name of the ratio.
    pub(crate) part: Part,
    pub(crate) ratio: &'static str,
    /// The unit of the ratio, such as "times as fast".
    pub(crate) unit: &'static str,
    /// The values for which the claim holds: from the first to the second.
    pub(crate) holds: (f64, f64),
    /// The consequence on this disk if the claim holds, and if it does not.
    pub(crate) if_yes: &'static str,
    pub(crate) if_no: &'static str,
}

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    Undecided,
}

impl Answer {
    pub(crate) const ALL: [Self; 3] = [Self::Yes, Self::No, Self::Undecided];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Undecided => "undecided",
        }
    }
}

/// A claim with its answer on this disk.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    pub(crate) claim: &'static Claim,
    pub(crate) ratio: Option<Ratio>,
    pub(crate) answer: Answer,
    /// The consequence on this disk, or the reason why there is no answer.
    pub(crate) meaning: String,
}

impl Judgement {
    /// Returns the figure of this run with its interval and unit; "not measured" if it is missing.
    pub(crate) fn figure(&self) -> String {
        let text = |ratio: &Ratio| format!("{ratio} {}", self.claim.unit);
        self.ratio.as_ref().map_or("not measured".to_owned(), text)
    }
}

/// Judges all `claims` by the ratios of `reports`. `why` returns the reason why a part is missing.
pub(crate) fn judge(
    claims: impl Iterator<Item = &'static Claim>,
    reports: &[Report],
    why: impl Fn(Part) -> Option<String>,
) -> Vec<Judgement> {
    claims
        .map(|claim| {
            let report = reports.iter().find(|report| report.bench == claim.part.name());
            match report.and_then(|report| report.ratios.get(claim.ratio)) {
                Some(ratio) => judgement(claim, ratio),
                None => {
                    let missing = || "the benchmark has no such result on this disk".to_owned();
                    let meaning = format!(
                        "Not measured: {}.",
                        why(claim.part).unwrap_or_else(missing).trim_end_matches('.')
                    );
                    Judgement { claim, ratio: None, answer: Answer::Undecided, meaning }
                }
            }
        })
        .collect()
}

fn judgement(claim: &'static Claim, ratio: &Ratio) -> Judgement {
    let (answer, meaning) = match answer(claim.holds, ratio) {
        Answer::Yes => (Answer::Yes, claim.if_yes.to_owned()),
        Answer::No => (Answer::No, claim.if_no.to_owned()),
        Answer::Undecided => (Answer::Undecided, reason(claim.holds, ratio)),
    };
    Judgement { claim, ratio: Some(ratio.clone()), answer, meaning }
}

/// Returns "yes" if the whole interval is in the range `holds`, "no" if no part of it is, and
/// otherwise "undecided". A ratio that is noise may be any number near 1.
fn answer(holds: (f64, f64), ratio: &Ratio) -> Answer {
    let Some((mut low, mut high)) = ratio.interval else { return Answer::Undecided };
    if ratio.verdict == Verdict::Noise {
        let factor = ratio.self_factor.unwrap_or(1.0);
        (low, high) = (low.min(1.0 / factor), high.max(factor));
    }
    if holds.0 <= low && high <= holds.1 {
        Answer::Yes
    } else if high < holds.0 || holds.1 < low {
        Answer::No
    } else {
        Answer::Undecided
    }
}

fn reason(holds: (f64, f64), ratio: &Ratio) -> String {
    let Some((low, high)) = ratio.interval else {
        return match ratio.verdict {
            Verdict::Amount => "The rounds differ too much for an interval.".to_owned(),
            _ => format!("An interval needs five rounds, and {} were measured.", ratio.rounds()),
        };
    };
    let limit = if low <= holds.0 && holds.0 <= high { holds.0 } else { holds.1 };
    let limit = significant(limit);
    match ratio.verdict {
        Verdict::Noise => format!(
            "The result is noise: rounds of the same method differ by a factor of {}. Repeat on an \
             idle machine, or with more rounds.",
            significant(ratio.self_factor.unwrap_or(1.0))
        ),
        _ => format!(
            "The interval from {} to {} includes {limit}, the limit of the claim. Repeat with more \
             rounds.",
            significant(low),
            significant(high)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::claims;
    use super::*;
    use crate::host::Host;
    use crate::report::Samples;

    fn ratio(rounds: &[f64]) -> Ratio {
        let ones = rounds.iter().map(|_| 1.0);
        Ratio::of(Samples::new("a", rounds.iter().copied()), Samples::new("b", ones)).unwrap()
    }

    #[test]
    fn whole_interval_decides() {
        const FASTER: (f64, f64) = (1.1, f64::INFINITY);
        for (rounds, holds, expected) in [
            (&[3.0, 3.1, 3.2, 3.0, 3.1][..], FASTER, Answer::Yes),
            (&[0.5, 0.51, 0.5, 0.52, 0.5], FASTER, Answer::No),
            (&[1.0, 1.01, 1.0, 1.02, 1.0], FASTER, Answer::No),
            (&[1.0, 1.3, 1.2, 1.02, 1.2], FASTER, Answer::Undecided),
            (&[9.0, 0.2, 7.0, 0.1, 8.0], FASTER, Answer::Undecided),
            (&[3.0, 3.1, 3.2, 3.0], FASTER, Answer::Undecided),
            (&[1.0, 1.01, 1.0, 1.02, 1.0], (0.8, 1.25), Answer::Yes),
            (&[3.0, 3.1, 3.2, 3.0, 3.1], (0.8, 1.25), Answer::No),
            // All rounds are above the limit, but they differ more than the ratio from 1.
            (&[1.2, 3.0, 1.2, 3.0, 1.2], FASTER, Answer::Undecided),
        ] {
            assert_eq!(answer(holds, &ratio(rounds)), expected, "{rounds:?}");
        }
    }

    #[test]
    fn missing_ratios_have_a_reason() {
        let claim = claims().next().unwrap();
        let mut report = Report::new(claim.part.name(), Host::default(), [], "");
        let why = |_| Some("the disk is full".to_owned());
        let found = judge(claims(), &[report.clone()], why);
        assert_eq!(found.len(), claims().count());
        assert!(found.iter().all(|it| it.answer == Answer::Undecided));
        assert_eq!(found[0].meaning, "Not measured: the disk is full.");
        assert_eq!(found[0].figure(), "not measured");
        report.ratio(claim.ratio, Some(ratio(&[3.0, 3.0, 3.0, 3.0, 3.0])));
        let found = judge(claims(), &[report], why);
        assert_eq!((found[0].answer, &*found[0].meaning), (Answer::Yes, claim.if_yes));
        assert!(
            found[0].figure().starts_with("3.00 (3.00 to 3.00) times"),
            "{}",
            found[0].figure()
        );
    }
}
