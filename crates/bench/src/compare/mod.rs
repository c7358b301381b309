//! Compares the ratios of two reports in JSON: those that agree, and those that moved.

mod read;

use std::collections::BTreeMap;
use std::fmt;

use crate::named::named;
use crate::report::text::lines;
use crate::report::{significant, with_interval};
pub use read::RunFile;

/// The largest difference of two ratios that agree, as a fraction of the smaller one, unless their
/// intervals overlap.
const DIFFERENCE_MAX: f64 = 0.1;

/// A ratio as a report states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stated {
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

impl fmt::Display for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_interval(self.value, self.interval))
    }
}

named! {
    /// The judgement on a ratio of two runs.
    pub enum Agreement {
        /// The ratios differ by at most a tenth.
        Close = "agrees",
        /// The ratios differ by more than a tenth, but their intervals overlap.
        Overlapping = "agrees by interval",
        /// The ratios differ by more than a tenth, and their intervals do not overlap.
        Moved = "moved",
        /// Only one of the reports has the ratio.
        OnlyInOne = "only in one",
    }
}

impl Agreement {
    fn of(a: Option<Stated>, b: Option<Stated>) -> Self {
        let Some((a, b)) = a.zip(b) else { return Self::OnlyInOne };
        let smaller = a.value.abs().min(b.value.abs());
        let overlap = a.interval.zip(b.interval).is_some_and(|(a, b)| a.0 <= b.1 && b.0 <= a.1);
        match (a.value - b.value).abs() <= smaller * DIFFERENCE_MAX {
            true => Self::Close,
            false if overlap => Self::Overlapping,
            false => Self::Moved,
        }
    }
}

/// One ratio in two runs.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    name: String,
    a: Option<Stated>,
    b: Option<Stated>,
    agreement: Agreement,
}

/// The ratios of two runs side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison(Vec<Row>);

impl Comparison {
    /// Compares the ratios of two runs by name.
    #[must_use]
    pub fn of(a: &RunFile, b: &RunFile) -> Self {
        let mut rows: BTreeMap<&str, (Option<Stated>, Option<Stated>)> = BTreeMap::new();
        a.ratios.iter().for_each(|(name, ratio)| rows.entry(name).or_default().0 = Some(*ratio));
        b.ratios.iter().for_each(|(name, ratio)| rows.entry(name).or_default().1 = Some(*ratio));
        let rows = rows.into_iter().map(|(name, (a, b))| {
            let agreement = Agreement::of(a, b);
            Row { name: name.to_owned(), a, b, agreement }
        });
        Self(rows.collect())
    }

    /// Returns the number of ratios with this judgement.
    #[must_use]
    pub fn count(&self, agreement: Agreement) -> usize {
        self.0.iter().filter(|row| row.agreement == agreement).count()
    }
}

impl fmt::Display for Comparison {
    /// Writes a table of all ratios, and a line with the numbers of those that agree and moved.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |side: Option<Stated>| side.map_or("-".to_owned(), |it| it.to_string());
        let head = ["ratio", "A", "B", "B/A", ""].map(str::to_owned).to_vec();
        let cells = self.0.iter().map(|row| {
            let factor = row.a.zip(row.b).map(|(a, b)| b.value / a.value);
            let factor = factor.filter(|it| it.is_finite()).map_or(String::new(), significant);
            let verdict = row.agreement.name().to_owned();
            vec![row.name.clone(), text(row.a), text(row.b), factor, verdict]
        });
        let all: Vec<_> = [head].into_iter().chain(cells).collect();
        writeln!(f, "{}", lines(&all, |_| false).join("\n"))?;
        let only = self.count(Agreement::OnlyInOne);
        writeln!(
            f,
            "\n{} of {} ratios agree within a tenth, {} more within their intervals; {} moved",
            self.count(Agreement::Close),
            self.0.len() - only,
            self.count(Agreement::Overlapping),
            self.count(Agreement::Moved),
        )?;
        if only > 0 { writeln!(f, "{only} are in one report only") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ratios: &str) -> RunFile {
        format!("{{\"bench\": \"log\", \"ratios\": {{{ratios}}}}}").parse().unwrap()
    }

    #[test]
    fn ratios_agree_by_value_or_interval() {
        let stated = |value, interval| Some(Stated { value, interval });
        use Agreement::{Close, Moved, OnlyInOne, Overlapping};
        for (a, b, expected) in [
            (stated(2.0, None), stated(2.19, None), Close),
            (stated(2.19, None), stated(2.0, None), Close),
            (stated(2.0, None), stated(2.3, None), Moved),
            (stated(2.0, Some((1.8, 2.2))), stated(2.3, Some((2.1, 2.4))), Overlapping),
            (stated(2.0, Some((1.8, 2.2))), stated(2.3, Some((2.25, 2.4))), Moved),
            (stated(0.0, None), stated(0.0, None), Close),
            (stated(1.0, None), None, OnlyInOne),
            (None, stated(1.0, None), OnlyInOne),
        ] {
            assert_eq!(Agreement::of(a, b), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn table_counts_what_moved() {
        let a = run(r#""x": {"value": 2, "low": 1.9, "high": 2.1}, "y": {"value": 1}"#);
        let b = run(r#""x": {"value": 4, "low": 3.9, "high": 4.1}, "z": {"value": 1}"#);
        let comparison = Comparison::of(&a, &b);
        let expected = "\
ratio  A                    B                    B/A
log.x  2.00 (1.90 to 2.10)  4.00 (3.90 to 4.10)  2.00  moved
log.y  1.00                 -                          only in one
log.z  -                    1.00                       only in one

0 of 1 ratios agree within a tenth, 0 more within their intervals; 1 moved
2 are in one report only
";
        assert_eq!(comparison.to_string(), expected);
    }
}
