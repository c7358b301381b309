//! Shares jobs among threads, of which an adjustable number is active.

use std::collections::BTreeMap;

use parking_lot::{Condvar, Mutex};

/// The number of jobs that a single thread takes before further threads are added because that
/// thread waits for the disk. In a small tree on a rotational disk, more threads cause seeks.
const JOBS_ALONE: u64 = 16;

/// A pool of jobs shared by threads. Each job has a position, such as an inode number. The pool
/// returns the jobs in ascending order from the position of the last one, and then begins again at
/// the lowest, like an elevator: all threads are thus near each other on the disk. A job may add jobs, so the pool is finished only when no jobs
/// are left and no thread is active.
pub(super) struct Pool<J> {
    state: Mutex<State<J>>,
    wake: Condvar,
    threads_min: usize,
    threads_max: usize,
}

struct State<J> {
    /// The jobs by position and sequence number.
    jobs: BTreeMap<(u64, u64), J>,
    /// The key of the job taken last, from which the next one is searched.
    last: (u64, u64),
    sequence: u64,
    /// The number of jobs taken.
    taken: u64,
    /// The number of threads that are executing a job.
    active: usize,
    /// The current limit of `active`.
    active_max: usize,
    /// `true` after a thread panicked: all other threads stop.
    is_broken: bool,
}

impl<J> State<J> {
    fn push(&mut self, jobs: impl Iterator<Item = (u64, J)>) {
        for (position, job) in jobs {
            self.jobs.insert((position, self.sequence), job);
            self.sequence += 1;
        }
    }

    /// Takes the job with the next higher position; if there is none, that with the lowest.
    fn pop(&mut self) -> Option<J> {
        let next = self.jobs.range(self.last..).next().or_else(|| self.jobs.iter().next());
        self.last = *next?.0;
        self.taken += 1;
        self.jobs.remove(&self.last)
    }
}

impl<J> Pool<J> {
    /// Creates a pool whose limit of active threads starts at `threads_first`. After the first
    /// adjustment it is from `threads_min` to `threads_max`.
    pub(super) fn new(threads_first: usize, threads_min: usize, threads_max: usize) -> Self {
        let state = State {
            jobs: BTreeMap::new(),
            last: (0, 0),
            sequence: 0,
            taken: 0,
            active: 0,
            active_max: threads_first,
            is_broken: false,
        };
        Self { state: Mutex::new(state), wake: Condvar::new(), threads_min, threads_max }
    }

    /// Adds jobs with their positions.
    pub(super) fn push(&self, jobs: impl IntoIterator<Item = (u64, J)>) {
        self.state.lock().push(jobs.into_iter());
        self.wake.notify_all();
    }

    /// Changes the limit of active threads by `by`, within the minimum and maximum of the pool. A
    /// single thread remains alone if it asks for more threads before it has taken
    /// [`JOBS_ALONE`] jobs.
    pub(super) fn adjust(&self, by: isize) {
        let mut state = self.state.lock();
        if by > 0 && state.active_max < self.threads_min && state.taken < JOBS_ALONE {
            return;
        }
        let before = state.active_max;
        let active_max = before.saturating_add_signed(by);
        state.active_max = active_max.clamp(self.threads_min, self.threads_max);
        if state.active_max > before {
            self.wake.notify_all();
        }
    }

    /// Calls `work` with each job and a queue for the jobs it adds, until the pool is finished.
    pub(super) fn run(&self, mut work: impl FnMut(J, &mut Vec<(u64, J)>)) {
        let guard = PanicGuard(self);
        let mut found = Vec::new();
        while let Some(job) = self.acquire() {
            work(job, &mut found);
            while let Some(job) = self.next(&mut found) {
                work(job, &mut found);
            }
        }
        drop(guard);
    }

    /// Waits for a job and for a free slot among the active threads; returns `None` when the pool
    /// is finished.
    fn acquire(&self) -> Option<J> {
        let mut state = self.state.lock();
        loop {
            if state.is_broken || state.jobs.is_empty() && state.active == 0 {
                return None;
            }
            if state.active < state.active_max
                && let Some(job) = state.pop()
            {
                state.active += 1;
                return Some(job);
            }
            self.wake.wait(&mut state);
        }
    }

    /// Adds the jobs found, and returns the next job. Returns `None` if there is none or too many
    /// threads are active; the calling thread then no longer counts as active.
    fn next(&self, found: &mut Vec<(u64, J)>) -> Option<J> {
        let mut state = self.state.lock();
        state.push(found.drain(..));
        let too_many = state.active > state.active_max;
        let job = if too_many || state.is_broken { None } else { state.pop() };
        if job.is_none() {
            state.active -= 1;
            self.wake.notify_all();
        } else {
            let idle = state.active_max.saturating_sub(state.active).min(state.jobs.len());
            (0..idle).for_each(|_| {
                self.wake.notify_one();
            });
        }
        job
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
        pool.push([(0, first)]);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    pool.run(|number, more| {
                        count.fetch_add(1, Ordering::Relaxed);
                        more.extend((0..number).flat_map(|less| [(less.into(), less), (7, less)]));
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
        for (first, min, max, threads) in
            [(1, 1, 1, 1), (2, 2, 2, 2), (1, 1, 8, 8), (8, 8, 8, 3), (1, 3, 5, 9)]
        {
            assert_eq!(run(&Pool::new(first, min, max), threads, 8), 3_usize.pow(8));
        }
    }

    #[test]
    fn jobs_are_taken_in_ascending_order_from_the_last_position() {
        let pool = Pool::new(1, 1, 1);
        pool.push([(50, "b"), (10, "a"), (50, "c")]);
        let mut taken = Vec::new();
        pool.run(|job, more| {
            taken.push(job);
            if job == "b" {
                more.extend([(20, "below"), (70, "above"), (50, "same")]);
            }
        });
        assert_eq!(taken, ["a", "b", "c", "same", "above", "below"]);
    }

    #[test]
    fn waiting_thread_stays_alone_for_the_first_jobs() {
        let pool = Pool::new(1, 2, 4);
        let limit = || pool.state.lock().active_max;
        pool.push((0..20).map(|number| (number, number)));
        let mut limits = Vec::new();
        for _ in 0..18 {
            pool.state.lock().pop().unwrap();
            pool.adjust(1);
            limits.push(limit());
        }
        assert_eq!(limits, [vec![1; 15], vec![2, 3, 4]].concat());
        let pool = Pool::<u32>::new(1, 2, 4);
        pool.adjust(0);
        assert_eq!(pool.state.lock().active_max, 2, "a thread that uses the CPU is not alone");
    }

    #[test]
    fn panicking_worker_stops_the_others() {
        let pool = Pool::new(4, 4, 4);
        pool.push((0..100).map(|number| (0, number)));
        let work = |number: u32, _: &mut Vec<(u64, u32)>| assert_ne!(number, 50, "on purpose");
        let panicked = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| pool.run(work))).collect();
            threads.into_iter().filter_map(|thread| thread.join().err()).count()
        });
        assert_eq!(panicked, 1);
    }
}
