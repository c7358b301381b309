//! Checks that tables of measurements in the documentation have the figures of the reports that are
//! kept in `docs/data`.
//!
//! A table is preceded by a comment that names the report, a filter, and the keys of the columns:
//!
//! ```text
//! <!-- data/power-cuts.json, synced=each record: table, prepared, lost_records -->
//! ```

use serde_json::Value;

use crate::tree::{Source, assert_none, files};

const BEGIN: &str = "<!-- data/";

/// The source of a table.
#[derive(Debug, PartialEq)]
struct Spec<'a> {
    report: &'a str,
    filter: Vec<(&'a str, &'a str)>,
    columns: Vec<&'a str>,
}

fn parse(line: &str) -> Option<Spec<'_>> {
    let line = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let (source, columns) = line.split_once(": ")?;
    let mut source = source.split(", ");
    Some(Spec {
        report: source.next()?,
        filter: source.map(|pair| pair.split_once('=')).collect::<Option<_>>()?,
        columns: columns.split(", ").collect(),
    })
}

/// Returns the rows of a table in Markdown.
fn rows(spec: &Spec<'_>, report: &Value) -> Vec<String> {
    let is_selected = |row: &&Value| spec.filter.iter().all(|(key, text)| row[key] == **text);
    let rows = report["rows"].as_array().into_iter().flatten().filter(is_selected);
    let cells = |row: &Value| spec.columns.iter().map(|key| cell(&row[key])).collect::<Vec<_>>();
    rows.map(|row| format!("| {} |", cells(row).join(" | "))).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() => grouped(&number.to_string()),
        Value::Number(number) => match number.as_f64().unwrap_or(0.0) {
            small if small < 100.0 => format!("{small:.2}"),
            great => grouped(&format!("{great:.0}")),
        },
        _ => String::new(),
    }
}

fn grouped(digits: &str) -> String {
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns the differences between the tables of a page and the reports.
fn differences(page: &Source, read: impl Fn(&str) -> Option<Value>) -> Vec<String> {
    let lines: Vec<&str> = page.text.lines().collect();
    let marked = lines.iter().enumerate().filter(|(_, line)| line.starts_with(BEGIN));
    marked.filter_map(|(at, _)| difference(&page.path, &lines[at..], &read)).collect()
}

/// Compares the table that follows the comment in the first of the lines.
fn difference(path: &str, lines: &[&str], read: &impl Fn(&str) -> Option<Value>) -> Option<String> {
    // Long comments take several lines.
    let end = lines.iter().position(|line| line.ends_with(" -->")).unwrap_or(0);
    let comment = &lines[..=end].join(" ");
    let Some(spec) = parse(comment) else { return Some(format!("{path}: invalid: {comment}")) };
    let Some(report) = read(spec.report) else {
        return Some(format!("{path}: there is no report {}", spec.report));
    };
    let expected = rows(&spec, &report);
    // The table begins after an empty line, with its heading and a line of dashes.
    let table = lines.iter().skip(end + 1).skip_while(|line| line.is_empty());
    let found: Vec<_> = table.take_while(|line| line.starts_with('|')).skip(2).collect();
    let is_equal = found.iter().map(|line| **line).eq(expected.iter().map(String::as_str));
    let text = expected.join("\n");
    let is_right = is_equal && !expected.is_empty();
    (!is_right).then(|| format!("{path}: the rows after {comment} must be:\n{text}"))
}

#[test]
fn tables_have_the_figures_of_their_reports() {
    let read = |name: &str| {
        let report = files().iter().find(|file| file.path == format!("docs/{name}"))?;
        serde_json::from_str(&report.text).ok()
    };
    let pages = files().iter().filter(|file| file.path.ends_with(".md"));
    let all: Vec<_> = pages.flat_map(|page| differences(page, read)).collect();
    assert_none(&all);
}

#[test]
fn different_figure_is_noticed() {
    let report = serde_json::json!({ "rows": [
        { "table": "a", "n": 1234, "x": 0.456 }, { "table": "b", "n": null, "x": 1500.4 },
    ]});
    let found = |table: &str| {
        let text =
            format!("<!-- data/r.json: table,\nn, x -->\n\n| t | n | x |\n|--|--|--|\n{table}");
        let read = |name: &str| (name == "data/r.json").then(|| report.clone());
        differences(&Source::new("docs/a.md", &text), read).len()
    };
    assert_eq!(found("| a | 1,234 | 0.46 |\n| b |  | 1,500 |\n\ntext"), 0);
    assert_eq!(found("| a | 1,235 | 0.46 |\n| b |  | 1,500 |\n"), 1);
    assert_eq!(found("| a | 1,234 | 0.46 |\n"), 1);
    let spec = parse("<!-- data/r.json, table=b, n=1: table, x -->").unwrap();
    assert_eq!((spec.filter.len(), spec.columns.len()), (2, 2));
    let text = "<!-- data/other.json: table -->\n\n| t |\n|--|\n| a |\n";
    assert_eq!(differences(&Source::new("docs/a.md", text), |_| None).len(), 1);
}
