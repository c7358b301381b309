//! Writes metrics in the text format 0.0.4 of Prometheus. Performs no I/O.
//!
//! No published crate is suitable (as of 2026). `prometheus-client` writes OpenMetrics, which names
//! a counter's family without `_total`, adds a full stop to help texts and ends with `# EOF`. The
//! encoder of `prometheus` takes all values as `f64`, which is exact only up to 2^53, and rejects a
//! family without samples. Both crates expect counters in a registry that are updated at each
//! event, while Haul's servers sum up the counters of their threads for each request of `/metrics`.

use std::fmt::{self, Write};

/// The type of a family of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    /// A value that only increases while the process runs.
    Counter,
    /// A value that increases and decreases.
    Gauge,
    /// The number of observed values up to each of several bounds (cumulative buckets).
    Histogram,
}

impl MetricType {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The value of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An integer, such as a count.
    Integer(u64),
    /// A measurement, such as a time in seconds.
    Float(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// The names and values of a sample's labels.
type Labels<'a> = &'a [(&'a str, &'a str)];

/// A writer of the body of `/metrics`.
///
/// ```
/// use haul_admin_endpoint::{Exposition, MetricType};
///
/// let mut page = Exposition::default();
/// page.counter("requests_total", "Requests.", 7);
/// page.family("files", MetricType::Gauge, "Files, by state.").sample(&[("state", "open")], 2);
/// assert_eq!(
///     page.into_text(),
///     "# HELP requests_total Requests.\n# TYPE requests_total counter\nrequests_total 7\
///      \n# HELP files Files, by state.\n# TYPE files gauge\nfiles{state=\"open\"} 2\n"
/// );
/// ```
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// Writes a counter without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Into<Value>) {
        self.family(name, MetricType::Counter, help).sample(&[], value);
    }

    /// Writes a gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Into<Value>) {
        self.family(name, MetricType::Gauge, help).sample(&[], value);
    }

    /// Begins a family of metrics: samples with the same name and different labels.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: MetricType, help: &str) -> Family<'a> {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail.
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name()).ok();
        Family { text: &mut self.text, name }
    }

    /// Returns the text of all families.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

/// A family of metrics, to which samples are added.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Family<'_> {
    /// Writes a sample. The values of labels may contain any character, because they are escaped.
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Into<Value>) -> &mut Self {
        self.line("", labels, None, value.into())
    }

    /// Writes a histogram: `buckets` contains pairs of an upper bound and the number of values up
    /// to this bound; `sum` and `count` are the sum and the number of all values.
    pub fn histogram(
        &mut self,
        labels: Labels<'_>,
        buckets: impl IntoIterator<Item = (f64, u64)>,
        sum: f64,
        count: u64,
    ) -> &mut Self {
        for (bound, cumulative) in buckets {
            self.line("_bucket", labels, Some(bound), cumulative.into());
        }
        self.line("_bucket", labels, Some(f64::INFINITY), count.into())
            .line("_sum", labels, None, sum.into())
            .line("_count", labels, None, count.into())
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: Labels<'_>,
        le: Option<f64>,
        value: Value,
    ) -> &mut Self {
        self.text.extend([self.name, suffix]);
        let mut separator = '{';
        for (name, value) in labels {
            write!(self.text, "{separator}{name}=\"{}\"", escaped(value)).ok();
            separator = ',';
        }
        if let Some(bound) = le {
            self.text.push(separator);
            separator = ',';
            match bound {
                f64::INFINITY => self.text.push_str("le=\"+Inf\""),
                bound => write!(self.text, "le=\"{bound}\"").unwrap_or_default(),
            }
        }
        self.text.push_str(if separator == ',' { "} " } else { " " });
        writeln!(self.text, "{value}").ok();
        self
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_end_with_infinity_sum_and_count() {
        let mut page = Exposition::default();
        let buckets = [(0.000016, 1), (0.5, 3)];
        page.family("t", MetricType::Histogram, "Times.")
            .histogram(&[], buckets, 2.5, 4)
            .histogram(&[("kind", "get")], [], 0.0, 0);
        assert_eq!(
            page.into_text(),
            "# HELP t Times.\n# TYPE t histogram\nt_bucket{le=\"0.000016\"} 1\n\
             t_bucket{le=\"0.5\"} 3\nt_bucket{le=\"+Inf\"} 4\nt_sum 2.5\nt_count 4\n\
             t_bucket{kind=\"get\",le=\"+Inf\"} 0\nt_sum{kind=\"get\"} 0\nt_count{kind=\"get\"} 0\n"
        );
    }

    #[test]
    fn labels_and_help_cannot_break_lines() {
        let mut page = Exposition::default();
        let labels = [("a", "\"\n\\"), ("b", "")];
        page.family("f", MetricType::Gauge, "a\n\\\"").sample(&labels, u64::MAX);
        assert_eq!(
            page.into_text(),
            "# HELP f a\\n\\\\\"\n# TYPE f gauge\nf{a=\"\\\"\\n\\\\\",b=\"\"} 18446744073709551615\n"
        );
    }

    #[test]
    fn family_without_samples_keeps_its_type() {
        let mut page = Exposition::default();
        page.family("f", MetricType::Counter, "None.");
        assert_eq!(page.into_text(), "# HELP f None.\n# TYPE f counter\n");
    }
}
