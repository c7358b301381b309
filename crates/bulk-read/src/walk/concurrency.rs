//! Adapts the number of walk threads: additional threads help while the running threads mostly wait
//! for the disk.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The minimum wall-clock time covered by one measurement.
const WINDOW: Duration = Duration::from_millis(4);

/// A meter of the share of wall-clock time that one thread spends on the CPU.
#[derive(Debug)]
pub(super) struct UtilizationMeter {
    cpu_before: Duration,
    wall: Duration,
}

impl UtilizationMeter {
    /// Starts measuring the calling thread.
    pub(super) fn new() -> Self {
        Self { cpu_before: thread_cpu(), wall: Duration::ZERO }
    }

    /// Records a job started at `started`; returns the recommended change of the number of threads,
    /// -1, 0 or 1, once enough time has passed for a measurement.
    pub(super) fn record(&mut self, started: Instant) -> Option<isize> {
        self.wall += started.elapsed();
        if self.wall < WINDOW {
            return None;
        }
        let cpu = thread_cpu();
        let advice = advice(cpu.saturating_sub(self.cpu_before), self.wall);
        (self.cpu_before, self.wall) = (cpu, Duration::ZERO);
        Some(advice)
    }
}

/// Returns 1 if the thread waited for more than half of the time, -1 if it waited for less than a
/// fifth of the time, else 0.
fn advice(cpu: Duration, wall: Duration) -> isize {
    if cpu * 2 < wall {
        1
    } else if cpu * 5 > wall * 4 {
        -1
    } else {
        0
    }
}

/// Returns the CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, rest) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), rest.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_added_while_waiting_and_removed_while_cpu_bound() {
        let advice = |cpu, wall| advice(Duration::from_millis(cpu), Duration::from_millis(wall));
        assert_eq!([advice(1, 10), advice(4, 10)], [1, 1]);
        assert_eq!([advice(5, 10), advice(8, 10)], [0, 0]);
        assert_eq!([advice(9, 10), advice(10, 10)], [-1, -1]);
    }

    #[test]
    fn single_short_job_changes_nothing() {
        assert_eq!(UtilizationMeter::new().record(Instant::now()), None);
    }
}
