//! Holds the results of a benchmark in rows and columns, and encodes them as JSON.

mod circumstances;
mod ratio;
mod table;
pub(crate) mod text;

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use crate::host::Host;

pub use circumstances::Circumstances;
pub use ratio::{Ratio, Samples, Verdict};
pub(crate) use ratio::{significant, with_interval};

/// The results of a benchmark, and the machine on which it ran.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The name of the benchmark, as in `haul bench <name>`.
    pub bench: String,
    /// The machine, storage and versions.
    pub host: Host,
    /// The command line, the date, and the load of the machine.
    pub circumstances: Circumstances,
    /// The columns of the table.
    pub columns: Vec<Column>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// The ratios computed from the rows, by name.
    pub ratios: BTreeMap<String, Ratio>,
    /// Notes on the measurement: rounds, durations, missing figures.
    pub notes: Vec<String>,
}

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The key in JSON; the key of a number includes its unit.
    pub key: &'static str,
    /// The end of the key in JSON, such as `_min`; empty for most columns.
    pub suffix: &'static str,
    /// The heading in a table.
    pub head: &'static str,
    /// The number of digits after the decimal point in a table; `None` for text.
    pub decimals: Option<u8>,
    /// The rank in narrow terminals: columns of the highest rank are dropped first, columns of rank
    /// 0 never.
    pub rank: u8,
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
    /// A number that could not be measured.
    NotMeasured,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The heading of the table to which the row belongs; empty if the report has only one table.
    pub table: String,
    /// The group of the row. The rows of a group are adjacent.
    pub group: String,
    /// A value for each column; columns beyond the end of the vector were not measured.
    pub values: Vec<Value>,
    /// The reason why the row has no numbers, such as "not supported"; `None` if it was measured.
    pub state: Option<String>,
}

impl Column {
    /// Returns a column of texts.
    #[must_use]
    pub const fn text(key: &'static str, head: &'static str) -> Self {
        Self { key, suffix: "", head, decimals: None, rank: 0 }
    }

    /// Returns a column of numbers.
    #[must_use]
    pub const fn number(key: &'static str, head: &'static str, decimals: u8) -> Self {
        Self { key, suffix: "", head, decimals: Some(decimals), rank: 0 }
    }

    /// Returns the column with its rank set to `rank`.
    #[must_use]
    pub const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    fn is(&self, key: &str) -> bool {
        key.strip_prefix(self.key) == Some(self.suffix)
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

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as f64)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::NotMeasured, Self::from)
    }
}

impl Value {
    /// Returns the number; `None` for text and for a number that could not be measured.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    fn json(&self) -> Json {
        match self {
            Self::Text(text) => json!(text),
            // Whole numbers, such as counts, become integers in JSON.
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
    /// Returns a row of the table `table`, without a state.
    #[must_use]
    pub fn new(table: &str, group: &str, values: Vec<Value>) -> Self {
        Self { table: table.to_owned(), group: group.to_owned(), values, state: None }
    }

    /// Returns the row with the reason why it has no numbers.
    #[must_use]
    pub fn without_numbers(self, why: impl Into<String>) -> Self {
        Self { state: Some(why.into()), ..self }
    }
}

impl Report {
    /// Returns a report without rows.
    #[must_use]
    pub fn new(bench: &str, host: Host, columns: impl Into<Vec<Column>>) -> Self {
        Self { bench: bench.to_owned(), host, columns: columns.into(), ..Self::default() }
    }

    /// Adds a ratio, unless it is missing.
    pub fn ratio(&mut self, name: impl Into<String>, ratio: Option<Ratio>) {
        self.ratios.extend(ratio.map(|it| (name.into(), it)));
    }

    /// Adds the median of the rounds of a figure as an amount, unless it is missing.
    pub fn amount(&mut self, name: impl Into<String>, rounds: Option<Samples>) {
        self.ratio(name, rounds.and_then(Ratio::amount));
    }

    /// Returns the value of `row` in the column with the key `key`.
    #[must_use]
    pub fn value<'a>(&self, row: &'a Row, key: &str) -> Option<&'a Value> {
        row.values.get(self.columns.iter().position(|column| column.is(key))?)
    }

    /// Returns a JSON object with `bench`, `circumstances`, `host`, `rows`, `ratios` and `notes`. A row has a member for each column, by key, and `state`; a missing number is `null`.
    /// A ratio has its value, interval and verdict, and the figures of each round.
    #[must_use]
    pub fn json(&self) -> String {
        format!("{:#}\n", self.to_json())
    }

    pub(crate) fn to_json(&self) -> Json {
        let rows: Vec<_> = self.rows.iter().map(|row| self.row_json(row)).collect();
        let ratios = self.ratios.iter().map(|(name, ratio)| (name.clone(), ratio.json()));
        let ratios: Map<_, _> = ratios.collect();
        json!({
            "bench": self.bench, "circumstances": self.circumstances.json(),
            "host": self.host.json(), "rows": rows, "ratios": ratios, "notes": self.notes,
        })
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
            object.insert(column.key.to_owned() + column.suffix, value);
        }
        object.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Report {
        /// Panics unless the report has these ratios, with values that differ by at most a hundredth.
        #[track_caller]
        pub(crate) fn assert_ratios(&self, expected: &[(&str, f64)]) {
            let names: Vec<_> = self.ratios.keys().map(String::as_str).collect();
            let mut expected = expected.to_vec();
            expected.sort_by_key(|ratio| ratio.0);
            assert_eq!(names, expected.iter().map(|ratio| ratio.0).collect::<Vec<_>>());
            for (ratio, (name, value)) in self.ratios.values().zip(expected) {
                assert!(
                    (ratio.value - value).abs() <= value * 0.01,
                    "{name}: {ratio}, not {value}"
                );
            }
        }
    }

    const COLUMNS: &[Column] = &[Column::text("way", "way"), Column::number("us", "µs", 1)];

    #[test]
    fn json_has_every_row_by_key() {
        let mut report = Report::new("b", Host::default(), COLUMNS);
        report.rows.push(Row::new("ext4", "", vec!["a".into(), 1.5.into()]));
        report.rows.push(Row::new("ext4", "", vec!["b".into(), 2.0.into()]));
        report.rows.push(Row::new("ext4", "", vec!["c".into()]).without_numbers("not supported"));
        let samples = |name, us| Samples::new(name, [us; 5]);
        report.ratio("a_vs_b", Ratio::of(samples("a", 1.5), samples("b", 2.0)));
        let json: Json = serde_json::from_str(&report.json()).unwrap();
        let expected = json!([
            { "table": "ext4", "state": "measured", "way": "a", "us": 1.5 },
            { "table": "ext4", "state": "measured", "way": "b", "us": 2 },
            { "table": "ext4", "state": "not supported", "way": "c", "us": null },
        ]);
        assert_eq!(json["rows"], expected);
        let expected = json!({
            "value": 0.75, "low": 0.75, "high": 0.75, "self_factor": 1.0, "verdict": "different",
            "samples": [
                { "name": "a", "rounds": [1.5, 1.5, 1.5, 1.5, 1.5] },
                { "name": "b", "rounds": [2.0, 2.0, 2.0, 2.0, 2.0] },
            ],
        });
        assert_eq!((&json["bench"], &json["ratios"]["a_vs_b"]), (&json!("b"), &expected));
        assert!(json["host"].is_object());
        assert_eq!(report.value(&report.rows[0], "us"), Some(&Value::Number(1.5)));
        assert_eq!(report.value(&report.rows[2], "us"), None);
    }

    #[test]
    fn invalid_numbers_are_not_measured() {
        for strange in [Some(f64::NAN), Some(f64::INFINITY), None] {
            assert_eq!(Value::from(strange), Value::NotMeasured);
        }
    }
}
