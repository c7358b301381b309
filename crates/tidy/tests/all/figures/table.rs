//! Checks tables: the rows after a comment that names a report, and the reasons of tables without a
//! report.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::Checked;
use super::number::{begins_with_number, cell};
use super::report::{Filter, pieces, rows_with};

/// The reasons why a table of numbers has no report, each with a text that the page must contain.
const REASONS: &[(&str, &str)] = &[
    // Limits, defaults, formats.
    ("specified", ""),
    // Counts that a test enforces.
    ("tested", "cargo test"),
    // Results of formulas.
    ("computed", ""),
    // Figures of other authors.
    ("published", ""),
    // Not made by a benchmark of this project; the page has the command.
    ("measured by hand", "```"),
];

/// A table of a page.
struct Table {
    /// The number of the line with the heading, counted from 0.
    line: usize,
    /// The comment directly before the table, in one line and without its marks, or nothing.
    comment: String,
    heading: Vec<String>,
    /// The lines after the heading and the line of dashes.
    body: Range<usize>,
}

/// The rows that a table must have.
#[derive(Default)]
struct Expected {
    /// The values of the columns of a pivot.
    heads: Vec<String>,
    rows: Vec<String>,
}

/// Returns the page with spaces in place of its code blocks.
pub(super) fn without_code(text: &str) -> String {
    let mut in_code = false;
    let blank = |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        match in_code || is_fence {
            true => line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect(),
            false => line.to_owned(),
        }
    };
    text.split_inclusive('\n').map(blank).collect()
}

/// Returns the cells of a line of a table.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().replace("\\|", "\0");
    let line = line.strip_prefix('|').unwrap_or(&line);
    let line = line.strip_suffix('|').unwrap_or(line);
    line.split('|').map(|cell| cell.trim().replace('\0', "\\|")).collect()
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// Returns the tables of a page without code blocks.
fn tables(lines: &[&str]) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let rows = lines[at..].iter().take_while(|line| line.starts_with('|')).count();
        if rows >= 2 && lines[at + 1].chars().all(|c| "|-: ".contains(c)) {
            let heading = cells(lines[at]);
            let (comment, body) = (comment(&lines[..at]), at + 2..at + rows);
            tables.push(Table { line: at, comment, heading, body });
        }
        at += rows.max(1);
    }
    tables
}

/// Returns the comment at the end of the lines, which may be followed by empty lines.
fn comment(lines: &[&str]) -> String {
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |end| end + 1);
    let begin = lines[..end].iter().rposition(|line| line.starts_with("<!-- "));
    let comment = begin.map_or(String::new(), |begin| lines[begin..end].join(" "));
    let inner = comment.strip_prefix("<!-- ").and_then(|inner| inner.strip_suffix(" -->"));
    inner.unwrap_or_default().to_owned()
}

/// Returns the rows of a table after a comment such as `data/log.json, pass=1: way | sync | us`.
fn expected(
    comment: &str,
    read: &impl Fn(&str) -> Result<Value, String>,
) -> Result<Expected, String> {
    let (source, columns) = comment.rsplit_once(": ").ok_or("no columns")?;
    let source = pieces(source);
    let (name, conditions) = source.split_first().ok_or("no report")?;
    let filter = Filter::parse(conditions).ok_or("a condition lacks its =")?;
    let columns: Vec<Vec<_>> = columns.split(" | ").map(|it| it.split(", ").collect()).collect();
    let keys = columns.concat();
    let all = rows_with(&read(name)?, &keys);
    let mut named = keys.into_iter().chain(filter.0.iter().map(|(key, _)| key.as_str()));
    if let Some(key) = named.find(|key| all.iter().all(|row| row.get(key).is_none())) {
        return Err(format!("there is no column {key}"));
    }
    let rows: Vec<_> = all.iter().filter(|row| filter.selects(row)).collect();
    match &columns[..] {
        _ if rows.is_empty() => Err("no rows".to_owned()),
        [keys] => {
            let rows = rows.iter().map(|row| plain(row, keys)).collect();
            Ok(Expected { rows, ..Expected::default() })
        }
        [keys, column, value] => pivoted(&rows, keys, column[0], value[0]),
        _ => Err("too many columns".to_owned()),
    }
}

/// Returns the cells of a row. The first missing number is replaced by the reason.
fn plain(row: &Value, keys: &[&str]) -> String {
    let mut state = state(row);
    let text = |key: &&str| match &row[*key] {
        Value::Null => state.take().unwrap_or_default(),
        value => cell(value),
    };
    line(&keys.iter().map(text).collect::<Vec<_>>())
}

/// Returns a row for each value of `keys`, with a column for each value of `column`.
fn pivoted(rows: &[&Value], keys: &[&str], column: &str, value: &str) -> Result<Expected, String> {
    let mut heads: Vec<String> = Vec::new();
    let mut table: Vec<(Vec<String>, BTreeMap<usize, String>)> = Vec::new();
    for row in rows {
        let name: Vec<_> = keys.iter().map(|key| cell(&row[*key])).collect();
        let head = cell(&row[column]);
        let at = heads.iter().position(|other| *other == head).unwrap_or_else(|| {
            heads.push(head);
            heads.len() - 1
        });
        let line = table.iter().position(|line| line.0 == name).unwrap_or_else(|| {
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
    Ok(Expected { rows: rows.collect(), heads })
}

/// Returns the reason why a row has no numbers.
fn state(row: &Value) -> Option<String> {
    row["state"].as_str().filter(|state| *state != "measured").map(str::to_owned)
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

/// `true` if a comment, without its marks, names a report.
fn has_report(comment: &str) -> bool {
    comment.split([',', ':']).next().is_some_and(|name| name.ends_with(".json"))
}

/// Returns the violation of a table that has no report.
fn reason_complaint(text: &str, lines: &[&str], table: &Table) -> Option<String> {
    if let Some(reason) = table.comment.strip_prefix("figures: ") {
        let known = REASONS.iter().find(|it| it.0 == reason);
        let is_enough = known.is_some_and(|(_, needed)| text.contains(needed));
        return (!is_enough).then(|| format!("no reason for figures: {reason}"));
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
    let tables = tables(&lines);
    // From the last one to the first one, so that the numbers of lines stay valid.
    for table in tables.iter().rev() {
        let comment = &table.comment;
        let mut complain = |text: String| complaints.push(format!("{}: {text}", table.line + 1));
        if !has_report(comment) {
            let complaint = reason_complaint(text, &lines, table).filter(|_| needs_reasons);
            complaint.into_iter().for_each(complain);
            continue;
        }
        match expected(comment, read) {
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
    let comments = lines.iter().filter_map(|line| line.strip_prefix("<!-- "));
    if comments.filter(|it| has_report(it)).count()
        != tables.iter().filter(|table| has_report(&table.comment)).count()
    {
        complaints.push("0: a comment that names a report is not before a table".to_owned());
    }
    complaints.reverse();
    Checked { complaints, corrected: corrected.join("\n") }
}
