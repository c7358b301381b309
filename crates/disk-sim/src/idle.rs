//! Waits until the threads of this process wait, too, for the simulated disk or for a time.

use std::fs;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The name of the threads that call [`wait_until_idle`], which count as waiting.
pub(crate) const CLOCK_THREAD: &str = "sim-clock";

/// The pause between two looks. A request of the kernel's threads, such as those of the loop device
/// or of a journal, arrives within this time.
const PAUSE: Duration = Duration::from_micros(200);

/// The number of consecutive looks in which no thread may be running.
const LOOKS: u32 = 2;

/// The maximum time to wait, for a process with a thread that never waits.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Waits until no thread of this process runs or waits for a processor.
pub(crate) fn wait_until_idle() {
    let began = Instant::now();
    let mut looks = 0;
    while looks < LOOKS && began.elapsed() < WAIT_MAX {
        sleep(PAUSE);
        // Without the files, which need no permission, the clock is not held.
        looks = if is_busy().unwrap_or(false) { 0 } else { looks + 1 };
    }
}

fn is_busy() -> io::Result<bool> {
    for task in fs::read_dir("/proc/self/task")? {
        // A thread that has ended since has no file.
        let Ok(stat) = fs::read(task?.path().join("stat")) else { continue };
        if is_running(&stat) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns `true` if the thread of this `/proc/PID/task/TID/stat` is in state `R`.
fn is_running(stat: &[u8]) -> bool {
    let (Some(begin), Some(end)) =
        (stat.iter().position(|b| *b == b'('), stat.iter().rposition(|b| *b == b')'))
    else {
        return false;
    };
    let is_clock = stat.get(begin + 1..end) == Some(CLOCK_THREAD.as_bytes());
    !is_clock && stat[end..].starts_with(b") R")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_threads_are_found_except_those_of_the_clock() {
        assert!(is_running(b"7 (store-index) R 1 7"));
        assert!(is_running(b"7 (a) S (b) R 1 7"));
        assert!(!is_running(b"7 (R) S 1 7"));
        assert!(!is_running(b"7 (sim-clock) R 1 7"));
        assert!(!is_running(b""));
    }
}
