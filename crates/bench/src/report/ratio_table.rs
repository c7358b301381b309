//! Formats the ratios of a report as the rows of a table. Performs no I/O.

use super::Report;
use super::ratio::{Ratio, Verdict, significant};
use super::text::{NOT_MEASURED, columns_wide, pad};

/// The headings of the table. A/A is the factor by which rounds of the same method differ.
pub(crate) const HEADS: [&str; 5] = ["ratios", "median", "interval", "A/A", ""];

/// Returns the cells of all ratios: the name, the median, the interval, the factor by which rounds
/// of the same method differ, and the verdict if that limits the use of the ratio.
pub(crate) fn ratio_rows(report: &Report) -> Vec<[String; 5]> {
    report.ratios.iter().map(|(name, ratio)| row(name, ratio)).collect()
}

fn row(name: &str, ratio: &Ratio) -> [String; 5] {
    let interval = ratio.interval.map(|(low, high)| [significant(low), significant(high)]);
    let verdict = match ratio.verdict {
        Verdict::Noise | Verdict::TooFewRounds => ratio.verdict.name(),
        Verdict::Different | Verdict::Amount => "",
    };
    [
        name.to_owned(),
        significant(ratio.value),
        interval.map_or(NOT_MEASURED.to_owned(), |ends| ends.join(" to ")),
        ratio.self_factor.map_or(String::new(), significant),
        verdict.to_owned(),
    ]
}

/// Returns the table of all ratios as text; empty if there are none.
pub(super) fn ratio_table(report: &Report) -> String {
    let rows = ratio_rows(report);
    if rows.is_empty() {
        return String::new();
    }
    let lines: Vec<_> = [HEADS.map(str::to_owned)].into_iter().chain(rows).collect();
    let wide = |at: usize| lines.iter().map(|row| columns_wide(&row[at])).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(wide);
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(widths).enumerate();
        let cells: Vec<_> =
            cells.map(|(at, (cell, width))| pad(cell, width, matches!(at, 1 | 3))).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    format!("\n{}", lines.iter().map(line).collect::<String>())
}
