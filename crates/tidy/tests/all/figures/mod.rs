//! Checks that the figures of the pages are those of the reports in `docs/data`, which the
//! benchmarks wrote as JSON.
//!
//! A comment before a table names the report, conditions on its rows, and the keys of the columns.
//! In the second form the table has a row for each value of the first keys, and a column for each
//! value of the key after them:
//!
//! ```text
//! <!-- data/power-cuts.json, synced=each record: table, prepared, lost_records -->
//! <!-- data/write-modes.json, pass=1: sync | way | latency_us -->
//! <!-- data/log.json, ratio=log_vs_raw_1w: ratio, value, low, high, verdict -->
//! <!-- data/all.json: text, claim, figure_of_text, figure_here, answer -->
//! ```
//!
//! A figure in a sentence is a link to its report. The title names a ratio, an end of its interval,
//! or a column with conditions that select one row:
//!
//! ```text
//! [0.96](data/log.json "log_vs_raw_1w") ([0.93](data/log.json "log_vs_raw_1w low") or more)
//! [58,484](data/small-files.json "puts_per_s, way=haul, size=4 KiB, writers=64")
//! ```
//!
//! A table of numbers without a report has a comment with the reason, such as
//! `<!-- figures: specified -->`.

mod inline;
mod number;
mod report;
mod table;

use serde_json::Value;

use crate::pages::resolved;
use crate::tree::{Source, assert_none, files, root};

/// The result of the check of a page.
#[derive(Debug, Default)]
struct Checked {
    complaints: Vec<String>,
    /// The text of the page with the figures of the reports.
    corrected: String,
}

/// Compares the figures of a page with the reports, which `read` returns by their paths.
fn check(page: &Source, read: &impl Fn(&str) -> Option<Value>) -> Checked {
    let read = |link: &str| {
        let path = resolved(&page.path, link);
        read(&path).ok_or_else(|| format!("there is no report {path}"))
    };
    let mut checked = inline::check(&page.text, &read);
    let tables = table::check(&checked.corrected, needs_reasons(&page.path), &read);
    checked.complaints.extend(tables.complaints);
    checked.complaints.iter_mut().for_each(|it| it.insert_str(0, &format!("{}:", page.path)));
    Checked { corrected: tables.corrected, ..checked }
}

/// `true` if the tables of a page must have a report or a reason. Decisions are records of their
/// day.
fn needs_reasons(path: &str) -> bool {
    path == "README.md" || path.starts_with("docs/") && !path.starts_with("docs/decisions/")
}

fn pages() -> impl Iterator<Item = &'static Source> {
    files().iter().filter(|file| file.path.ends_with(".md"))
}

/// Returns the report of this tree with this path.
fn read(path: &str) -> Option<Value> {
    let report = files().iter().find(|file| file.path == path)?;
    serde_json::from_str(&report.text).ok()
}

#[test]
fn pages_have_the_figures_of_their_reports() {
    let mut complaints = Vec::new();
    for page in pages() {
        let checked = check(page, &read);
        if std::env::var_os("HAUL_UPDATE_FIGURES").is_some() && checked.corrected != page.text {
            std::fs::write(root().join(&page.path), checked.corrected).unwrap();
        }
        complaints.extend(checked.complaints);
    }
    if !complaints.is_empty() {
        complaints
            .push("HAUL_UPDATE_FIGURES=1 cargo test -p haul-tidy figures:: writes them".into());
    }
    assert_none(&complaints);
}

#[test]
fn reports_have_their_circumstances_and_are_used() {
    let reports = files().iter().filter(|file| file.path.starts_with("docs/data/"));
    let reports = reports.filter(|file| file.path.ends_with(".json"));
    let complaints = |file: &Source| {
        let name = file.path.strip_prefix("docs/").unwrap_or(&file.path);
        let mut complaints = report::complaints(&file.text);
        if !pages().any(|page| page.text.contains(name)) {
            complaints.push("no page uses it".to_owned());
        }
        complaints.iter().map(|it| format!("{}: {it}", file.path)).collect::<Vec<_>>()
    };
    assert_none(&reports.flat_map(complaints).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(text: &str) -> Checked {
        let ratio = |value: f64, verdict: &str| json!({ "value": value, "low": 0.9, "high": null, "verdict": verdict });
        let report = json!({
            "rows": [
                { "table": "a", "n": 1234, "x": 0.456, "state": "measured" },
                { "table": "b", "n": null, "x": 1500.4, "state": "measured" },
                { "table": "c", "n": null, "x": null, "state": "not supported" },
            ],
            "claims": [{ "claim": "It is fast.", "ratio": "a_vs_b", "answer": "yes" }],
            "ratios": { "a_vs_b": ratio(0.963, "different"), "b_vs_c": ratio(1.02, "noise") },
        });
        let read = |path: &str| (path == "docs/data/r.json").then(|| report.clone());
        check(&Source::new("docs/a.md", text), &read)
    }

    fn complaints(text: &str) -> usize {
        checked(text).complaints.len()
    }

    fn table(comment: &str, heading: &str, rows: &str) -> String {
        let dashes = "--|".repeat(heading.matches('|').count() - 1);
        format!("<!-- data/r.json{comment} -->\n\n{heading}\n|{dashes}\n{rows}\n\ntext\n")
    }

    #[test]
    fn different_figure_in_a_table_is_noticed() {
        let table = |rows: &str| table(": table,\nn, x", "| t | n | x |", rows);
        let right = "| a | 1,234 | 0.46 |\n| b |  | 1,500 |\n| c | not supported |  |";
        assert_eq!(complaints(&table(right)), 0);
        assert_eq!(complaints(&table(&right.replace("1,234", "1,235"))), 1);
        assert_eq!(complaints(&table("| a | 1,234 | 0.46 |")), 1);
        assert_eq!(checked(&table("| a |")).corrected, table(right));
        for wrong in ["other.json: table, n", "r.json: table, y", "r.json, x=2: table"] {
            let text = table(right).replace("r.json: table,\nn", wrong);
            assert_eq!(complaints(&text), 1, "{wrong}");
        }
        assert_eq!(complaints("<!-- data/r.json: table -->\n\ntext\n"), 1, "no table");
    }

    #[test]
    fn pivot_has_a_column_for_each_value_and_ratios_and_claims_are_rows() {
        for (comment, heading, rows, expected) in [
            (
                ", table=a, table=b: n | table | x",
                "| n | a | in b |",
                "| 1,234 | 0.46 |  |\n|  |  | 1,500 |",
                0,
            ),
            (
                ": n | table | x",
                "| n | a | b | c |",
                "| 1,234 | 0.46 |  |  |\n|  |  | 1,500 | not supported |",
                0,
            ),
            (", n=, table=b: n | table | x", "| n | a |", "|  | 1,500 |", 1),
            (", n=, table=b: n | table | x", "| n | b | c |", "|  | 1,500 |", 1),
            (
                ", ratio=a_vs_b: ratio, value, high, verdict",
                "| | m | h | |",
                "| a_vs_b | 0.96 |  | different |",
                0,
            ),
            (", ratio=a_vs_b: value", "| m |", "| 0.97 |", 1),
            (": claim, ratio, answer", "| | r | a |", "| It is fast. | a_vs_b | yes |", 0),
        ] {
            assert_eq!(complaints(&table(comment, heading, rows)), expected, "{comment} {heading}");
        }
    }

    #[test]
    fn different_figure_in_a_sentence_is_noticed() {
        let figure = |text: &str, title: &str| format!("It is [{text}](data/r.json\n\"{title}\").");
        for (text, title, right) in [
            ("0.96", "a_vs_b", "0.96"),
            ("0.9", "a_vs_b low", "0.9"),
            ("1,234", "n, table=a", "1,234"),
            ("1,500", "x, table=b,\nn=", "1,500"),
            ("0.97", "a_vs_b", "0.96"),
            ("?", "n, table=a", "1,234"),
            ("1 to 2", "x, table=a", "0.46"),
        ] {
            let checked = checked(&figure(text, title));
            assert_eq!(checked.complaints.is_empty(), text == right, "{text}");
            assert_eq!(checked.corrected, figure(right, title));
        }
        for title in ["a_vs_c", "a_vs_b high", "n", "n, table=b", "y, table=a", "table, table=a"] {
            assert_eq!(complaints(&figure("1", title)), 1, "{title}");
        }
        assert_eq!(complaints("[1](data/r.json) [report](data/r.json) [1](b.md)"), 1, "no title");
        assert_eq!(complaints("```\n[1](data/r.json \"a\")\n```\n"), 0);
    }

    #[test]
    fn noise_is_named() {
        let figure = "[1.02](data/r.json \"b_vs_c\")";
        assert_eq!(complaints(&format!("It is\n{figure}.\n\nnoise")), 1);
        assert_eq!(complaints(&format!("It is {figure},\nwhich is noise.")), 0);
        assert_eq!(complaints(&format!("| a |\n|--|\n| {figure} |\n| noise |\n")), 1);
    }

    #[test]
    fn numbers_without_a_report_need_a_reason() {
        let table = "| a | b |\n|--|--|\n| x | **12 µs** |\n| y | text |\n| z | -3 |\n";
        for (reason, expected) in [
            ("", 1),
            ("<!-- figures: specified -->", 0),
            ("<!-- figures: guessed -->", 1),
            ("<!-- figures: tested -->", 1),
            ("See `cargo test x`.\n\n<!-- figures: tested -->", 0),
            ("<!-- figures: measured by hand -->", 1),
            ("```\nhaul x\n```\n<!-- figures: measured by hand -->", 0),
        ] {
            assert_eq!(complaints(&format!("{reason}\n\n{table}")), expected, "{reason}");
        }
        assert_eq!(complaints("| 1 | 2 |\n|--|--|\n| 3 | four |\n"), 0, "labels and words");
    }
}
