//! Formats a report as text: for a terminal, and as Markdown. Performs no I/O.

use super::ratio::{Ratio, Verdict, significant};
use super::text::{NOT_MEASURED, columns_wide, grouped, lines, wrapped};
use super::{Column, Report, Row, Value};

/// The headings of the table of ratios. A/A is the factor by which rounds of the same method
/// differ.
const HEADS: [&str; 5] = ["ratios", "median", "interval", "A/A", ""];

impl Report {
    /// Returns the text for a terminal: the host, tables, ratios and notes.
    /// Columns are dropped by rank until lines have at most `width` characters; columns of rank 0
    /// stay, even if they are wider.
    #[must_use]
    pub fn table(&self, width: usize) -> String {
        let mut out: String = self.heading().lines().map(|line| wrapped(line, width)).collect();
        for table in self.tables() {
            out += &if table.is_empty() { "\n".to_owned() } else { format!("\n{table}\n") };
            self.terminal_table(table, width, &mut out);
        }
        if !self.ratios.is_empty() {
            let mut all = vec![HEADS.map(str::to_owned).to_vec()];
            all.extend(self.ratios.iter().map(|(name, ratio)| cells_of_ratio(name, ratio)));
            let lines = lines(&all, |at| matches!(at, 1 | 3));
            out += &format!("\n{}\n", lines.join("\n"));
        }
        for note in &self.notes {
            out += &format!("\n{}", wrapped(note, width));
        }
        out
    }

    /// Returns the report in Markdown: the host, tables with all columns that have values, ratios
    /// and notes.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out: String = self.heading().lines().map(|line| format!("- {line}\n")).collect();
        for table in self.tables() {
            out += &if table.is_empty() { "\n".to_owned() } else { format!("\n### {table}\n\n") };
            let used = self.used(table);
            let columns = used.iter().map(|at| &self.columns[*at]);
            let rule = |it: &Column| if it.decimals.is_some() { "--:" } else { "---" };
            let (heads, rules): (Vec<_>, Vec<_>) = columns.map(|it| (it.head, rule(it))).unzip();
            out += &format!("| {} | |\n|{}|---|\n", heads.join(" | "), rules.join("|"));
            for row in self.rows_of(table) {
                let cells: Vec<_> = used.iter().map(|at| escaped(&self.cell(row, *at))).collect();
                let state = escaped(row.state.as_deref().unwrap_or_default());
                out += &format!("| {} | {state} |\n", cells.join(" | "));
            }
        }
        if !self.ratios.is_empty() {
            out += "\n| ratio | median | interval | A/A | |\n|---|--:|---|--:|---|\n";
        }
        for (name, ratio) in &self.ratios {
            out += &format!("| `{name}` | {} |\n", cells_of_ratio(name, ratio)[1..].join(" | "));
        }
        for note in &self.notes {
            out += &format!("\n{note}\n");
        }
        out
    }

    fn heading(&self) -> String {
        match self.circumstances.command.as_str() {
            "" => self.host.to_string(),
            _ => format!("{}\n{}", self.host, self.circumstances),
        }
    }

    /// Returns the names of all tables in the order of their first rows.
    fn tables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.table.as_str()) {
                names.push(&row.table);
            }
        }
        names
    }

    fn rows_of<'a>(&'a self, table: &str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.table == table)
    }

    /// Returns the columns in which any row of the table has a value.
    fn used(&self, table: &str) -> Vec<usize> {
        let has_value = |at: &usize| {
            let mut values = self.rows_of(table).filter_map(|row| row.values.get(*at));
            values.any(|value| *value != Value::NotMeasured)
        };
        (0..self.columns.len()).filter(has_value).collect()
    }

    fn cell(&self, row: &Row, at: usize) -> String {
        let Column { decimals, .. } = self.columns[at];
        match row.values.get(at) {
            Some(Value::Text(text)) => text.clone(),
            Some(Value::Number(number)) => grouped(*number, decimals.unwrap_or(0)),
            Some(Value::NotMeasured) | None if row.state.is_none() => NOT_MEASURED.to_owned(),
            Some(Value::NotMeasured) | None => String::new(),
        }
    }

    fn terminal_table(&self, table: &str, width: usize, out: &mut String) {
        let rows: Vec<_> = self.rows_of(table).collect();
        let used = self.used(table);
        let wide = |at: &usize| {
            let cells = rows.iter().map(|row| columns_wide(&self.cell(row, *at)));
            cells.fold(columns_wide(self.columns[*at].head), usize::max) + 2
        };
        let mut shown = used.clone();
        while shown.iter().map(wide).sum::<usize>() > width + 2 {
            let last = shown.iter().copied().max_by_key(|at| self.columns[*at].rank);
            let Some(last) = last.filter(|at| self.columns[*at].rank > 0) else { break };
            shown.retain(|at| *at != last);
        }
        let mut cells = vec![shown.iter().map(|at| self.columns[*at].head.to_owned()).collect()];
        cells.extend(
            rows.iter().map(|row| shown.iter().map(|at| self.cell(row, *at)).collect::<Vec<_>>()),
        );
        let is_number = |at: usize| self.columns[shown[at]].decimals.is_some();
        let lines = lines(&cells, is_number);
        *out += &format!("{}\n", lines[0]);
        for (at, (row, line)) in rows.iter().zip(&lines[1..]).enumerate() {
            if at > 0 && row.group != rows[at - 1].group {
                out.push('\n');
            }
            let state = row.state.iter().map(|state| format!("  {state}"));
            *out += &format!("{line}{}\n", state.collect::<String>());
        }
        let left_out = used.iter().filter(|at| !shown.contains(at));
        let left_out: Vec<_> = left_out.map(|at| self.columns[*at].head).collect();
        if !left_out.is_empty() {
            *out += &wrapped(&format!("(too narrow for: {})", left_out.join(", ")), width);
        }
    }
}

/// Returns the name, the median, the interval, the factor by which rounds of the same method
/// differ, and the verdict if that limits the use of the ratio.
fn cells_of_ratio(name: &str, ratio: &Ratio) -> Vec<String> {
    let interval = ratio.interval.map(|(low, high)| [significant(low), significant(high)]);
    let verdict = match ratio.verdict {
        Verdict::Noise | Verdict::TooFewRounds => ratio.verdict.name(),
        Verdict::Different | Verdict::Amount => "",
    };
    vec![
        name.to_owned(),
        significant(ratio.value),
        interval.map_or(NOT_MEASURED.to_owned(), |ends| ends.join(" to ")),
        ratio.self_factor.map_or(String::new(), significant),
        verdict.to_owned(),
    ]
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::{Ratio, Samples};
    use super::*;
    use crate::host::Host;

    const COLUMNS: &[Column] = &[
        Column::text("way", "way"),
        Column::number("rate", "records/s", 0),
        Column::number("writes", "writes", 2).rank(1),
        Column::number("journal", "journal", 2).rank(2),
        Column::number("nothing", "nothing", 2).rank(3),
    ];

    fn report() -> Report {
        let host = Host { cpu: Some("cpu".into()), ..Host::default() };
        let mut report = Report::new("b", host, COLUMNS);
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
    fn groups_are_separated() {
        let expected = "\
cpu, Linux unknown

ext4
way       records/s  writes  journal
grow          1,000    1.00        -
recycled      4,000    1.00     2.00

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
        let text = report().table(35);
        assert!(text.contains("(too narrow for: journal)"), "{text}");
        let text = report().table(24);
        assert!(text.contains("(too narrow for: writes,\njournal)"), "{text}");
        for (width, fits) in [(46, true), (35, true), (20, true), (10, false)] {
            let text = report().table(width);
            let mut lines = text.lines().filter(|line| line.starts_with("recycled"));
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
| grow | 1,000 | 1.00 | - |  |
| recycled | 4,000 | 1.00 | 2.00 |  |
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
}
