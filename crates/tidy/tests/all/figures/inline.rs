//! Checks figures in sentences, which are links to reports, such as
//! `[0.96](data/log.json "log_vs_raw_1w")`.

use std::ops::Range;

use serde_json::Value;

use super::Checked;
use super::number::{begins_with_number, is_rounded, like};
use super::report;
use super::table::without_code;

/// Words for noise, in the languages of the pages.
const NOISE: [&str; 2] = ["noise", "噪声"];

/// A link to a report.
#[derive(Debug)]
struct Link<'a> {
    /// The place of the text of the link in the page.
    at: Range<usize>,
    target: &'a str,
    /// The title in one line; `None` if the link has no title.
    title: Option<String>,
}

/// Returns the links of a text to reports.
fn links(text: &str) -> Vec<Link<'_>> {
    text.match_indices("](").filter_map(|(end, _)| link(text, end)).collect()
}

/// Returns the link whose text ends at `end`.
fn link(text: &str, end: usize) -> Option<Link<'_>> {
    let begin = text[..end].rfind('[')? + 1;
    let rest = &text[end + 2..];
    let length = rest.find(|c: char| c.is_whitespace() || c == ')')?;
    let (target, rest) = rest.split_at(length);
    let title = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once("\")"));
    let title = title.map(|(title, _)| title.split_whitespace().collect::<Vec<_>>().join(" "));
    target.ends_with(".json").then_some(Link { at: begin..end, target, title })
}

/// Returns the line of a table, or the paragraph, around a place of a text.
fn surroundings(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let separator = if text[line..].starts_with('|') { "\n" } else { "\n\n" };
    let begin = text[..at].rfind(separator).unwrap_or(0);
    let end = text[at..].find(separator).map_or(text.len(), |end| at + end);
    &text[begin..end]
}

/// Compares the figures in the sentences of a page with the reports.
pub(super) fn check(text: &str, read: &impl Fn(&str) -> Result<Value, String>) -> Checked {
    let page = without_code(text);
    let mut checked = Checked { corrected: text.to_owned(), ..Checked::default() };
    // From the last one to the first one, so that places in the text stay valid.
    for link in links(&page).into_iter().rev() {
        let figure = &page[link.at.clone()];
        let line = page[..link.at.start].matches('\n').count() + 1;
        let mut complain = |text: &str| checked.complaints.push(format!("{line}: {text}"));
        let Some(title) = link.title else {
            if begins_with_number(figure) {
                complain(&format!("[{figure}] has no title that names the figure"));
            }
            continue;
        };
        match read(link.target).and_then(|report| report::figure(&report, &title)) {
            Err(error) => complain(&error),
            Ok(found) => {
                let surroundings = surroundings(&page, link.at.start);
                if found.is_noise && !NOISE.iter().any(|word| surroundings.contains(word)) {
                    complain(&format!("{title} is noise, which the text must say"));
                }
                if !found.value.as_f64().is_some_and(|value| is_rounded(figure, value)) {
                    let right = like(figure, &found.value);
                    complain(&format!("[{figure}] must be [{right}]: {title}"));
                    checked.corrected.replace_range(link.at, &right);
                }
            }
        }
    }
    checked.complaints.reverse();
    checked
}
