//! Records the values of a server for 24 hours, in memory of a fixed size.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::exposition::MetricType;
use crate::latency::LatencyStats;
use crate::overview::Overview;

/// The time between two samples.
pub(crate) const SAMPLE_TIME: Duration = Duration::from_secs(10);

/// The part of the history that a response contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Only the current values.
    Now,
    /// The last hour, in rows of ten seconds.
    Hour,
    /// The last 24 hours, in rows of a minute.
    Day,
}

impl Span {
    /// Returns the span that a query such as `span=day` names, [`Span::Hour`] without a query, or
    /// `None` if the query is not valid.
    #[must_use]
    pub fn from_query(query: Option<&str>) -> Option<Self> {
        match query {
            None | Some("" | "span=hour") => Some(Self::Hour),
            Some("span=now") => Some(Self::Now),
            Some("span=day") => Some(Self::Day),
            Some(_) => None,
        }
    }
}

/// The values of a server over the last 24 hours.
///
/// The times of the rows are those of a monotonic clock, so that a change of the system time
/// neither loses nor reorders rows. Each row has its duration: if the machine was busy or
/// suspended, a row covers more time, and the rates of its counters remain correct.
#[derive(Debug)]
pub struct History {
    rings: Mutex<[Ring; 2]>,
}

/// The rows of one resolution.
#[derive(Debug)]
struct Ring {
    step: Duration,
    rows_max: usize,
    rows: VecDeque<Row>,
    /// The time and the values at the end of the last row.
    last: (Duration, Overview),
}

/// The changes within an interval.
#[derive(Debug)]
struct Row {
    end: Duration,
    duration: Duration,
    /// The increase of each counter, and the last value of each gauge.
    values: Box<[u64]>,
    /// The counts of each histogram, from its first bucket that is not empty to the last.
    latencies: Box<[Buckets]>,
}

/// The buckets of a histogram that are not empty.
#[derive(Debug, Default, PartialEq, Eq)]
struct Buckets {
    first: usize,
    counts: Box<[u32]>,
}

impl History {
    /// Creates an empty history of a server that has just started, or of one whose earlier values
    /// are not known.
    #[must_use]
    pub fn new(start: &Overview) -> Self {
        let ring = |step, rows_max| Ring {
            step,
            rows_max,
            rows: VecDeque::new(),
            last: (Duration::ZERO, start.clone()),
        };
        let day = Duration::from_secs(60);
        Self { rings: Mutex::new([ring(SAMPLE_TIME, 360), ring(day, 24 * 60)]) }
    }

    /// Records the values at a time since the start. Rows are complete after their time only, so
    /// this may be called more often.
    pub fn record(&self, uptime: Duration, overview: &Overview) {
        for ring in self.lock().iter_mut() {
            ring.record(uptime, overview);
        }
    }

    /// Returns the history and the current values as JSON. `now` is the system time at `uptime`.
    #[must_use]
    pub fn json(
        &self,
        span: Span,
        uptime: Duration,
        now: SystemTime,
        current: &Overview,
    ) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        self.write(&mut out, span, uptime, now, current).ok();
        out
    }

    fn write(
        &self,
        out: &mut String,
        span: Span,
        uptime: Duration,
        now: SystemTime,
        current: &Overview,
    ) -> fmt::Result {
        let unix_ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        write!(out, "{{\"title\":{},\"uptime_ms\":", Quoted(&current.title))?;
        write!(out, "{},\"unix_ms\":{unix_ms},\"series\":[", uptime.as_millis())?;
        for (at, series) in current.series.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            let kind = if series.kind == MetricType::Counter { "counter" } else { "gauge" };
            write!(out, "{{\"chart\":{},\"name\":", Quoted(series.chart))?;
            write!(out, "{},\"kind\":\"{kind}\",", Quoted(series.name))?;
            write!(out, "\"unit\":\"{}\"}}", series.unit.name())?;
        }
        write!(out, "],\"latencies\":[")?;
        for (at, (title, _)) in current.latencies.iter().enumerate() {
            write!(out, "{}{}", if at == 0 { "" } else { "," }, Quoted(title))?;
        }
        write!(out, "],\"totals\":")?;
        list(out, &current.values)?;
        write!(out, ",\"latency_totals\":[")?;
        for (at, (_, latency)) in current.latencies.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            Buckets::between(&LatencyStats::default(), latency).write(out)?;
        }
        write!(out, "],\"rows\":[")?;
        let rings = self.lock();
        let rows = match span {
            Span::Now => None,
            Span::Hour => Some(&rings[0].rows),
            Span::Day => Some(&rings[1].rows),
        };
        for (at, row) in rows.into_iter().flatten().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            row.write(out)?;
        }
        write!(out, "]}}")
    }

    fn lock(&self) -> MutexGuard<'_, [Ring; 2]> {
        // A panic while a row is added leaves complete rows.
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn record(&mut self, uptime: Duration, overview: &Overview) {
        let duration = uptime.saturating_sub(self.last.0);
        // A thread that wakes a little early must not skip a row.
        if duration < self.step * 19 / 20 {
            return;
        }
        let last = &self.last.1;
        let values = overview.series.iter().zip(&overview.values).enumerate();
        let values = values.map(|(at, (series, value))| match series.kind {
            MetricType::Counter => value.saturating_sub(last.values.get(at).copied().unwrap_or(0)),
            _ => *value,
        });
        let latencies = overview.latencies.iter().zip(&last.latencies);
        let latencies = latencies.map(|((_, now), (_, last))| Buckets::between(last, now));
        let row =
            Row { end: uptime, duration, values: values.collect(), latencies: latencies.collect() };
        while self.rows.len() >= self.rows_max {
            self.rows.pop_front();
        }
        self.rows.push_back(row);
        self.last = (uptime, overview.clone());
    }
}

impl Row {
    /// Writes `[end_ms, duration_ms, [values], [latencies]]`.
    fn write(&self, out: &mut String) -> fmt::Result {
        write!(out, "[{},{},", self.end.as_millis(), self.duration.as_millis())?;
        list(out, &self.values)?;
        out.push_str(",[");
        for (at, buckets) in self.latencies.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            buckets.write(out)?;
        }
        out.push_str("]]");
        Ok(())
    }
}

impl Buckets {
    /// Returns the increase of each bucket.
    fn between(last: &LatencyStats, now: &LatencyStats) -> Self {
        let rises: Vec<u32> = now
            .counts()
            .iter()
            .zip(last.counts())
            .map(|(now, last)| u32::try_from(now.saturating_sub(*last)).unwrap_or(u32::MAX))
            .collect();
        let is_used = |rise: &u32| *rise > 0;
        let Some(first) = rises.iter().position(is_used) else { return Self::default() };
        let end = rises.iter().rposition(is_used).map_or(first, |last| last + 1);
        Self { first, counts: rises[first..end].into() }
    }

    /// Writes `[first, count, …]`, or `[]` if all buckets are empty.
    fn write(&self, out: &mut String) -> fmt::Result {
        out.push('[');
        if !self.counts.is_empty() {
            write!(out, "{}", self.first)?;
        }
        for count in &self.counts {
            write!(out, ",{count}")?;
        }
        out.push(']');
        Ok(())
    }
}

fn list(out: &mut String, values: &[u64]) -> fmt::Result {
    out.push('[');
    for (at, value) in values.iter().enumerate() {
        write!(out, "{}{value}", if at == 0 { "" } else { "," })?;
    }
    out.push(']');
    Ok(())
}

/// A string of JSON.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for char in self.0.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                char if char < ' ' => write!(f, "\\u{:04x}", u32::from(char))?,
                char => f.write_char(char)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::LatencyHistogram;
    use crate::overview::{Series, Unit};

    const SERIES: &[Series] =
        &[Series::counter("Rates", "a", Unit::Count), Series::gauge("Levels", "b", Unit::Bytes)];

    fn overview(counter: u64, gauge: u64, latencies_us: &[u64]) -> Overview {
        let (histogram, mut latency) = (LatencyHistogram::default(), LatencyStats::default());
        latencies_us.iter().for_each(|us| histogram.record(Duration::from_micros(*us)));
        latency.add(&histogram);
        Overview {
            title: "a \"server\"\n".to_owned(),
            series: SERIES,
            values: vec![counter, gauge],
            latencies: vec![("Times", latency)],
        }
    }

    fn rows(history: &History, span: Span) -> String {
        let text = history.json(span, Duration::ZERO, UNIX_EPOCH, &overview(0, 0, &[]));
        let (_, rows) = text.split_once("\"rows\":").unwrap();
        rows.strip_suffix('}').unwrap().to_owned()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn rows_have_the_increase_of_counters_and_the_last_value_of_gauges() {
        let history = History::new(&overview(100, 7, &[]));
        history.record(seconds(10), &overview(130, 9, &[3, 3, 900]));
        history.record(seconds(20), &overview(130, 4, &[3, 3, 900]));
        let expected = "[[10000,10000,[30,9],[[2,2,0,0,0,0,0,0,0,1]]],[20000,10000,[0,4],[[]]]]";
        assert_eq!(rows(&history, Span::Hour), expected);
        assert_eq!(rows(&history, Span::Now), "[]");
        assert_eq!(rows(&history, Span::Day), "[]", "no minute is over");
    }

    #[test]
    fn late_samples_make_longer_rows_and_early_ones_none() {
        let history = History::new(&overview(0, 0, &[]));
        history.record(seconds(4), &overview(5, 0, &[]));
        history.record(Duration::from_millis(9_900), &overview(6, 0, &[]));
        history.record(seconds(100), &overview(96, 0, &[]));
        // A time before the last row, which a monotonic clock does not have, changes nothing.
        history.record(seconds(50), &overview(1000, 0, &[]));
        assert_eq!(
            rows(&history, Span::Hour),
            "[[9900,9900,[6,0],[[]]],[100000,90100,[90,0],[[]]]]"
        );
        assert_eq!(rows(&history, Span::Day), "[[100000,100000,[96,0],[[]]]]");
    }

    #[test]
    fn counter_that_starts_again_has_no_negative_increase() {
        let history = History::new(&overview(500, 0, &[1, 1]));
        history.record(seconds(10), &overview(2, 0, &[1]));
        history.record(seconds(20), &overview(5, 0, &[1, 4]));
        let expected = "[[10000,10000,[0,0],[[]]],[20000,10000,[3,0],[[3,1]]]]";
        assert_eq!(rows(&history, Span::Hour), expected);
    }

    #[test]
    fn two_days_of_samples_leave_the_rows_of_an_hour_and_of_a_day() {
        let history = History::new(&overview(0, 0, &[]));
        for at in 1..=2 * 24 * 360 {
            history.record(seconds(10 * at), &overview(at, 0, &[]));
        }
        let rings = history.lock();
        let spans = rings.each_ref().map(|ring| {
            let total: Duration = ring.rows.iter().map(|row| row.duration).sum();
            (ring.rows.len(), total.as_secs())
        });
        assert_eq!(spans, [(360, 3600), (1440, 86_400)]);
    }

    #[test]
    fn current_values_and_names_are_valid_json() {
        let now = UNIX_EPOCH + Duration::from_millis(1_234);
        let history = History::new(&overview(0, 0, &[]));
        let json = history.json(Span::Now, seconds(3), now, &overview(1, 2, &[0, 5]));
        assert_eq!(
            json,
            "{\"title\":\"a \\\"server\\\"\\u000a\",\"uptime_ms\":3000,\"unix_ms\":1234,\
             \"series\":[{\"chart\":\"Rates\",\"name\":\"a\",\"kind\":\"counter\",\
             \"unit\":\"count\"},{\"chart\":\"Levels\",\"name\":\"b\",\"kind\":\"gauge\",\
             \"unit\":\"bytes\"}],\"latencies\":[\"Times\"],\"totals\":[1,2],\
             \"latency_totals\":[[0,1,0,0,1]],\"rows\":[]}"
        );
    }

    #[test]
    fn span_is_named_by_the_query() {
        assert_eq!(Span::from_query(None), Some(Span::Hour));
        assert_eq!(Span::from_query(Some("span=now")), Some(Span::Now));
        assert_eq!(Span::from_query(Some("span=day")), Some(Span::Day));
        assert_eq!(Span::from_query(Some("span=week")), None);
    }
}
