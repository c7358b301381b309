//! Runs worker threads that process a queue of numbered tasks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{panic, thread};

use crate::error::Error;

/// A queue of the task numbers from 0 up to, but excluding, `count`.
pub(crate) struct Queue<'a> {
    next: AtomicUsize,
    count: usize,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
    failed: AtomicBool,
}

impl<'a> Queue<'a> {
    pub(crate) fn new(count: usize, is_stopped: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { next: AtomicUsize::new(0), count, is_stopped, failed: AtomicBool::new(false) }
    }

    /// Returns the next number. Returns `None` if the queue is empty, a worker has failed, or the
    /// caller requested a stop.
    pub(crate) fn take(&self) -> Option<usize> {
        if self.failed.load(Ordering::Relaxed) || (self.is_stopped)() {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < self.count)
    }
}

/// Runs `work` on `jobs` threads. After the first failure the queue returns no further numbers; the
/// failure is returned once all threads have finished their current tasks.
pub(crate) fn run(
    jobs: usize,
    queue: &Queue<'_>,
    work: impl Fn() -> Result<(), Error> + Sync,
) -> Result<(), Error> {
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
                // The error is returned if not even one thread was started; otherwise the threads
                // that were started do the work.
                Err(error) => {
                    if started.is_empty() {
                        result = Err(Error::Thread(error));
                    }
                    break;
                }
            }
        }
        for thread in started {
            let outcome = thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
            result = result.and(outcome);
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn each_number_is_taken_once() {
        let queue = Queue::new(1000, &|| false);
        let taken = Mutex::new(Vec::new());
        let work = || {
            while let Some(index) = queue.take() {
                taken.lock().push(index);
            }
            Ok(())
        };
        assert!(run(7, &queue, work).is_ok());
        let mut taken = taken.into_inner();
        taken.sort_unstable();
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn failure_ends_the_queue() {
        let queue = Queue::new(1000, &|| false);
        let work = || match queue.take() {
            Some(_) => Err(Error::Thread(io::Error::other("no"))),
            None => Ok(()),
        };
        assert!(run(1, &queue, work).is_err());
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn stop_ends_the_queue() {
        let taken = AtomicUsize::new(0);
        let is_stopped = || taken.load(Ordering::Relaxed) == 3;
        let queue = Queue::new(1000, &is_stopped);
        while queue.take().is_some() {
            taken.fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(taken.into_inner(), 3);
    }
}
