//! The directories still to be listed, shared among threads, as many of which work as it pays.

use parking_lot::{Condvar, Mutex};

/// Jobs, and who works on them. Jobs beget jobs, so it is over when nobody works any more.
pub(super) struct Pool<J> {
    state: Mutex<State<J>>,
    wake: Condvar,
    fewest: usize,
    most: usize,
}

struct State<J> {
    jobs: Vec<J>,
    /// Threads that have a job, or look for one.
    working: usize,
    /// How many may work at a time.
    wanted: usize,
    /// Somebody panicked: nobody waits for the rest.
    is_broken: bool,
}

/// A thread's part: its own jobs, of which it takes the newest, so that what is open together lies
/// together.
pub(super) struct Share<'a, J> {
    pool: &'a Pool<J>,
    own: Vec<J>,
}

impl<J> Pool<J> {
    /// A pool of which `fewest` threads work at first, and never more than `most`.
    pub(super) fn new(fewest: usize, most: usize) -> Self {
        let state = State { jobs: Vec::new(), working: 0, wanted: fewest, is_broken: false };
        Self { state: Mutex::new(state), wake: Condvar::new(), fewest, most }
    }

    /// Adds jobs from outside.
    pub(super) fn put(&self, jobs: Vec<J>) {
        self.state.lock().jobs.extend(jobs);
        self.wake.notify_all();
    }

    /// Joins the workers.
    pub(super) fn share(&self) -> Share<'_, J> {
        Share { pool: self, own: Vec::new() }
    }

    /// One more may work, or one less.
    pub(super) fn adjust(&self, by: isize) {
        let mut state = self.state.lock();
        let wanted = state.wanted.saturating_add_signed(by).clamp(self.fewest, self.most);
        state.wanted = wanted;
        drop(state);
        if by > 0 {
            self.wake.notify_one();
        }
    }
}

impl<J> Share<'_, J> {
    /// Calls `work` with one job after the other, and where to put new ones, until none is left.
    pub(super) fn run(mut self, mut work: impl FnMut(J, &mut Vec<J>)) {
        let guard = Guard(self.pool);
        while let Some(job) = self.begin() {
            work(job, &mut self.own);
            while let Some(job) = self.next() {
                work(job, &mut self.own);
            }
        }
        drop(guard);
    }

    /// Waits for a job, and for the permission to work.
    fn begin(&self) -> Option<J> {
        let mut state = self.pool.state.lock();
        loop {
            if state.is_broken || state.jobs.is_empty() && state.working == 0 {
                return None;
            }
            if state.working < state.wanted
                && let Some(job) = state.jobs.pop()
            {
                state.working += 1;
                return Some(job);
            }
            self.pool.wake.wait(&mut state);
        }
    }

    /// The next job of this worker; `None` ends its turn.
    fn next(&mut self) -> Option<J> {
        let mut state = self.pool.state.lock();
        let too_many = state.working > state.wanted;
        let somebody_waits = state.jobs.is_empty() && state.working < state.wanted;
        if state.is_broken || too_many {
            state.jobs.append(&mut self.own);
        } else if somebody_waits && self.own.len() > 1 {
            // The older half: what lies together stays together.
            let half = self.own.len() / 2;
            state.jobs.extend(self.own.drain(..half));
            self.pool.wake.notify_all();
        }
        let job = if too_many { None } else { self.own.pop().or_else(|| state.jobs.pop()) };
        if job.is_none() {
            state.working -= 1;
            self.pool.wake.notify_all();
        }
        job.filter(|_| !state.is_broken)
    }
}

/// Lets nobody wait for a thread that panicked.
struct Guard<'a, J>(&'a Pool<J>);

impl<J> Drop for Guard<'_, J> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state.lock().is_broken = true;
            self.0.wake.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    /// Each number brings all smaller ones twice: 3 to the power of it in all.
    fn run(pool: &Pool<u32>, threads: usize, first: u32) -> usize {
        let count = AtomicUsize::new(0);
        pool.put(vec![first]);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    pool.share().run(|number, more| {
                        count.fetch_add(1, Ordering::Relaxed);
                        more.extend((0..number).flat_map(|less| [less, less]));
                        if number % 3 == 0 {
                            pool.adjust(if number % 2 == 0 { 1 } else { -1 });
                        }
                    });
                });
            }
        });
        count.into_inner()
    }

    #[test]
    fn every_job_is_done_once_whoever_may_work() {
        for (wanted, most, threads) in [(1, 1, 1), (2, 2, 2), (1, 8, 8), (8, 8, 3), (3, 5, 9)] {
            assert_eq!(run(&Pool::new(wanted, most), threads, 8), 3_usize.pow(8));
        }
    }

    #[test]
    fn a_worker_that_panics_keeps_nobody_waiting() {
        let pool = Pool::new(4, 4);
        pool.put((0..100).collect());
        let work = |number: u32, _: &mut Vec<u32>| assert_ne!(number, 50, "on purpose");
        let ended = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| pool.share().run(work))).collect();
            threads.into_iter().filter_map(|thread| thread.join().err()).count()
        });
        assert_eq!(ended, 1);
    }
}
