//! Formats the raw results as HTML tables in a section that readers can open.

use super::html::{element, escaped, text};
use crate::report::ratio_table::{HEADS, ratio_rows};
use crate::report::table::{cells, tables, used};
use crate::report::{Column, Report};

/// Returns the tables, ratios and notes of a report, closed at first.
pub(super) fn details(report: &Report) -> String {
    let mut content = text("p", "command", &report.circumstances.to_string());
    for table in tables(report) {
        if !table.is_empty() {
            content += &text("h4", "", table);
        }
        content += &rows_table(report, table);
    }
    let ratios = ratio_rows(report);
    if !ratios.is_empty() {
        let head: String = HEADS.iter().map(|head| text("th", "", head)).collect();
        let rows = ratios.iter().map(|row| {
            let class = if row[4].is_empty() { "" } else { "faint" };
            let cells: String = row.iter().map(|cell| text("td", "", cell)).collect();
            element("tr", class, &cells)
        });
        content += &wrapped(&head, &rows.collect::<String>());
    }
    content += &report.notes.iter().map(|note| text("p", "hint", note)).collect::<String>();
    let summary = escaped(&report.bench);
    format!("<details>\n<summary>{summary}</summary>\n{content}</details>\n")
}

fn rows_table(report: &Report, table: &str) -> String {
    let used = used(report, table);
    let shown = |at: &usize| used.get(*at) == Some(&true);
    let columns = || report.columns.iter().enumerate().filter(|(at, _)| shown(at));
    let class = |decimals: Option<u8>| if decimals.is_some() { "number" } else { "" };
    let head: String =
        columns().map(|(_, column)| text("th", class(column.decimals), column.head)).collect();
    let row = |row: &crate::report::Row| {
        let cells = cells(report, row);
        let cell = |(at, column): (usize, &Column)| text("td", class(column.decimals), &cells[at]);
        let cells: String = match &row.state {
            None => columns().map(cell).collect(),
            // The reason why a row has no numbers follows its last label.
            Some(state) => {
                let labels = columns().take_while(|(at, _)| !cells[*at].is_empty()).map(cell);
                let labels: Vec<_> = labels.collect();
                let rest = columns().count() - labels.len();
                let state = escaped(state);
                labels.concat() + &format!("<td class=\"faint\" colspan=\"{rest}\">{state}</td>\n")
            }
        };
        element("tr", "", &cells)
    };
    let rows = report.rows.iter().filter(|it| it.table == table).map(row);
    wrapped(&head, &rows.collect::<String>())
}

fn wrapped(head: &str, rows: &str) -> String {
    let head = element("thead", "", &element("tr", "", head));
    let table = element("table", "", &(head + &element("tbody", "", rows)));
    element("div", "scroll", &table)
}
