//! Encodes the figures of a child process as lines of text. Performs no I/O.

use std::fmt;
use std::time::Duration;

use crate::named::named;

named! {
    /// The phase that a step belongs to.
    pub(super) enum Phase {
        /// Storing objects.
        Fill = "fill",
        /// Opening the store.
        Open = "open",
        /// Listing the whole bucket.
        List = "list",
        /// Listing pages that begin at random keys.
        Pages = "pages",
    }
}

/// The figures of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) phase: Phase,
    /// The objects in the store, or the keys or pages that were listed.
    pub(super) count: u64,
    pub(super) time: Duration,
    /// The CPU time of the process during the step.
    pub(super) cpu: Duration,
    /// The memory of the process after the step (`VmRSS`).
    pub(super) memory_bytes: u64,
    /// Percentiles of the latencies in microseconds; 0 if there are none.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { phase, count, time, cpu, memory_bytes, p50_us, p99_us } = self;
        let (time, cpu) = (time.as_secs_f64(), cpu.as_secs_f64());
        write!(f, "{phase} {count} {time} {cpu} {memory_bytes} {p50_us} {p99_us}")
    }
}

impl Step {
    /// Parses a line that [`fmt::Display`] has formatted; `None` if it is invalid.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let phase = words.next()?.parse().ok()?;
        let count = words.next()?.parse().ok()?;
        let seconds = words.next()?.parse().ok()?;
        let time = Duration::try_from_secs_f64(seconds).ok()?;
        let cpu_seconds = words.next()?.parse().ok()?;
        let cpu = Duration::try_from_secs_f64(cpu_seconds).ok()?;
        let memory_bytes = words.next()?.parse().ok()?;
        let (p50_us, p99_us) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { phase, count, time, cpu, memory_bytes, p50_us, p99_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_parsed_as_they_were_formatted() {
        let step = Step {
            phase: Phase::Pages,
            count: 1 << 40,
            time: Duration::from_millis(1500),
            cpu: Duration::from_nanos(250),
            memory_bytes: 123_456_789,
            p50_us: 12.5,
            p99_us: 0.0,
        };
        assert_eq!(Step::parse(&step.to_string()), Some(step));
        for text in ["", "fill", "nothing 1 1 1 1 1 1", "fill 1 -1 1 1 1 1", "fill 1 1 1 1 1"] {
            assert_eq!(Step::parse(text), None, "{text}");
        }
    }
}
