//! Finds the tables of a page.

use std::ops::Range;

/// A table of a page.
#[derive(Debug)]
pub(super) struct Table {
    /// The number of the line with the heading, counted from 0.
    pub(super) line: usize,
    /// The comment directly before the table, in one line; empty if there is none.
    pub(super) comment: String,
    /// The cells of the heading.
    pub(super) heading: Vec<String>,
    /// The lines after the heading and the line of dashes.
    pub(super) body: Range<usize>,
}

/// Returns the page with spaces in place of its code blocks.
pub(super) fn without_code(text: &str) -> String {
    let mut in_code = false;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence {
            out.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        } else {
            out.push_str(line);
        }
    }
    out
}

/// Returns the cells of a line of a table.
pub(super) fn cells(line: &str) -> Vec<String> {
    let line = line.trim().replace("\\|", "\0");
    let line = line.strip_prefix('|').unwrap_or(&line);
    let line = line.strip_suffix('|').unwrap_or(line);
    line.split('|').map(|cell| cell.trim().replace('\0', "\\|")).collect()
}

/// Returns the tables of a page without code blocks.
pub(super) fn tables(lines: &[&str]) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let rows = lines[at..].iter().take_while(|line| line.starts_with('|')).count();
        let is_rule = |line: &str| line.chars().all(|c| "|-: ".contains(c));
        if rows >= 2 && is_rule(lines[at + 1]) {
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
    let Some(end) = lines.iter().rposition(|line| !line.trim().is_empty()) else {
        return String::new();
    };
    let begin = lines[..=end].iter().rposition(|line| line.starts_with("<!--"));
    match begin {
        Some(begin) if lines[end].ends_with("-->") => lines[begin..=end].join(" "),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_comment_before_them() {
        let text = "<!-- a:\nb -->\n\n| x \\| y | z |\n|--|--|\n| 1 | |\n\n| c |\n|--|\n";
        let text = without_code(&format!("{text}```\n| d |\n|--|\n```\n"));
        let tables = tables(&text.lines().collect::<Vec<_>>());
        assert_eq!(tables.len(), 2);
        assert_eq!((tables[0].line, tables[0].comment.as_str()), (3, "<!-- a: b -->"));
        assert_eq!((&tables[0].heading, &tables[0].body), (&cells("| x \\| y | z |"), &(5..6)));
        assert_eq!(cells("| 1 | |"), ["1", ""]);
        assert_eq!((tables[1].comment.as_str(), &tables[1].body), ("", &(9..9)));
    }
}
