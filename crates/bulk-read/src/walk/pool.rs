//! Shares jobs among threads, of which an adjustable number is active.

use parking_lot::{Condvar, Mutex};

/// A pool of jobs shared by threads. A job may add jobs, so the pool is finished only when no jobs
/// are left and no thread is active.
pub(super) struct Pool<J> {
    state: Mutex<State<J>>,
    wake: Condvar,
    threads_min: usize,
    threads_max: usize,
}

struct State<J> {
    jobs: Vec<J>,
    /// The number of threads that are executing a job.
    active: usize,
    /// The current limit of `active`.
    active_max: usize,
    /// `true` after a thread panicked: all other threads stop.
    is_broken: bool,
}

/// The local queue of one thread. The thread takes its newest job first, so that the directories it
/// opens in succession are close to each other in the tree.
pub(super) struct Worker<'a, J> {
    pool: &'a Pool<J>,
    own: Vec<J>,
}

impl<J> Pool<J> {
    /// Creates a pool whose limit of active threads starts at `threads_min`, which is also the
    /// minimum, and never exceeds `threads_max`.
    pub(super) fn new(threads_min: usize, threads_max: usize) -> Self {
        let state =
            State { jobs: Vec::new(), active: 0, active_max: threads_min, is_broken: false };
        Self { state: Mutex::new(state), wake: Condvar::new(), threads_min, threads_max }
    }

    /// Adds jobs to the shared queue.
    pub(super) fn push(&self, jobs: Vec<J>) {
        self.state.lock().jobs.extend(jobs);
        self.wake.notify_all();
    }

    /// Creates a worker for the calling thread.
    pub(super) fn worker(&self) -> Worker<'_, J> {
        Worker { pool: self, own: Vec::new() }
    }

    /// Changes the limit of active threads by `by`, within the minimum and maximum of the pool.
    pub(super) fn adjust(&self, by: isize) {
        let mut state = self.state.lock();
        let active_max = state.active_max.saturating_add_signed(by);
        state.active_max = active_max.clamp(self.threads_min, self.threads_max);
        drop(state);
        if by > 0 {
            self.wake.notify_one();
        }
    }
}

impl<J> Worker<'_, J> {
    /// Calls `work` with each job and a queue for the jobs it adds, until the pool is finished.
    pub(super) fn run(mut self, mut work: impl FnMut(J, &mut Vec<J>)) {
        let guard = PanicGuard(self.pool);
        while let Some(job) = self.acquire() {
            work(job, &mut self.own);
            while let Some(job) = self.next() {
                work(job, &mut self.own);
            }
        }
        drop(guard);
    }

    /// Waits for a job and for a free slot among the active threads; returns `None` when the pool
    /// is finished.
    fn acquire(&self) -> Option<J> {
        let mut state = self.pool.state.lock();
        loop {
            if state.is_broken || state.jobs.is_empty() && state.active == 0 {
                return None;
            }
            if state.active < state.active_max
                && let Some(job) = state.jobs.pop()
            {
                state.active += 1;
                return Some(job);
            }
            self.pool.wake.wait(&mut state);
        }
    }

    /// Returns the next job. Returns `None` if there is none or too many threads are active; the
    /// calling thread then no longer counts as active.
    fn next(&mut self) -> Option<J> {
        let mut state = self.pool.state.lock();
        let too_many = state.active > state.active_max;
        let has_idle = state.jobs.is_empty() && state.active < state.active_max;
        if state.is_broken || too_many {
            state.jobs.append(&mut self.own);
        } else if has_idle && self.own.len() > 1 {
            // Share the older half of the local queue. This thread keeps the newer half, so that
            // the directories of each thread are neighbours in the tree.
            let half = self.own.len() / 2;
            state.jobs.extend(self.own.drain(..half));
            self.pool.wake.notify_all();
        }
        let job = if too_many { None } else { self.own.pop().or_else(|| state.jobs.pop()) };
        if job.is_none() {
            state.active -= 1;
            self.pool.wake.notify_all();
        }
        job.filter(|_| !state.is_broken)
    }
}

/// A guard that stops all threads of the pool if the thread that owns it panics.
struct PanicGuard<'a, J>(&'a Pool<J>);

impl<J> Drop for PanicGuard<'_, J> {
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

    /// Each job with number n adds two jobs for every smaller number, so the job `first` results in
    /// 3 to the power of `first` jobs.
    fn run(pool: &Pool<u32>, threads: usize, first: u32) -> usize {
        let count = AtomicUsize::new(0);
        pool.push(vec![first]);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    pool.worker().run(|number, more| {
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
    fn every_job_runs_once_with_any_number_of_threads() {
        for (min, max, threads) in [(1, 1, 1), (2, 2, 2), (1, 8, 8), (8, 8, 3), (3, 5, 9)] {
            assert_eq!(run(&Pool::new(min, max), threads, 8), 3_usize.pow(8));
        }
    }

    #[test]
    fn panicking_worker_stops_the_others() {
        let pool = Pool::new(4, 4);
        pool.push((0..100).collect());
        let work = |number: u32, _: &mut Vec<u32>| assert_ne!(number, 50, "on purpose");
        let panicked = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| pool.worker().run(work))).collect();
            threads.into_iter().filter_map(|thread| thread.join().err()).count()
        });
        assert_eq!(panicked, 1);
    }
}
