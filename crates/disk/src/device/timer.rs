//! Measures latencies on a busy machine.

use std::fs;
use std::time::{Duration, Instant};

/// A timer for the calling thread that does not count the time for which the thread was ready to
/// run but had no CPU.
pub(super) struct Timer {
    started: Instant,
    waited: Option<Duration>,
}

impl Timer {
    pub(super) fn start() -> Self {
        Self { waited: waited_for_cpu(), started: Instant::now() }
    }

    /// Returns the time since the start, in microseconds.
    pub(super) fn elapsed_us(&self) -> u64 {
        let elapsed = self.started.elapsed();
        let waited = match (self.waited, waited_for_cpu()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => Duration::ZERO,
        };
        u64::try_from(elapsed.saturating_sub(waited).as_micros()).unwrap_or(u64::MAX)
    }
}

/// Returns the total time for which the calling thread has waited for a CPU; `None` if the kernel
/// does not report it.
///
/// # Source
/// The kernel's `Documentation/scheduler/sched-stats.rst`, `/proc/<pid>/schedstat`.
fn waited_for_cpu() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    parse(&text)
}

/// The fields are the time on a CPU and the time waiting for one, both in nanoseconds, and the
/// number of time slices.
fn parse(text: &str) -> Option<Duration> {
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_time_is_the_second_field() {
        assert_eq!(parse("123 45678 9\n"), Some(Duration::from_nanos(45_678)));
        assert_eq!(parse("123"), None);
        assert_eq!(parse("a b c"), None);
    }

    #[test]
    fn elapsed_time_is_bounded_by_the_wall_clock() {
        let (started, timer) = (Instant::now(), Timer::start());
        while started.elapsed() < Duration::from_millis(2) {
            std::thread::yield_now();
        }
        assert!(timer.elapsed_us() <= u64::try_from(started.elapsed().as_micros()).unwrap());
    }
}
