//! Judges the claims of five published texts on disks by the ratios of a run. Performs no I/O.

use std::sync::LazyLock;

use serde_json::Value as Json;

use super::part::Part;
use crate::named::named;
use crate::report::{Ratio, Report, Verdict, significant};

/// A claim of a text that a ratio of a benchmark can show.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    /// The title of the text.
    pub(crate) text: String,
    /// The claim in one sentence.
    pub(crate) sentence: String,
    /// The figure of the text, with its unit.
    pub(crate) figure: String,
    pub(crate) part: Part,
    pub(crate) ratio: String,
    pub(crate) unit: String,
    /// The claim holds if the ratio is in this range.
    pub(crate) holds: (f64, f64),
    if_yes: String,
    if_no: String,
}

/// Returns the claims of all texts, in the order of the texts.
pub(crate) fn claims() -> &'static [Claim] {
    static CLAIMS: LazyLock<Vec<Claim>> = LazyLock::new(|| {
        let claims: Vec<Json> =
            serde_json::from_str(include_str!("claims.json")).expect("tests read the claims");
        claims.iter().map(Claim::parse).collect()
    });
    &CLAIMS
}

impl Claim {
    fn parse(claim: &Json) -> Self {
        let text = |key: &str| claim[key].as_str().unwrap_or_default().to_owned();
        Self {
            text: text("text"),
            sentence: text("claim"),
            figure: text("figure"),
            part: text("part").parse().expect("tests read the claims"),
            ratio: text("ratio"),
            unit: text("unit"),
            holds: (
                claim["min"].as_f64().unwrap_or(0.0),
                claim["max"].as_f64().unwrap_or(f64::INFINITY),
            ),
            if_yes: text("if_yes"),
            if_no: text("if_no"),
        }
    }
}

named! {
    /// The answer to a claim on this disk.
    pub(crate) enum Answer {
        Yes = "yes",
        No = "no",
        Undecided = "undecided",
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
pub(crate) fn judge(reports: &[Report], why: impl Fn(Part) -> Option<String>) -> Vec<Judgement> {
    claims()
        .iter()
        .map(|claim| {
            let report = reports.iter().find(|report| report.bench == claim.part.name());
            match report.and_then(|report| report.ratios.get(&claim.ratio)) {
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
        Answer::Yes => (Answer::Yes, claim.if_yes.clone()),
        Answer::No => (Answer::No, claim.if_no.clone()),
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
    use std::collections::BTreeSet;

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
        let claim = &claims()[0];
        let mut report = Report::new(claim.part.name(), Host::default(), []);
        let why = |_| Some("the disk is full".to_owned());
        let found = judge(&[report.clone()], why);
        assert_eq!(found.len(), claims().len());
        assert!(found.iter().all(|it| it.answer == Answer::Undecided));
        assert_eq!(found[0].meaning, "Not measured: the disk is full.");
        assert_eq!(found[0].figure(), "not measured");
        report.ratio(&*claim.ratio, Some(ratio(&[3.0, 3.0, 3.0, 3.0, 3.0])));
        let found = judge(&[report], why);
        assert_eq!((found[0].answer, &*found[0].meaning), (Answer::Yes, &*claim.if_yes));
        let figure = found[0].figure();
        assert!(figure.starts_with("3.00 (3.00 to 3.00) times"), "{figure}");
    }

    #[test]
    fn each_claim_is_complete_and_has_a_ratio_of_its_own() {
        let ratios: BTreeSet<_> = claims().iter().map(|it| (it.part, &it.ratio)).collect();
        let texts: BTreeSet<_> = claims().iter().map(|it| &it.text).collect();
        assert_eq!((claims().len(), ratios.len(), texts.len()), (30, 30, 5));
        for claim in claims() {
            let Claim { sentence, figure, ratio, unit, if_yes, if_no, .. } = claim;
            let texts = [figure, ratio, unit, if_yes, if_no];
            assert!(texts.iter().all(|text| !text.is_empty()), "{sentence}");
            assert!(sentence.ends_with('.') && claim.holds.0 < claim.holds.1, "{sentence}");
        }
    }
}
