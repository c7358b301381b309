//! Several threads that take the next piece of work, in order, until nothing is left.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{panic, thread};

use crate::report::{OrFail, Result};
use crate::signals::Stop;

/// The numbers 0 to `count`, handed out once each.
pub(super) struct Queue<'a> {
    next: AtomicUsize,
    count: usize,
    stop: &'a Stop,
    failed: AtomicBool,
}

impl<'a> Queue<'a> {
    pub(super) fn new(count: usize, stop: &'a Stop) -> Self {
        Self { next: AtomicUsize::new(0), count, stop, failed: AtomicBool::new(false) }
    }

    /// The next one; none when all are taken, a worker failed, or the user asked to stop.
    pub(super) fn take(&self) -> Option<usize> {
        if self.failed.load(Ordering::Relaxed) || self.stop.asked().is_some() {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < self.count)
    }
}

/// Runs `work` on `jobs` threads; each takes from the queue until it is empty. The first failure
/// ends the queue, and is returned once all threads have finished what they had taken.
pub(super) fn run(jobs: usize, queue: &Queue<'_>, work: impl Fn() -> Result + Sync) -> Result {
    let guarded = || {
        let result = work();
        if result.is_err() {
            queue.failed.store(true, Ordering::Relaxed);
        }
        result
    };
    thread::scope(|scope| {
        let mut started = Vec::new();
        let mut result = Ok(());
        for _ in 0..jobs.min(queue.count) {
            match thread::Builder::new().spawn_scoped(scope, guarded) {
                Ok(thread) => started.push(thread),
                // Fewer threads are slower, but none is a failure.
                Err(error) if started.is_empty() => {
                    result = Err(error).or_fail(|| "cannot start a thread".to_owned());
                }
                Err(_) => break,
            }
        }
        for thread in started {
            let ended = thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
            result = result.and(ended);
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::report::Failure;

    #[test]
    fn every_number_is_taken_once() {
        let stop = Stop::default();
        let queue = Queue::new(1000, &stop);
        let taken = Mutex::new(Vec::new());
        let work = || {
            while let Some(index) = queue.take() {
                taken.lock().unwrap().push(index);
            }
            Ok(())
        };
        assert!(run(7, &queue, work).is_ok());
        let mut taken = taken.into_inner().unwrap();
        taken.sort_unstable();
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_ends_the_queue() {
        let stop = Stop::default();
        let queue = Queue::new(1000, &stop);
        let work = || match queue.take() {
            Some(_) => Err(Failure::new("no")),
            None => Ok(()),
        };
        assert_eq!(run(1, &queue, work).unwrap_err().text().unwrap(), "no");
        assert_eq!(queue.take(), None);
    }
}
