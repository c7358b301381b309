//! Records the circumstances of a run: its date, its command line, and the load of the machine.

use std::fmt;

use haul_measure::load_average;
use serde_json::{Value as Json, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The date and the command line of a run, and the load average of the machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Circumstances {
    /// The command line.
    pub command: String,
    /// The date and time of the start in UTC, in the format of RFC 3339.
    pub date: String,
    /// The load average at the start; `None` if the kernel does not report it.
    pub load_at_start: Option<f64>,
    /// The load average at the end; `None` before the end.
    pub load_at_end: Option<f64>,
}

impl Circumstances {
    /// Returns the circumstances of a run that starts now.
    #[must_use]
    pub fn at_start(command: String) -> Self {
        let now = OffsetDateTime::now_utc();
        let now = now.replace_nanosecond(0).unwrap_or(now);
        let date = now.format(&Rfc3339).unwrap_or_default();
        Self { command, date, load_at_start: load_average(), load_at_end: None }
    }

    /// Returns the circumstances with the present load as that of the end.
    #[must_use]
    pub fn at_end(self) -> Self {
        Self { load_at_end: load_average(), ..self }
    }

    /// Returns a warning if the load average at the start is above the number of `cores`: the
    /// threads of the benchmark then wait for a processor.
    #[must_use]
    pub fn warning(&self, cores: Option<usize>) -> Option<String> {
        let (load, cores) = (self.load_at_start?, cores?);
        (load > cores as f64).then(|| {
            format!(
                "the load average is {load:.2} on {cores} cores: other programs slow the benchmark, \
                 and many ratios will be noise"
            )
        })
    }

    pub(crate) fn json(&self) -> Json {
        json!({
            "command": self.command, "date": self.date,
            "load_average": { "start": self.load_at_start, "end": self.load_at_end },
        })
    }
}

impl fmt::Display for Circumstances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = |load: Option<f64>| load.map_or("unknown".to_owned(), |it| format!("{it:.2}"));
        let (start, end) = (load(self.load_at_start), load(self.load_at_end));
        write!(f, "{}, {}, load average {start} to {end}", self.command, self.date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_above_the_number_of_cores_is_a_warning() {
        let run = |load| Circumstances { load_at_start: load, ..Circumstances::default() };
        assert!(run(Some(2.5)).warning(Some(2)).unwrap().contains("2.50 on 2 cores"));
        for (load, cores) in [(Some(2.0), Some(2)), (None, Some(2)), (Some(9.0), None)] {
            assert_eq!(run(load).warning(cores), None, "{load:?} {cores:?}");
        }
    }
}
