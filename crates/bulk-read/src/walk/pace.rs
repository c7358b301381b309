//! Whether more threads would help: they do while those there are mostly wait.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How much work is looked at before anything is concluded from it.
const WINDOW: Duration = Duration::from_millis(4);

/// Watches how much of its time one thread works.
#[derive(Debug)]
pub(super) struct Pace {
    cpu_before: Duration,
    wall: Duration,
}

impl Pace {
    /// Starts to watch the calling thread.
    pub(super) fn new() -> Self {
        Self { cpu_before: thread_cpu(), wall: Duration::ZERO }
    }

    /// Counts a job begun at `begun`, and says how many threads more there should be.
    pub(super) fn after(&mut self, begun: Instant) -> isize {
        self.wall += begun.elapsed();
        if self.wall < WINDOW {
            return 0;
        }
        let cpu = thread_cpu();
        let advice = advice(cpu.saturating_sub(self.cpu_before), self.wall);
        (self.cpu_before, self.wall) = (cpu, Duration::ZERO);
        advice
    }
}

/// One more where a thread waits most of the time, one less where it hardly does.
fn advice(cpu: Duration, wall: Duration) -> isize {
    if cpu * 2 < wall {
        1
    } else if cpu * 5 > wall * 4 {
        -1
    } else {
        0
    }
}

/// How long the calling thread has worked.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, rest) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), rest.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_added_while_they_wait_and_given_back_when_they_work() {
        let advice = |cpu, wall| advice(Duration::from_millis(cpu), Duration::from_millis(wall));
        assert_eq!([advice(1, 10), advice(4, 10)], [1, 1]);
        assert_eq!([advice(5, 10), advice(8, 10)], [0, 0]);
        assert_eq!([advice(9, 10), advice(10, 10)], [-1, -1]);
    }

    #[test]
    fn a_short_job_alone_says_nothing() {
        assert_eq!(Pace::new().after(Instant::now()), 0);
    }
}
