//! Measures the latencies of appends around segment changes, at which the log continues in a new
//! segment file.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_measure::{Latencies, Watcher};

use super::contender::{Contender, Failure};
use super::ours::Ours;
use crate::reads::joined;
use crate::report::{Ratio, Samples};

/// The length in bytes of a segment: the minimum, so that there are many changes.
const SEGMENT_BYTES: u32 = 1 << 20;
const RECORD_BYTES: usize = 4096;
/// The number of appends before a change, and of appends after it, that count as around the change.
const AROUND: usize = 8;
const HOUSEKEEPING_EVERY: Duration = Duration::from_millis(5);

/// The latencies of appends around segment changes, and of all other appends.
#[derive(Debug, Default)]
pub(super) struct Jitter {
    pub(super) around: Latencies,
    pub(super) steady: Latencies,
    pub(super) changes: usize,
}

impl Jitter {
    /// Returns the 99.9th percentile of the latencies of appends around changes, divided by the
    /// same percentile of all other appends.
    pub(super) fn p999_ratio(&self) -> Option<Ratio> {
        let samples = |name, times: &Latencies| Samples::new(name, times.percentile_us(99.9));
        Ratio::of(samples("around segment changes", &self.around), samples("other", &self.steady))
    }
}

/// Appends with one writer to a log of short segments, until `changes` segment changes have
/// happened.
pub(super) fn jitter(dir: &Path, changes: usize, watcher: &dyn Watcher) -> Result<Jitter, Failure> {
    let (ours, _) = Ours::open(dir, SEGMENT_BYTES)?;
    ours.warm_up()?;
    rustix::fs::sync();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let keeper = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                ours.housekeep()?;
                thread::sleep(HOUSEKEEPING_EVERY);
            }
            Ok::<_, Failure>(())
        });
        let sorted = append_until(&ours, changes, watcher);
        done.store(true, Ordering::Relaxed);
        joined(keeper)?;
        sorted
    })
}

fn append_until(ours: &Ours, changes: usize, watcher: &dyn Watcher) -> Result<Jitter, Failure> {
    let mut sorter = Sorter::default();
    let record = vec![7; RECORD_BYTES];
    while sorter.jitter.changes < changes {
        watcher.check()?;
        let began = Instant::now();
        let segment = ours.append_to_segment(&record)?;
        sorter.append(segment, began.elapsed());
    }
    Ok(sorter.jitter)
}

/// Classifies appends as around a segment change or as steady, by their distance from the change.
#[derive(Debug, Default)]
struct Sorter {
    jitter: Jitter,
    segment: Option<u32>,
    /// The latencies of the last [`AROUND`] appends. They count as around a segment change if the
    /// next append causes one.
    last: VecDeque<Duration>,
    /// The number of future appends that count as around the most recent change.
    behind: usize,
}

impl Sorter {
    fn append(&mut self, segment: u32, time: Duration) {
        if self.segment.replace(segment).is_some_and(|last| last != segment) {
            self.jitter.changes += 1;
            self.last.drain(..).for_each(|time| self.jitter.around.record(time));
            self.behind = AROUND;
        }
        if self.behind > 0 {
            self.behind -= 1;
            self.jitter.around.record(time);
            return;
        }
        self.last.push_back(time);
        if self.last.len() > AROUND {
            self.last.pop_front().into_iter().for_each(|time| self.jitter.steady.record(time));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_near_a_change_are_separated() {
        let mut sorter = Sorter::default();
        for number in 0..100_u64 {
            // The segment changes between appends 49 and 50.
            let slow = (42..58).contains(&number);
            let time = Duration::from_micros(if slow { 5000 } else { 100 });
            sorter.append(u32::from(number >= 50), time);
        }
        let Jitter { around, steady, changes } = &sorter.jitter;
        assert_eq!((*changes, around.count()), (1, 16));
        assert_eq!(steady.count(), 100 - 16 - AROUND as u64, "the last ones are undecided");
        assert!(around.percentile_us(1.0) > steady.max_us());
        assert!(sorter.jitter.p999_ratio().is_some_and(|ratio| (ratio.value - 50.0).abs() < 0.2));
        assert_eq!(Jitter::default().p999_ratio(), None);
    }
}
