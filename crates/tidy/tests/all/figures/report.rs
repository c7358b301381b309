//! Selects rows and figures of a report.

use serde_json::Value;

use super::number::cell;

/// The maximum length of a report.
const BYTES_MAX: usize = 300_000;

/// Splits a list at its commas. A piece without `=` belongs to the value before it, which contains
/// a comma.
pub(super) fn pieces(list: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in list.split(", ") {
        match pieces.last_mut() {
            Some(last) if !piece.contains('=') => last.extend([", ", piece]),
            _ => pieces.push(piece.to_owned()),
        }
    }
    pieces
}

/// Conditions on rows: keys and the texts of their values. Conditions on the same key are
/// alternatives.
#[derive(Debug, PartialEq)]
pub(super) struct Filter(pub(super) Vec<(String, String)>);

impl Filter {
    pub(super) fn parse(pieces: &[String]) -> Option<Self> {
        let pair = |piece: &String| {
            let (key, text) = piece.split_once('=')?;
            Some((key.to_owned(), text.to_owned()))
        };
        pieces.iter().map(pair).collect::<Option<_>>().map(Self)
    }

    pub(super) fn selects(&self, row: &Value) -> bool {
        self.0.iter().all(|(key, _)| {
            let mut alternatives = self.0.iter().filter(|other| other.0 == *key);
            alternatives.any(|(_, text)| is_text(&row[key.as_str()], text))
        })
    }
}

fn is_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => value == text,
        Value::Number(number) => cell(value) == text || number.to_string() == text,
        _ => text.is_empty(),
    }
}

/// Returns the rows of a report that have these keys: the claims of texts if one is `claim`, a row
/// for each ratio if one is `ratio`.
pub(super) fn rows_with(report: &Value, keys: &[&str]) -> Vec<Value> {
    if keys.contains(&"ratio") && !keys.contains(&"claim") {
        return ratios(report);
    }
    let list = if keys.contains(&"claim") { "claims" } else { "rows" };
    report[list].as_array().cloned().unwrap_or_default()
}

fn ratios(report: &Value) -> Vec<Value> {
    let ratios = report["ratios"].as_object().into_iter().flatten();
    let row = |(name, ratio): (&String, &Value)| {
        let mut row = ratio.clone();
        row["ratio"] = name.as_str().into();
        row
    };
    ratios.map(row).collect()
}

/// A figure of a report.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) value: Value,
    /// `true` if the figure is a ratio that is noise.
    pub(super) is_noise: bool,
}

/// Returns the figure with this title: the name of a ratio, or a column with conditions that select
/// one row.
pub(super) fn figure(report: &Value, title: &str) -> Result<Figure, String> {
    let pieces = pieces(title);
    let (name, conditions) = pieces.split_first().ok_or("there is no title")?;
    let found = if conditions.is_empty() { ratio(report, name) } else { None };
    let (value, is_noise) = match found {
        Some(found) => found,
        None => (measured(report, name, conditions)?, false),
    };
    let figure = Figure { value, is_noise };
    if figure.value.is_number() { Ok(figure) } else { Err(format!("{title} is no number")) }
}

/// Returns a ratio, or an end of its interval if `low` or `high` follows the name; also returns
/// `true` if the ratio is noise.
fn ratio(report: &Value, name: &str) -> Option<(Value, bool)> {
    let (name, part) = match name.rsplit_once(' ') {
        Some((name, part @ ("low" | "high"))) => (name, part),
        _ => (name, "value"),
    };
    let ratio = report["ratios"].get(name)?;
    Some((ratio[part].clone(), ratio["verdict"] == "noise"))
}

fn measured(report: &Value, column: &str, conditions: &[String]) -> Result<Value, String> {
    let filter = Filter::parse(conditions).ok_or("a condition lacks its =")?;
    let rows = rows_with(report, &[]);
    let selected: Vec<_> = rows.iter().filter(|row| filter.selects(row)).collect();
    match selected[..] {
        [row] => Ok(row[column].clone()),
        _ => Err(format!("{column}, {}: {} rows", conditions.join(", "), selected.len())),
    }
}

/// Returns the defects of a report.
pub(super) fn complaints(text: &str) -> Vec<String> {
    let Ok(report) = serde_json::from_str::<Value>(text) else {
        return vec!["it is not JSON".to_owned()];
    };
    let needed = ["/circumstances/command", "/circumstances/date", "/host/cpu", "/host/kernel"];
    let text_at = |path: &str| report.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let missing = needed.iter().filter(|path| text_at(path).is_empty());
    let mut complaints: Vec<_> = missing.map(|path| format!("it has no {path}")).collect();
    if text.len() > BYTES_MAX {
        complaints.push(format!("it has {} bytes, more than {BYTES_MAX}", text.len()));
    }
    complaints
}

#[test]
fn values_of_conditions_may_contain_commas() {
    assert_eq!(pieces("a, b=c, d, e=1"), ["a", "b=c, d", "e=1"]);
    let row = serde_json::json!({ "b": "c, d", "e": 1500, "f": null });
    for (list, expected) in [
        ("b=c, d, e=1,500, f=", Some(true)),
        ("e=1, e=1500", Some(true)),
        ("b=c", Some(false)),
        ("f=0", Some(false)),
        ("e", None),
    ] {
        assert_eq!(Filter::parse(&pieces(list)).map(|it| it.selects(&row)), expected, "{list}");
    }
}

#[test]
fn report_without_circumstances_is_noticed() {
    let mut report = serde_json::json!({
        "circumstances": { "command": "haul bench log", "date": "2026-01-01T00:00:00Z" },
        "host": { "cpu": "c", "kernel": "6.18" },
    });
    assert_eq!(complaints(&report.to_string()).len(), 0);
    assert_eq!(complaints(&(report.to_string() + &" ".repeat(BYTES_MAX))).len(), 1);
    report["circumstances"]["command"] = "".into();
    report["host"] = Value::Null;
    assert_eq!([complaints(&report.to_string()).len(), complaints("{").len()], [3, 1]);
}
