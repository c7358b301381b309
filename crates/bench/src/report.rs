//! What a bench found, in a form that people and programs can read.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use crate::host::Host;
use crate::table;

/// What a bench found, with its circumstances.
#[derive(Debug, Clone)]
pub struct Report {
    /// The bench's name, as in `haul bench <name>`.
    pub bench: String,
    /// Where it was found.
    pub host: Host,
    /// What the values of a row are.
    pub columns: &'static [Column],
    /// The key of the column that is drawn as a bar.
    pub bar: &'static str,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What it comes to.
    pub ratios: BTreeMap<String, f64>,
    /// What must be known to read it: how often, how long, what is missing.
    pub notes: Vec<String>,
}

/// What a value of each row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name for programs; numbers carry their unit in it.
    pub key: &'static str,
    /// Its name for people.
    pub head: &'static str,
    /// How many digits after the point people are shown; `None` for words.
    pub decimals: Option<u8>,
    /// Which columns go first where the terminal is too narrow: those of the highest rank. 0 stays.
    pub rank: u8,
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A word.
    Text(String),
    /// A number.
    Number(f64),
    /// It could not be measured.
    NotMeasured,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Rows of the same table stand below one heading; empty when there is only one table.
    pub table: String,
    /// Rows of the same group stand together and share the scale of their bars.
    pub group: String,
    /// A value for each column, as far as there are any.
    pub values: Vec<Value>,
    /// Why there are no numbers, such as "not supported".
    pub state: Option<String>,
}

impl Column {
    /// A column of words.
    #[must_use]
    pub const fn text(key: &'static str, head: &'static str) -> Self {
        Self { key, head, decimals: None, rank: 0 }
    }

    /// A column of numbers.
    #[must_use]
    pub const fn number(key: &'static str, head: &'static str, decimals: u8) -> Self {
        Self { key, head, decimals: Some(decimals), rank: 0 }
    }

    /// The same, left out early where the terminal is narrow.
    #[must_use]
    pub const fn ranked(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::NotMeasured }
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::NotMeasured, Self::from)
    }
}

impl Value {
    /// The number, when it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    fn json(&self) -> Json {
        match self {
            Self::Text(text) => json!(text),
            // Whole numbers are told as such.
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                #[expect(clippy::cast_possible_truncation, reason = "whole, and in range")]
                let whole = *number as i64;
                json!(whole)
            }
            Self::Number(number) => json!(number),
            Self::NotMeasured => Json::Null,
        }
    }
}

impl Row {
    /// A row that was measured.
    #[must_use]
    pub fn new(table: &str, group: &str, values: Vec<Value>) -> Self {
        Self { table: table.to_owned(), group: group.to_owned(), values, state: None }
    }

    /// The same, which could not be measured: `values` are the words that say what it is.
    #[must_use]
    pub fn without_numbers(self, why: impl Into<String>) -> Self {
        Self { state: Some(why.into()), ..self }
    }
}

impl Report {
    /// A report without any rows yet.
    #[must_use]
    pub fn new(bench: &str, host: Host, columns: &'static [Column], bar: &'static str) -> Self {
        let bench = bench.to_owned();
        let (rows, ratios, notes) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { bench, host, columns, bar, rows, ratios, notes }
    }

    /// The value of a row in the column of that key.
    #[must_use]
    pub fn value<'a>(&self, row: &'a Row, key: &str) -> Option<&'a Value> {
        row.values.get(self.columns.iter().position(|column| column.key == key)?)
    }

    /// For a terminal: tables with a bar for each row, in lines of at most `width` characters where
    /// that is possible, and below them ratios and notes.
    #[must_use]
    pub fn table(&self, width: usize) -> String {
        table::terminal(self, width)
    }

    /// For a page: the host, tables with all columns, ratios and notes.
    #[must_use]
    pub fn markdown(&self) -> String {
        table::markdown(self)
    }

    /// For programs: one JSON object with `bench`, `host`, `rows`, `ratios` and `notes`. A row has
    /// a member for each column, by key, and `state`; what was not measured is `null`.
    #[must_use]
    pub fn json(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(|row| self.row_json(row)).collect();
        let report = json!({
            "bench": self.bench, "host": self.host.json(), "rows": rows, "ratios": self.ratios,
            "notes": self.notes,
        });
        format!("{report:#}\n")
    }

    fn row_json(&self, row: &Row) -> Json {
        let mut object = Map::new();
        if !row.table.is_empty() {
            object.insert("table".into(), json!(row.table));
        }
        let state = row.state.as_deref().unwrap_or("measured");
        object.insert("state".into(), json!(state));
        for (at, column) in self.columns.iter().enumerate() {
            let value = row.values.get(at).map_or(Json::Null, Value::json);
            object.insert(column.key.into(), value);
        }
        object.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[Column::text("way", "way"), Column::number("us", "µs", 1)];

    #[test]
    fn programs_get_every_row_by_its_keys() {
        let mut report = Report::new("b", Host::default(), COLUMNS, "us");
        report.rows.push(Row::new("ext4", "", vec!["a".into(), 1.5.into()]));
        report.rows.push(Row::new("ext4", "", vec!["b".into(), 2.0.into()]));
        report.rows.push(Row::new("ext4", "", vec!["c".into()]).without_numbers("not supported"));
        report.ratios.insert("a_vs_b".into(), 0.75);
        let json: Json = serde_json::from_str(&report.json()).unwrap();
        let expected = json!([
            { "table": "ext4", "state": "measured", "way": "a", "us": 1.5 },
            { "table": "ext4", "state": "measured", "way": "b", "us": 2 },
            { "table": "ext4", "state": "not supported", "way": "c", "us": null },
        ]);
        assert_eq!(json["rows"], expected);
        assert_eq!((&json["bench"], &json["ratios"]), (&json!("b"), &json!({ "a_vs_b": 0.75 })));
        assert!(json["host"].is_object());
        assert_eq!(report.value(&report.rows[0], "us"), Some(&Value::Number(1.5)));
        assert_eq!(report.value(&report.rows[2], "us"), None);
    }

    #[test]
    fn what_is_no_number_was_not_measured() {
        for strange in [Some(f64::NAN), Some(f64::INFINITY), None] {
            assert_eq!(Value::from(strange), Value::NotMeasured);
        }
    }
}
