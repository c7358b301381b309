//! Whether an append that goes on to the next segment takes longer than one that does not.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::log::contender::{Contender, Failure};
use crate::log::ours::Ours;
use crate::log::scratch::Scratch;
use crate::stats::Latencies;
use crate::watch::Watcher;

/// The shortest segment there is: as many changes as can be had.
const SEGMENT_BYTES: u32 = 1 << 20;
const RECORD_BYTES: usize = 4096;
/// So many appends on either side of a change are said to be around it.
const AROUND: usize = 8;
const HOUSEKEEPING_EVERY: Duration = Duration::from_millis(5);

/// How long appends took near a change of segments, and how long elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Jitter {
    pub(crate) around: Latencies,
    pub(crate) steady: Latencies,
    pub(crate) changes: usize,
}

impl Jitter {
    /// The 99.9th percentile around a change over that elsewhere.
    pub(crate) fn p999_ratio(&self) -> Option<f64> {
        Some(self.around.percentile_us(99.9)? / self.steady.percentile_us(99.9)?)
    }
}

/// Appends with one writer until a log of short segments has gone through `changes` of them.
pub(crate) fn jitter(scratch: &Scratch, changes: usize, watcher: &dyn Watcher) -> Result<Jitter> {
    let measured = measure(scratch, changes, watcher);
    watcher.check()?;
    measured.map_err(|failure| {
        Error::other("measure changes of segments")(std::io::Error::other(failure))
    })
}

fn measure(scratch: &Scratch, changes: usize, watcher: &dyn Watcher) -> Result<Jitter, Failure> {
    let (ours, _) = Ours::open(scratch.path(), SEGMENT_BYTES)?;
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
        keeper.join().map_err(|_panic| "the housekeeping panicked")??;
        sorted
    })
}

fn append_until(ours: &Ours, changes: usize, watcher: &dyn Watcher) -> Result<Jitter, Failure> {
    let mut sorter = Sorter::default();
    let record = vec![7; RECORD_BYTES];
    while sorter.jitter.changes < changes && !watcher.is_cancelled() {
        let began = Instant::now();
        let segment = ours.append_where(&record)?;
        sorter.append(segment, began.elapsed());
    }
    Ok(sorter.jitter)
}

/// Sorts appends by how near to a change they are.
#[derive(Debug, Default)]
struct Sorter {
    jitter: Jitter,
    segment: Option<u32>,
    /// The last ones, which may turn out to have been before a change.
    last: VecDeque<Duration>,
    /// How many more are behind a change.
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
    fn eight_appends_on_either_side_are_around_a_change() {
        let mut sorter = Sorter::default();
        for number in 0..100_u64 {
            // The change is between 49 and 50.
            let slow = (42..58).contains(&number);
            let time = Duration::from_micros(if slow { 5000 } else { 100 });
            sorter.append(u32::from(number >= 50), time);
        }
        let Jitter { around, steady, changes } = &sorter.jitter;
        assert_eq!((*changes, around.count()), (1, 16));
        assert_eq!(steady.count(), 100 - 16 - AROUND as u64, "the last ones are undecided");
        assert!(around.percentile_us(1.0) > steady.max_us());
        assert!(sorter.jitter.p999_ratio().is_some_and(|ratio| (ratio - 50.0).abs() < 0.2));
        assert_eq!(Jitter::default().p999_ratio(), None);
    }
}
