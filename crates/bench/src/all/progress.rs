//! Converts the progress of a part to that of the whole run, and ends a part that takes too long.

use std::cell::Cell;
use std::time::{Duration, Instant};

use haul_measure::Watcher;

/// The watcher of one part.
pub(super) struct PartWatcher<'a> {
    pub(super) inner: &'a dyn Watcher,
    pub(super) name: &'a str,
    /// The expected seconds of the parts before this one, of this one, and of all.
    pub(super) before: u64,
    pub(super) seconds: u64,
    pub(super) of: u64,
    /// The time at which the part is cancelled.
    pub(super) deadline: Instant,
    /// The largest number of steps reported so far: a benchmark with several tables starts again
    /// with each of them.
    pub(super) furthest: Cell<u64>,
}

/// The steps that are reported for each expected second.
const STEPS: u64 = 10;

impl PartWatcher<'_> {
    /// Returns `true` if the part took longer than its limit.
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Returns the time at which a part of `seconds` expected seconds is cancelled: when the parts
    /// after it would no longer have their expected `rest` seconds before the end of the run, but
    /// not before its own expected seconds have passed.
    pub(super) fn deadline(seconds: u64, rest: u64, end: Instant) -> Instant {
        let expected = Instant::now() + Duration::from_secs(seconds);
        let latest = end.checked_sub(Duration::from_secs(rest)).unwrap_or(end);
        latest.max(expected).min(end)
    }
}

impl Watcher for PartWatcher<'_> {
    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled() || self.is_late()
    }

    fn step(&self, done: usize, of: usize, what: &str) {
        let part = (self.seconds * STEPS * done as u64).checked_div(of as u64).unwrap_or(0);
        let whole = |steps: u64| usize::try_from(steps).unwrap_or(usize::MAX);
        self.furthest.set(part.min(self.seconds * STEPS).max(self.furthest.get()));
        let done = self.before * STEPS + self.furthest.get();
        self.inner.step(whole(done), whole(self.of * STEPS), &format!("{}: {what}", self.name));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[derive(Default)]
    struct Steps(RefCell<Vec<(usize, usize, String)>>);

    impl Watcher for Steps {
        fn step(&self, done: usize, of: usize, what: &str) {
            self.0.borrow_mut().push((done, of, what.to_owned()));
        }
    }

    #[test]
    fn progress_is_that_of_the_whole_run() {
        let steps = Steps::default();
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let watcher = PartWatcher {
            inner: &steps,
            name: "pacing",
            before: 30,
            seconds: 20,
            of: 100,
            deadline: now + hour,
            furthest: Cell::new(0),
        };
        watcher.step(1, 2, "direct");
        watcher.step(0, 0, "filling");
        let steps = steps.0.borrow();
        assert!(steps.iter().all(|(done, of, _)| (*done, *of) == (400, 1000)), "{steps:?}");
        assert_eq!(steps[1].2, "pacing: filling");
        assert!(!watcher.is_cancelled());
        assert!(PartWatcher { deadline: now, ..watcher }.is_cancelled());
        let in_hours = |count: u32| now + hour * count;
        assert_eq!(PartWatcher::deadline(60, 3600, in_hours(3)), in_hours(2));
        let minute = Duration::from_secs(60);
        assert!(PartWatcher::deadline(60, 3600, in_hours(1)) >= now + minute, "expected seconds");
        assert_eq!(PartWatcher::deadline(60, 0, now), now, "the end of the run");
    }
}
