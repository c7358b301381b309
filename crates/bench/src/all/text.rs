//! Formats the results of a run for a terminal. Performs no I/O.

use super::Run;
use super::claim::{Answer, claims};
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
        let mut texts: Vec<_> = claims().iter().map(|claim| &claim.text).collect();
        texts.dedup();
        for text in texts {
            out += &format!("{text}\n");
            for judgement in judgements.iter().filter(|it| it.claim.text == *text) {
                let claim = judgement.claim;
                let answer = match judgement.answer {
                    Answer::Undecided => "?",
                    answer => answer.name(),
                };
                out += &indented(&format!("{answer:<5} {}", claim.sentence), width, 2, 8);
                let figures = format!("text: {}; here: {}", claim.figure, judgement.figure());
                out += &indented(&figures, width, 8, 8);
                out += &indented(&judgement.meaning, width, 8, 8);
            }
            out.push('\n');
        }
        let count = |answer| judgements.iter().filter(|it| it.answer == answer).count();
        let [yes, no, unknown] = Answer::ALL.map(count);
        let all = judgements.len();
        let counts = format!(
            "Of {all} claims, {yes} hold on this disk, {no} do not, and {unknown} are undecided."
        );
        out += &wrapped(&counts, width);
        for (part, why) in &self.missing {
            out += &wrapped(&format!("not measured: {part}: {why}"), width);
        }
        out += &wrapped(&self.circumstances.to_string(), width);
        out
    }

    /// Returns the same as Markdown, with a table of the claims, and the report of each part.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n", self.line().unwrap_or_default());
        out += "| text | claim | figure of the text | measured | holds | meaning |\n";
        out += "|---|---|---|---|---|---|\n";
        for judgement in self.judgements() {
            let claim = judgement.claim;
            let (figure, answer) = (judgement.figure(), judgement.answer);
            let cells = [&claim.text, &claim.sentence, &claim.figure, &figure, answer.name()];
            out += &format!("| {} | {} |\n", cells.join(" | "), judgement.meaning);
        }
        for (part, why) in &self.missing {
            out += &format!("\nNot measured: {part}: {why}.\n");
        }
        for report in &self.reports {
            out += &format!("\n## {}\n\n{}", report.bench, report.markdown());
        }
        out
    }
}
