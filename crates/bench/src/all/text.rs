//! Formats the results of a run for a terminal. Performs no I/O.

use super::claim::Text;
use super::{Run, counts};
use crate::report::text::{indented, wrapped};

impl Run {
    /// Returns the text for a terminal of `width` characters: the disk in one line, the answer to
    /// each claim, and the missing parts.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        if let Some(line) = self.line() {
            out += &format!("{}\n", wrapped(&line, width));
        }
        let judgements = self.judgements();
        for text in Text::ALL {
            out += &format!("{}\n", text.title());
            for judgement in judgements.iter().filter(|it| it.claim.text == text) {
                let claim = judgement.claim;
                out += &indented(
                    &format!("{:<5} {}", short(judgement.answer), claim.sentence),
                    width,
                    2,
                    8,
                );
                let figures = format!("text: {}; here: {}", claim.figure, judgement.figure());
                out += &indented(&figures, width, 8, 8);
                out += &indented(&judgement.meaning, width, 8, 8);
            }
            out.push('\n');
        }
        let [yes, no, unknown] = counts(&judgements);
        out += &wrapped(
            &format!(
                "Of {} claims, {yes} hold on this disk, {no} do not, and {unknown} are undecided.",
                judgements.len()
            ),
            width,
        );
        for missing in &self.missing {
            out += &wrapped(&format!("not measured: {}: {}", missing.part, missing.why), width);
        }
        out += &wrapped(&self.circumstances.to_string(), width);
        out
    }
}

/// Returns the answer in at most five characters.
const fn short(answer: super::Answer) -> &'static str {
    match answer {
        super::Answer::Yes => "yes",
        super::Answer::No => "no",
        super::Answer::Undecided => "?",
    }
}
