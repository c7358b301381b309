//! Checks tables: the rows after a comment that names a report, and the reasons of tables without a
//! report.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Checked;
use super::number::{begins_with_number, cell};
use super::page::{Table, cells, tables, without_code};
use super::report::{Filter, pieces, rows_with};

/// The reasons why a table of numbers has no report, each with texts of which the page must contain
/// one.
const REASONS: &[(&str, &[&str])] = &[
    // Limits, defaults, formats.
    ("specified", &[]),
    // Counts that a test enforces.
    ("tested", &["cargo test", "tests/"]),
    // Results of formulas.
    ("computed", &[]),
    // Figures of other authors.
    ("published", &[]),
    // Not made by a benchmark of this project; the page has the command.
    ("measured by hand", &["```"]),
];

/// The source of a table.
#[derive(Debug)]
struct Spec<'a> {
    report: String,
    filter: Filter,
    /// The keys of the columns of a plain table; of a pivot, the keys that name a row.
    keys: Vec<&'a str>,
    /// Of a pivot, the key whose values are the columns, and the key of the cells.
    pivot: Option<(&'a str, &'a str)>,
}

/// The rows that a table must have.
#[derive(Debug, Default)]
struct Expected {
    /// The values of the columns of a pivot.
    heads: Vec<String>,
    rows: Vec<String>,
}

/// Returns a comment without its marks.
fn unmarked(comment: &str) -> &str {
    comment.trim_start_matches("<!-- ").trim_end_matches(" -->")
}

/// Parses a comment without its marks.
fn parse(comment: &str) -> Option<Spec<'_>> {
    let (source, columns) = comment.rsplit_once(": ")?;
    let source = pieces(source);
    let (report, conditions) = source.split_first()?;
    let parts: Vec<_> = columns.split(" | ").collect();
    let (keys, pivot) = match parts[..] {
        [keys] => (keys, None),
        [keys, column, value] => (keys, Some((column, value))),
        _ => return None,
    };
    let keys = keys.split(", ").collect();
    Some(Spec { report: report.clone(), filter: Filter::parse(conditions)?, keys, pivot })
}

impl Spec<'_> {
    fn expected(&self, report: &Value) -> Result<Expected, String> {
        let mut keys = self.keys.clone();
        keys.extend(self.pivot.iter().flat_map(|(column, value)| [*column, *value]));
        let all = rows_with(report, &keys);
        let mut named = keys.into_iter().chain(self.filter.0.iter().map(|(key, _)| key.as_str()));
        if let Some(key) = named.find(|key| all.iter().all(|row| row.get(key).is_none())) {
            return Err(format!("there is no column {key}"));
        }
        let rows: Vec<_> = all.iter().filter(|row| self.filter.selects(row)).collect();
        match self.pivot {
            _ if rows.is_empty() => Err("no rows".to_owned()),
            Some((column, value)) => self.pivoted(&rows, column, value),
            None => {
                let rows = rows.iter().map(|row| line(&self.cells(row))).collect();
                Ok(Expected { rows, ..Expected::default() })
            }
        }
    }

    /// Returns the cells of a row. The first missing number is replaced by the reason.
    fn cells(&self, row: &Value) -> Vec<String> {
        let mut state = state(row);
        let text = |key: &&str| match &row[*key] {
            Value::Null => state.take().unwrap_or_default(),
            value => cell(value),
        };
        self.keys.iter().map(text).collect()
    }

    fn pivoted(&self, rows: &[&Value], column: &str, value: &str) -> Result<Expected, String> {
        let mut heads: Vec<String> = Vec::new();
        let mut table: Vec<(Vec<String>, BTreeMap<usize, String>)> = Vec::new();
        for row in rows {
            let name: Vec<_> = self.keys.iter().map(|key| cell(&row[*key])).collect();
            let at = position(&mut heads, cell(&row[column]));
            let line = table.iter().position(|line| line.0 == name);
            let line = line.unwrap_or_else(|| {
                table.push((name, BTreeMap::new()));
                table.len() - 1
            });
            let reason = state(row).filter(|_| row[value].is_null());
            let text = reason.unwrap_or_else(|| cell(&row[value]));
            if table[line].1.insert(at, text).is_some() {
                return Err(format!("several rows for {:?} and {}", table[line].0, heads[at]));
            }
        }
        let rows = table.into_iter().map(|(mut name, cells)| {
            name.extend((0..heads.len()).map(|at| cells.get(&at).cloned().unwrap_or_default()));
            line(&name)
        });
        let rows = rows.collect();
        Ok(Expected { heads, rows })
    }
}

/// Returns the position of `item`, which is appended if it is missing.
fn position(items: &mut Vec<String>, item: String) -> usize {
    items.iter().position(|other| *other == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}

/// Returns the reason why a row has no numbers.
fn state(row: &Value) -> Option<String> {
    row["state"].as_str().filter(|state| *state != "measured").map(str::to_owned)
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// Compares the heading of a table with the rows that it must have.
fn heading_complaint(table: &Table, expected: &Expected) -> Option<String> {
    let columns = expected.rows.first().map_or(0, |row| cells(row).len());
    let found = table.heading.len();
    if found != columns {
        return Some(format!("{found} headings for {columns} columns"));
    }
    let heads = table.heading.iter().skip(columns - expected.heads.len()).zip(&expected.heads);
    let mut other = heads.filter(|(heading, value)| !heading.contains(value.as_str()));
    other.next().map(|(heading, value)| format!("the heading {heading} must contain {value}"))
}

/// Returns the name of the report in a comment without its marks; `None` if it names no report.
fn report_of(comment: &str) -> Option<&str> {
    comment.split([',', ':']).next().filter(|name| name.ends_with(".json"))
}

/// Returns the violation of a table that has no report.
fn reason_complaint(text: &str, lines: &[&str], table: &Table, comment: &str) -> Option<String> {
    if let Some(reason) = comment.strip_prefix("figures: ") {
        let Some((_, needed)) = REASONS.iter().find(|it| it.0 == reason) else {
            return Some(format!("no reason for figures: {reason}"));
        };
        let is_enough = needed.is_empty() || needed.iter().any(|it| text.contains(it));
        return (!is_enough).then(|| format!("figures: {reason}, but no {}", needed.join(", ")));
    }
    let rows = lines[table.body.clone()].iter();
    let cells: Vec<_> = rows.flat_map(|row| cells(row).into_iter().skip(1)).collect();
    let filled = cells.iter().filter(|cell| !cell.is_empty()).count();
    let numbers = cells.iter().filter(|cell| begins_with_number(cell)).count();
    (2 * numbers > filled).then(|| format!("{numbers} numbers have no report, and no reason"))
}

/// Compares the tables of a page with the reports.
pub(super) fn check(
    text: &str,
    needs_reasons: bool,
    read: &impl Fn(&str) -> Result<Value, String>,
) -> Checked {
    let page = without_code(text);
    let lines: Vec<_> = page.lines().collect();
    let mut corrected: Vec<_> = text.split('\n').map(str::to_owned).collect();
    let mut complaints = Vec::new();
    // From the last one to the first one, so that the numbers of lines stay valid.
    let tables = tables(&lines);
    for table in tables.iter().rev() {
        let comment = unmarked(&table.comment);
        let mut complain = |text: String| complaints.push(format!("{}: {text}", table.line + 1));
        if report_of(comment).is_none() {
            let complaint = reason_complaint(text, &lines, table, comment);
            complaint.filter(|_| needs_reasons).into_iter().for_each(complain);
            continue;
        }
        let spec = parse(comment).ok_or_else(|| "no report and columns".to_owned());
        match spec.and_then(|spec| spec.expected(&read(&spec.report)?)) {
            Err(error) => complain(format!("{error}: {comment}")),
            Ok(expected) => {
                if let Some(complaint) = heading_complaint(table, &expected) {
                    complain(complaint);
                } else if lines[table.body.clone()] != expected.rows {
                    let rows = expected.rows.join("\n");
                    complain(format!("the rows after {comment} must be:\n{rows}"));
                }
                corrected.splice(table.body.clone(), expected.rows);
            }
        }
    }
    let comments = lines.iter().filter_map(|line| report_of(line.strip_prefix("<!-- ")?)).count();
    let generated = tables.iter().filter(|table| report_of(unmarked(&table.comment)).is_some());
    if comments != generated.count() {
        complaints.push("0: a comment that names a report is not before a table".to_owned());
    }
    complaints.reverse();
    Checked { complaints, corrected: corrected.join("\n") }
}
