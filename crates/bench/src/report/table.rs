//! Formats a report as text: for a terminal, and as Markdown. Performs no I/O.

use super::ratio_table::{ratio_rows, ratio_table};
use super::text::{NOT_MEASURED, columns_wide, grouped, pad, wrapped};
use super::{Column, Report, Row, Value};

/// The length limits of the longest bar in a table, in characters.
const BAR_MAX: usize = 40;
const BAR_MIN: usize = 8;

impl Report {
    /// Returns the text for a terminal: the host, tables with a bar for each row, ratios and notes.
    /// Columns are dropped by rank until lines have at most `width` characters; columns of rank 0
    /// stay, even if they are wider.
    #[must_use]
    pub fn table(&self, width: usize) -> String {
        terminal(self, width)
    }

    /// Returns the report in Markdown: the host, tables with all columns that have values, ratios
    /// and notes.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown(self)
    }
}

/// Returns the names of all tables in the order of their first rows.
pub(crate) fn tables(report: &Report) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in &report.rows {
        if !names.contains(&row.table.as_str()) {
            names.push(&row.table);
        }
    }
    names
}

fn rows_of<'a>(report: &'a Report, table: &str) -> impl Iterator<Item = &'a Row> {
    report.rows.iter().filter(move |row| row.table == table)
}

fn cell(column: &Column, value: Option<&Value>, has_numbers: bool) -> String {
    match value {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Number(number)) => grouped(*number, column.decimals.unwrap_or(0)),
        Some(Value::NotMeasured) | None if has_numbers => NOT_MEASURED.to_owned(),
        Some(Value::NotMeasured) | None => String::new(),
    }
}

/// Returns the text of each cell of a row.
pub(crate) fn cells(report: &Report, row: &Row) -> Vec<String> {
    let text = |(at, column)| cell(column, row.values.get(at), row.state.is_none());
    report.columns.iter().enumerate().map(text).collect()
}

/// Returns, for each column, `true` if any row of the table has a value in that column.
pub(crate) fn used(report: &Report, table: &str) -> Vec<bool> {
    let has_value = |at: usize| {
        let mut values = rows_of(report, table).filter_map(|row| row.values.get(at));
        values.any(|value| *value != Value::NotMeasured)
    };
    (0..report.columns.len()).map(has_value).collect()
}

/// Returns, for each column, `true` if the column is shown. Columns are dropped, the highest rank
/// first, until the remaining columns and a bar of the minimum length fit into `width` characters.
fn shown(columns: &[Column], used: &[bool], widths: &[usize], width: usize) -> Vec<bool> {
    let mut shown = used.to_vec();
    loop {
        let visible = || (0..columns.len()).filter(|at| shown[*at]);
        let used: usize = visible().map(|at| widths[at] + 2).sum();
        if used + BAR_MIN <= width {
            return shown;
        }
        match visible().max_by_key(|at| columns[*at].rank) {
            Some(at) if columns[at].rank > 0 => shown[at] = false,
            _ => return shown,
        }
    }
}

/// Returns the bar of `value`. The bar of `max` has `length` characters; the bar of any positive
/// value has at least half a character.
fn bar(value: f64, max: f64, length: usize) -> String {
    if value.is_nan() || value <= 0.0 || max.is_nan() || max <= 0.0 {
        return String::new();
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most twice the length")]
    #[expect(clippy::cast_sign_loss, reason = "both are positive")]
    let halves = (value / max * length as f64 * 2.0).round() as usize;
    let half = if halves % 2 == 1 || halves == 0 { "▌" } else { "" };
    "█".repeat(halves / 2) + half
}

fn bar_max(report: &Report, table: &str, group: &str) -> f64 {
    let of_group = rows_of(report, table).filter(|row| row.group == group);
    of_group.filter_map(|row| report.value(row, report.bar)?.number()).fold(0.0, f64::max)
}

fn one_table(report: &Report, table: &str, width: usize, out: &mut String) {
    let rows: Vec<_> = rows_of(report, table).map(|row| (row, cells(report, row))).collect();
    let wide = |at: usize, column: &Column| {
        let cells = rows.iter().map(|(_, cells)| columns_wide(&cells[at]));
        cells.max().unwrap_or(0).max(columns_wide(column.head))
    };
    let widths: Vec<_> = report.columns.iter().enumerate().map(|(at, c)| wide(at, c)).collect();
    let used = used(report, table);
    let shown = shown(&report.columns, &used, &widths, width);
    let line = |texts: &[&str]| {
        let mut line = String::new();
        for (at, column) in report.columns.iter().enumerate().filter(|(at, _)| shown[*at]) {
            line += &pad(texts[at], widths[at], column.decimals.is_some());
            line += "  ";
        }
        line
    };
    let heads: Vec<_> = report.columns.iter().map(|column| column.head).collect();
    let head = line(&heads);
    let length = width.saturating_sub(columns_wide(&head)).clamp(BAR_MIN, BAR_MAX);
    out.push_str(head.trim_end());
    let mut group = rows.first().map_or("", |(row, _)| row.group.as_str());
    for (row, cells) in &rows {
        out.push_str(if row.group == group { "\n" } else { "\n\n" });
        group = &row.group;
        let texts: Vec<_> = cells.iter().map(String::as_str).collect();
        let value = report.value(row, report.bar).and_then(Value::number).unwrap_or(0.0);
        let text = match &row.state {
            Some(state) => format!("{}  {state}", line(&texts).trim_end()),
            None => line(&texts) + &bar(value, bar_max(report, table, group), length),
        };
        out.push_str(text.trim_end());
    }
    let is_left_out = |at: &usize| used[*at] && !shown[*at];
    let left_out: Vec<_> = (0..heads.len()).filter(is_left_out).map(|at| heads[at]).collect();
    if !left_out.is_empty() {
        out.push('\n');
        out.push_str(
            wrapped(&format!("(too narrow for: {})", left_out.join(", ")), width).trim_end(),
        );
    }
    out.push('\n');
}

/// Returns lines about the machine and the circumstances of the run.
fn heading(report: &Report) -> String {
    match report.circumstances.command.as_str() {
        "" => report.host.to_string(),
        _ => format!("{}\n{}", report.host, report.circumstances),
    }
}

fn terminal(report: &Report, width: usize) -> String {
    let mut out = String::new();
    heading(report).lines().for_each(|line| out += &wrapped(line, width));
    for table in tables(report) {
        out += &if table.is_empty() { "\n".to_owned() } else { format!("\n{table}\n") };
        one_table(report, table, width, &mut out);
    }
    out += &ratio_table(report);
    for note in &report.notes {
        out += &format!("\n{}", wrapped(note, width));
    }
    out
}

/// Escapes the text of a Markdown cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn markdown(report: &Report) -> String {
    let mut out: String = heading(report).lines().map(|l| format!("- {l}\n")).collect();
    for table in tables(report) {
        out += &if table.is_empty() { "\n".to_owned() } else { format!("\n### {table}\n\n") };
        let used = used(report, table);
        let columns = || report.columns.iter().zip(&used).filter(|one| *one.1).map(|one| one.0);
        let heads: Vec<_> = columns().map(|column| escaped(column.head)).collect();
        let rule = |column: &Column| if column.decimals.is_some() { "--:" } else { "---" };
        let rules: Vec<_> = columns().map(rule).collect();
        out += &format!("| {} | |\n|{}|---|\n", heads.join(" | "), rules.join("|"));
        for row in rows_of(report, table) {
            let cells = cells(report, row);
            let cells = cells.iter().zip(&used).filter(|one| *one.1).map(|one| escaped(one.0));
            let cells: Vec<_> = cells.collect();
            let value = report.value(row, report.bar).and_then(Value::number).unwrap_or(0.0);
            let last = row.state.as_deref().map_or_else(
                || bar(value, bar_max(report, table, &row.group), BAR_MAX / 4),
                escaped,
            );
            out += &format!("| {} | {last} |\n", cells.join(" | "));
        }
    }
    let ratios = ratio_rows(report);
    if !ratios.is_empty() {
        out += "\n| ratio | median | interval | A/A | |\n|---|--:|---|--:|---|\n";
        for [name, rest @ ..] in ratios {
            out += &format!("| `{name}` | {} |\n", rest.join(" | "));
        }
    }
    for note in &report.notes {
        out += &format!("\n{note}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Ratio, Samples};
    use super::*;
    use crate::host::Host;

    const COLUMNS: &[Column] = &[
        Column::text("way", "way"),
        Column::number("rate", "records/s", 0),
        Column::number("writes", "writes", 2).ranked(1),
        Column::number("journal", "journal", 2).ranked(2),
        Column::number("nothing", "nothing", 2).ranked(3),
    ];

    fn report() -> Report {
        let host = Host { cpu: Some("cpu".into()), ..Host::default() };
        let mut report = Report::new("b", host, COLUMNS, "rate");
        let values = |way: &str, rate| vec![way.into(), Value::Number(rate), 1.0.into()];
        let more = [Value::NotMeasured, Value::NotMeasured];
        let grow = values("grow", 1000.0).into_iter().chain(more);
        report.rows.push(Row::new("ext4", "1", grow.collect()));
        let recycled = values("recycled", 4000.0).into_iter().chain([2.0.into()]);
        report.rows.push(Row::new("ext4", "1", recycled.collect()));
        let zeroes = Row::new("ext4", "2", vec!["zeroes".into()]);
        report.rows.push(zeroes.without_numbers("not supported"));
        let samples = |name, rate| Samples::new(name, [rate; 5]);
        report.ratio("r", Ratio::of(samples("recycled", 4.0), samples("grow", 1.0)));
        report.ratio("same", Ratio::of(samples("grow", 1.0), samples("grow", 1.0)));
        report.amount("writes", Some(Samples::new("grow", [3.0])));
        report.notes.push("Three rounds.".into());
        report
    }

    #[test]
    fn bars_are_scaled_per_group() {
        let expected = "\
cpu, Linux unknown

ext4
way       records/s  writes  journal
grow          1,000    1.00        -  ██
recycled      4,000    1.00     2.00  ████████

zeroes  not supported

ratios  median  interval       A/A
r         4.00  4.00 to 4.00  1.00
same      1.00  1.00 to 1.00  1.00  noise
writes    3.00  -

Three rounds.
";
        assert_eq!(report().table(46), expected);
    }

    #[test]
    fn narrow_terminals_drop_columns_by_rank() {
        let text = report().table(37);
        assert!(text.contains("(too narrow for: journal)"), "{text}");
        let text = report().table(24);
        assert!(text.contains("(too narrow for: writes,\njournal)"), "{text}");
        for (width, fits) in [(46, true), (37, true), (30, true), (10, false)] {
            let text = report().table(width);
            let mut lines = text.lines().filter(|line| line.contains('█'));
            assert_eq!(lines.all(|line| columns_wide(line) <= width), fits, "{width}: {text}");
        }
    }

    #[test]
    fn markdown_has_all_used_columns() {
        let expected = "\
- cpu, Linux unknown

### ext4

| way | records/s | writes | journal | |
|---|--:|--:|--:|---|
| grow | 1,000 | 1.00 | - | ██▌ |
| recycled | 4,000 | 1.00 | 2.00 | ██████████ |
| zeroes |  |  |  | not supported |

| ratio | median | interval | A/A | |
|---|--:|---|--:|---|
| `r` | 4.00 | 4.00 to 4.00 | 1.00 |  |
| `same` | 1.00 | 1.00 to 1.00 | 1.00 | noise |
| `writes` | 3.00 | - |  |  |

Three rounds.
";
        assert_eq!(report().markdown(), expected);
    }

    #[test]
    fn small_bars_are_visible() {
        for (value, max, expected) in
            [(0.0, 10.0, ""), (0.001, 10.0, "▌"), (5.0, 10.0, "██"), (10.0, 10.0, "████")]
        {
            assert_eq!(bar(value, max, 4), expected, "{value}");
        }
        assert_eq!(bar(1.0, 0.0, 4) + &bar(f64::NAN, 1.0, 4), "");
    }
}
